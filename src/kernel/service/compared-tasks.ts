/** What the two comparisons of runs share: which tasks they list, their texts, and their refusals. */
import type { CompareQuery } from "../../contract/comparison.ts";
import type { RunView } from "../../contract/run.ts";
import { isSameScore } from "../../contract/same-score.ts";
import { PASS_THRESHOLD } from "../../core/statistics/pass-at-k.ts";
import type { runObject } from "../kit/names.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { TaskMean } from "../messages/run-records.ts";

/** Tasks in memory, of all compared runs together. */
export const TASKS_AT_ONCE = 80_000;
/** Steps of reading so many tasks, and of matching them. */
export const RANGE_STEPS = 2_000_000;

export function flips(ours: TaskMean, theirs: TaskMean): boolean {
  return ours.mean >= PASS_THRESHOLD !== theirs.mean >= PASS_THRESHOLD;
}

export const LISTED: Readonly<Record<CompareQuery["tasks"], (ours: TaskMean, theirs: TaskMean) => boolean>> = {
  flipped: flips,
  different: (ours, theirs) => !isSameScore(ours.mean, theirs.mean),
  worse: (ours, theirs) => ours.mean < theirs.mean && !isSameScore(ours.mean, theirs.mean),
  better: (ours, theirs) => ours.mean > theirs.mean && !isSameScore(ours.mean, theirs.mean),
  all: () => true,
};

/** The texts of all listed tasks, with one call. Null: the run is lost. */
export async function taskTexts(
  run: ReturnType<typeof runObject>,
  listed: readonly Pick<TaskMean, "seq">[],
): Promise<ReadonlyMap<number, string> | null> {
  const seqs = listed.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
  return seqs.length === 0 ? new Map() : await run.look("taskTexts", seqs);
}

/** The same refusal, with the parameter that named the missing thing. */
export function refuseAs(refused: Result<never>, param: string): Result<never> {
  return refused.ok ? refused : { ok: false, error: { ...refused.error, param } };
}

export function metricRefusal(runs: readonly RunView[], metric: string): Result<never> | null {
  if (metric === "reward") return null;
  for (const { id, report } of runs) {
    if (Object.hasOwn(report.metrics, metric)) continue;
    const known = Object.keys(report.metrics).join(", ") || "none so far";
    const message = `metric: ${id} has no score called ${metric}; it has: ${known}`;
    return refuse("invalid_request", message, "metric");
  }
  return null;
}
