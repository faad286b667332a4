/** What the command line reads of a training run's metrics by step. */
import type { StepMetrics } from "../../contract/training-view.ts";
import type { RewardPoint } from "../terminal/reward-plot.ts";

/** Of everything that was played: groups whose rewards are all alike train nothing, and count here all the same. */
const REWARD = "train/agg/all/reward/mean";
const MEAN_LAG = "off_policy/mean";
const MOST_LAG = "off_policy/max";
const RATIO_ERROR = "trainer/ratio_max_abs_error";
const KL = "trainer/kl";

/** The mean reward of what each step collected. */
export function rewardPoints(series: readonly StepMetrics[]): RewardPoint[] {
  return series.flatMap(({ step, values }) => {
    const reward = values[REWARD];
    return typeof reward === "number" ? [{ step, reward }] : [];
  });
}

export interface Lag {
  /** Mean of the latest batch. */
  readonly latest: number;
  /** The largest of any batch so far. */
  readonly most: number;
}

/**
 * In versions; null where no batch has been shipped. Both are of the same steps: the run's own `max_lag` is read at another
 * moment, when the latest batch may not have been there yet.
 */
export function lagOf(series: readonly StepMetrics[]): Lag | null {
  const numbers = (name: string) =>
    series.map(({ values }) => values[name]).filter((value) => typeof value === "number");
  const latest = numbers(MEAN_LAG).at(-1);
  return latest === undefined ? null : { latest, most: Math.max(latest, ...numbers(MOST_LAG)) };
}

/**
 * Before its first update the trainer holds the weights that sampled: any other ratio than 1, or kl than 0, is a fault in
 * how samples travel.
 */
export function firstStep(series: readonly StepMetrics[]) {
  const values = series.find(({ step }) => step === 1)?.values ?? {};
  return { ratio_max_abs_error: values[RATIO_ERROR] ?? null, kl: values[KL] ?? null };
}
