/** What the command line reads of a training run's metrics by step. */
import type { StepMetrics } from "../core/training/view.ts";
import type { RewardPoint } from "./reward-plot.ts";

/** Of everything that was played: groups whose rewards are all alike train nothing, and count here all the same. */
const REWARD = "train/agg/all/reward/mean";
const MEAN_LAG = "off_policy/mean";
const RATIO_ERROR = "trainer/ratio_max_abs_error";
const KL = "trainer/kl";

/** The mean reward of what each step collected. */
export function rewardPoints(series: readonly StepMetrics[]): RewardPoint[] {
  return series.flatMap(({ step, values }) => {
    const reward = values[REWARD];
    return typeof reward === "number" ? [{ step, reward }] : [];
  });
}

/** In versions, of the latest batch; null where none has been shipped. */
export function latestLag(series: readonly StepMetrics[]): number | null {
  return (
    series.findLast(({ values }) => typeof values[MEAN_LAG] === "number")?.values[MEAN_LAG] ?? null
  );
}

/**
 * Before its first update the trainer holds the weights that sampled: any other ratio than 1, or kl than 0, is a fault in
 * how samples travel.
 */
export function firstStep(series: readonly StepMetrics[]) {
  const values = series.find(({ step }) => step === 1)?.values ?? {};
  return { ratio_max_abs_error: values[RATIO_ERROR] ?? null, kl: values[KL] ?? null };
}
