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

/** What the band around the mean reward is; null if none is drawn. */
export type Band = "interval" | "percentiles" | null;

/**
 * The 95 % interval of the mean. Steps of earlier releases do not have it: percentiles are drawn then, unless every
 * reward is 0 or 1, because they would fill the whole chart.
 */
export function bandOf(series: RunSeries, isShare: boolean): Band {
  if (series.names.includes(`${REWARD}/ci95_low`)) return "interval";
  return isShare ? null : "percentiles";
}

/** `best`: the best possible reward, drawn as a level; undefined if the environment does not declare it. */
export function rewardSeries(
  series: RunSeries,
  weight: number,
  isShare: boolean,
  best: number | undefined,
): readonly Series[] {
  const mean = series.of(`${REWARD}/mean`);
  const measured = {
    name: isShare ? "share of the step" : "mean of the step",
    values: mean,
    ...edges(series, isShare),
  };
  const others = series.names
    .filter((name) => /^eval\/.*\/reward$/.test(name))
    .map((name) => ({
      name: `held out: ${name.split("/").slice(1, -1).join("/")}`,
      values: series.of(name),
    }));
  const smoothed = weight === 0 ? [] : [{ name: `smoothed by ${weight}`, values: smooth(mean, weight) }];
  const level = best === undefined ? [] : [{ name: "best possible", values: series.steps.map(() => best) }];
  return [measured, ...smoothed, ...others, ...level];
}

function edges(series: RunSeries, isShare: boolean): Pick<Series, "low" | "high"> {
  const band = bandOf(series, isShare);
  if (band === null) return {};
  if (band === "percentiles") return { low: series.of(`${REWARD}/p10`), high: series.of(`${REWARD}/p90`) };
  const within = (value: number | null) => (value === null || !isShare ? value : Math.max(0, Math.min(1, value)));
  return {
    low: series.of(`${REWARD}/ci95_low`).map(within),
    high: series.of(`${REWARD}/ci95_high`).map(within),
  };
}
