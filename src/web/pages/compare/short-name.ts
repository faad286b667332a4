/** The names by which the page calls the compared runs. Pure. */
import type { RunView } from "../../../contract/run.ts";

/** A short name for a column: the name or the model, with the end of the id if another run has the same one. */
export function shortNameOf(runs: readonly RunView[], id: string): string {
  const text = textOf(runs.find((run) => run.id === id));
  const isUnique = text !== null && runs.filter((run) => textOf(run) === text).length < 2;
  return isUnique ? text : `${text ?? ""} …${id.slice(-6)}`.trim();
}

function textOf(run: RunView | undefined): string | null {
  return run === undefined ? null : (run.name ?? run.model);
}
