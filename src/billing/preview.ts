/** Estimates what the platform would charge for a run, from the usage of earlier runs. Pure. */
import type { PinnedPrices } from "../contract/run-spec.ts";
import type { PastRun } from "../core/costs/expected.ts";
import { tokensMicros } from "./charge.ts";

/**
 * What the platform would charge for the rollouts of a run, if none were free. `asked`: the names of the planned run's
 * judges. Null if the prices of these judges' tokens differ, because a past run stores only the sum over its judges.
 */
export function chargedMicros(
  { fees, policy, judges }: PinnedPrices,
  run: PastRun,
  asked: readonly string[],
): number | null {
  const [first = null, ...others] = asked.map((name) => judges[name] ?? null);
  const ofJudges = tokensMicros(first, run.judged);
  if (others.some((prices) => tokensMicros(prices, run.judged) !== ofJudges)) return null;
  const turns = (run.turns * fees.thousand_turns_micros) / 1000;
  const ofPolicy = tokensMicros(policy, run);
  return run.rollouts * fees.rollout_micros + turns + run.scored * fees.scoring_micros + ofPolicy + ofJudges;
}
