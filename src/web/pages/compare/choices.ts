/** Orders the runs that can be added to a comparison. Pure. */
import type { RunView } from "../../../contract/run.ts";

export interface Choices {
  readonly title: string;
  readonly runs: readonly RunView[];
}

type Described = Pick<RunView, "id" | "environment" | "dataset">;

/**
 * Those with the environment and dataset of `like` come first, then those with its environment, each once and in the
 * given order. Without `like` there is one part. Tasks that were not uploaded as a dataset have no id to compare.
 */
export function choicesOf(found: readonly RunView[], like: Described | undefined): readonly Choices[] {
  const each = [...new Map(found.map((run) => [run.id, run])).values()];
  if (like === undefined) return [{ title: "Runs", runs: each }];
  const isOfEnvironment = ({ environment }: Described) => environment.id === like.environment.id;
  const isAlike = (run: Described) => isOfEnvironment(run) && run.dataset === like.dataset;
  const parts = [
    { title: alikeTitle(like), runs: each.filter(isAlike) },
    { title: "Same environment, another dataset", runs: each.filter((run) => isOfEnvironment(run) && !isAlike(run)) },
    { title: "Other runs", runs: each.filter((run) => !isOfEnvironment(run)) },
  ];
  return parts.filter(({ runs }) => runs.length > 0);
}

function alikeTitle({ dataset }: Described): string {
  return dataset === null ? "Same environment, also without an uploaded dataset" : "Same environment and dataset";
}
