/** How much more or less one run cost than another. Pure. */
import type { RunView } from "../../../contract/run.ts";
import { dollarsText, NOTHING } from "../../components/format.ts";
import { endedOf } from "../run/progress.ts";

type Paid = Pick<RunView, "cost" | "counts">;

/** `+$0.0021 per rollout, +$0.12 in all`; nothing if a part of the cost of a run is unknown. */
export function costDifferenceText(run: Paid | undefined, baseline: Paid | undefined): string {
  const [ours, theirs] = [microsOf(run), microsOf(baseline)];
  if (ours === null || theirs === null) return NOTHING;
  const inAll = `${signedDollars(ours.all - theirs.all)} in all`;
  if (ours.rollouts === 0 || theirs.rollouts === 0) return inAll;
  return `${signedDollars(ours.all / ours.rollouts - theirs.all / theirs.rollouts)} per rollout, ${inAll}`;
}

function microsOf(run: Paid | undefined): { readonly all: number; readonly rollouts: number } | null {
  if (run === undefined || run.cost.policy_micros === null) return null;
  const { policy_micros, judge_micros, charged_micros } = run.cost;
  return judge_micros === null
    ? null
    : { all: policy_micros + judge_micros + charged_micros, rollouts: endedOf(run.counts) };
}

function signedDollars(micros: number): string {
  // Less than a millionth of a dollar is a rounding error.
  if (Math.abs(micros) < 1) return dollarsText(0);
  return micros > 0 ? `+${dollarsText(micros)}` : dollarsText(micros);
}
