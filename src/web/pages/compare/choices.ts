/** Orders the runs that can be added to a comparison. Pure. */
import type { RunView } from "../../../contract/run.ts";

export interface Choices {
  readonly title: string;
  readonly runs: readonly RunView[];
}

type Described = Pick<RunView, "id" | "environment" | "dataset">;

/**
 * Those with the environment and dataset of `like` come first, then those with its environment, each once and in the
 * given order. Without `like` there is one part.
 */
export function choicesOf(found: readonly RunView[], like: Described | undefined): readonly Choices[] {
  const each = [...new Map(found.map((run) => [run.id, run])).values()];
  if (like === undefined) return [{ title: "Runs", runs: each }];
  const isOfEnvironment = ({ environment }: Described) => environment.id === like.environment.id;
  const isAlike = (run: Described) => isOfEnvironment(run) && run.dataset === like.dataset;
  const parts = [
    { title: "Same environment and dataset", runs: each.filter(isAlike) },
    { title: "Same environment", runs: each.filter((run) => isOfEnvironment(run) && !isAlike(run)) },
    { title: "Other runs", runs: each.filter((run) => !isOfEnvironment(run)) },
  ];
  return parts.filter(({ runs }) => runs.length > 0);
}
