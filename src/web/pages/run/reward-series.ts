/** How the reward of a training is drawn: its series, its band and its smoothing. Pure. */
import type { Histogram } from "../../../contract/rollout-list.ts";
import type { Series } from "../../components/plot-point.ts";
import { type RunSeries, smooth } from "./series.ts";

/** The weights of the past that a reader may choose. */
export const SMOOTHING = ["0", "0.6", "0.8", "0.9", "0.95", "0.99"] as const;
const REWARD = "train/agg/all/reward";

export function smoothingOf(text: string | undefined): string {
  return SMOOTHING.find((one) => one === text) ?? "0.6";
}

/** Whether every reward so far is 0 or 1. */
export function isBinary({ whole, bins }: Pick<Histogram, "whole" | "bins">): boolean {
  const used = bins.filter(({ n }) => n > 0);
  return whole && used.length > 0 && used.every(({ from, to }) => from >= 0 && to <= 2);
}

export function rewardSeries(series: RunSeries, weight: number, isShare: boolean): readonly Series[] {
  const mean = series.of(`${REWARD}/mean`);
  const clipped = (name: string) =>
    series.of(`${REWARD}/${name}`).map((value) => (value === null ? null : Math.max(0, Math.min(1, value))));
  const band = isShare
    ? { low: clipped("ci95_low"), high: clipped("ci95_high") }
    : { low: series.of(`${REWARD}/p10`), high: series.of(`${REWARD}/p90`) };
  const measured = { name: isShare ? "share of the step" : "mean of the step", values: mean, ...band };
  const others = series.names
    .filter((name) => /^eval\/.*\/reward$/.test(name))
    .map((name) => ({
      name: `held out: ${name.split("/").slice(1, -1).join("/")}`,
      values: series.of(name),
    }));
  if (weight === 0) return [measured, ...others];
  return [measured, { name: `smoothed by ${weight}`, values: smooth(mean, weight) }, ...others];
}
