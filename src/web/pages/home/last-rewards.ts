/** The last rewards of a training. Pure. */
import type { StepMetrics } from "../../../contract/training-view.ts";
import { seriesOf, smooth } from "../run/series.ts";

const REWARD = "train/agg/all/reward/mean";
/** The weight of the past, as on the page of a training. */
const SMOOTHING = 0.6;

export interface LastRewards {
  /** The steps with a reward, in order. */
  readonly rewards: readonly { readonly step: number; readonly reward: number }[];
  /** One for each of them. */
  readonly smoothed: readonly number[];
}

export function lastRewards(steps: readonly StepMetrics[]): LastRewards {
  const series = seriesOf(steps);
  const rewards = series.of(REWARD).flatMap((reward, at) => {
    const step = series.steps[at];
    return reward === null || step === undefined ? [] : [{ step, reward }];
  });
  const smoothed = smooth(
    rewards.map(({ reward }) => reward),
    SMOOTHING,
  );
  return { rewards, smoothed: smoothed.filter((value) => value !== null) };
}
