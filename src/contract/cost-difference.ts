/** How much more one run cost than another. Pure. */
import type { RunView } from "./run.ts";

/** In micro-dollars. */
export interface CostDifference {
  readonly all: number;
  /** Of the rollouts that have ended; null if there are none in one of the runs. */
  readonly per_rollout: number | null;
}

type Paid = Pick<RunView, "cost" | "counts">;

/** Run − baseline. Null: a part of the cost of one of them is unknown. */
export function costDifference(run: Paid, baseline: Paid): CostDifference | null {
  const [ours, theirs] = [microsOf(run), microsOf(baseline)];
  if (ours === null || theirs === null) return null;
  const [mine, other] = [run, baseline].map(({ counts }) => counts.dispatched - counts.in_flight);
  const per_rollout = mine && other ? ours / mine - theirs / other : null;
  return { all: ours - theirs, per_rollout };
}

function microsOf({ cost: { policy_micros, judge_micros, charged_micros } }: Paid): number | null {
  return policy_micros === null || judge_micros === null ? null : policy_micros + judge_micros + charged_micros;
}
