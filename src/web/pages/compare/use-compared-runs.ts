/** The runs of a comparison, and the names by which the page calls them. */
import { queryOptions, useQueries } from "@tanstack/react-query";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";

export const runQuery = (id: string) =>
  queryOptions({ queryKey: ["run", id], queryFn: ({ signal }) => api.runs.get(id, { signal }) });

export function useComparedRuns(ids: readonly string[]) {
  const queries = useQueries({ queries: ids.map(runQuery) });
  return { runs: queries.flatMap(({ data }) => data ?? []), isPending: queries.some(({ isPending }) => isPending) };
}

/** A short name for a column: the name or the model, with the end of the id if another run has the same one. */
export function shortNameOf(runs: readonly RunView[], id: string): string {
  const text = textOf(runs.find((run) => run.id === id));
  const isUnique = text !== null && runs.filter((run) => textOf(run) === text).length < 2;
  return isUnique ? text : `${text ?? ""} …${id.slice(-6)}`.trim();
}

function textOf(run: RunView | undefined): string | null {
  return run === undefined ? null : (run.name ?? run.model);
}
