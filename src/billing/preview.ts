/** What the platform would charge for a run, from what runs before it have used. Pure. */
import type { PinnedPrices } from "../contract/run-spec.ts";
import type { PastRun } from "../core/costs/expected.ts";
import { tokensMicros } from "./charge.ts";

/**
 * What the platform would charge for the rollouts of a run, as if none were free. `asked`: the judges of the run that
 * is planned, by name. Null where the platform's prices of their tokens differ: a past run has but the sum over its
 * judges.
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
