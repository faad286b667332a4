/** Which training learns fastest. Pure: takes the steps of each run. */
import type { StepMetrics } from "../../../contract/training-view.ts";
import { smooth } from "../run/series.ts";

/** By what the curves are drawn: steps, seconds since the run began, or tokens of the batches so far. */
export const AXES = ["step", "time", "tokens"] as const;
export type Axis = (typeof AXES)[number];

const REWARD = "train/agg/all/reward/mean";
const TOKENS = "batch/tokens";

export interface Curve {
  readonly id: string;
  /** Ascending: a step, seconds or tokens. */
  readonly at: readonly number[];
  /** The smoothed mean reward of each step; null if it was not measured. */
  readonly smoothed: readonly (number | null)[];
}

export interface Measured {
  readonly id: string;
  /** Epoch seconds. */
  readonly created_at: number;
  readonly steps: readonly StepMetrics[];
}

/** Whether every run has the data for this axis. */
export function hasAxis(axis: Axis, runs: readonly Measured[]): boolean {
  return axis !== "tokens" || runs.every(({ steps }) => steps.some(({ values }) => values[TOKENS] != null));
}

/** `weight`: the weight of the past in the smoothed rewards, from 0 to below 1. */
export function curveOf({ id, created_at, steps }: Measured, axis: Axis, weight: number): Curve {
  const inOrder = steps.filter(({ step }) => step > 0).sort((one, other) => one.step - other.step);
  const rewards = inOrder.map(({ values }) => values[REWARD] ?? null);
  return { id, at: placesOf(inOrder, axis, created_at), smoothed: smooth(rewards, weight) };
}

function placesOf(steps: readonly StepMetrics[], axis: Axis, began: number): number[] {
  let tokens = 0;
  let latest = 0;
  return steps.map(({ step, at, values }) => {
    if (axis === "step") return step;
    tokens += values[TOKENS] ?? 0;
    // A step that was written again later does not lead back in time.
    latest = Math.max(latest, at - began);
    return axis === "tokens" ? tokens : latest;
  });
}

export interface Overlay {
  readonly at: readonly number[];
  /** One list per curve; undefined at the points of other curves. */
  readonly values: readonly (readonly (number | null | undefined)[])[];
}

export function overlayOf(curves: readonly Curve[]): Overlay {
  const at = [...new Set(curves.flatMap((curve) => curve.at))].sort((one, other) => one - other);
  const values = curves.map((curve) => {
    const known = new Map(curve.at.map((place, index) => [place, curve.smoothed[index]]));
    return at.map((place) => known.get(place));
  });
  return { at, values };
}

export interface UsualLevel {
  /** Halfway between the two, in hundredths. */
  readonly level: number;
  /** The lowest of the rewards at which the curves begin, and the highest of all rewards. */
  readonly lowest: number;
  readonly highest: number;
}

/** The reward to reach if the reader chose none, from the smoothed rewards; null if nothing was measured. */
export function usualLevel(curves: readonly Curve[]): UsualLevel | null {
  const values = curves.map(({ smoothed }) => smoothed.filter((value) => value !== null));
  const first = values.flatMap(([value]) => value ?? []);
  const all = values.flat();
  if (first.length === 0) return null;
  const lowest = first.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const highest = all.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  return { level: Math.round((lowest + highest) * 50) / 100, lowest, highest };
}

export interface Learning {
  readonly id: string;
  /** Steps with a reward. */
  readonly steps: number;
  /** Smoothed rewards, and where the best one is; null if nothing was measured. */
  readonly end: number | null;
  readonly best: number | null;
  readonly best_at: number | null;
  /** Where the smoothed reward first reaches the level; null if it never does. */
  readonly reached: number | null;
  /** Change of the smoothed reward per step, by least squares; null for fewer than two steps. */
  readonly slope: number | null;
}

/** The run that reaches the level first comes first; then those with the best rewards. */
export function learningOf(curves: readonly Curve[], level: number): readonly Learning[] {
  return curves
    .map((curve) => oneLearning(curve, level))
    .sort(
      (one, other) =>
        (one.reached ?? Number.POSITIVE_INFINITY) - (other.reached ?? Number.POSITIVE_INFINITY) ||
        (other.best ?? Number.NEGATIVE_INFINITY) - (one.best ?? Number.NEGATIVE_INFINITY) ||
        0,
    );
}

function oneLearning({ id, at, smoothed }: Curve, level: number): Learning {
  const points = smoothed.flatMap((value, index) => (value === null ? [] : [{ value, at: at[index] ?? 0 }]));
  const best = points.reduce<(typeof points)[number] | null>(
    (top, point) => (top === null || point.value > top.value ? point : top),
    null,
  );
  return {
    id,
    steps: points.length,
    end: points.at(-1)?.value ?? null,
    best: best?.value ?? null,
    best_at: best?.at ?? null,
    reached: points.find(({ value }) => value >= level)?.at ?? null,
    slope: slopeOf(smoothed),
  };
}

/** Least squares over the places in the list. */
function slopeOf(rewards: readonly (number | null)[]): number | null {
  const points = rewards.flatMap((value, index) => (value === null ? [] : [{ x: index, y: value }]));
  if (points.length < 2) return null;
  const mean = (of: (point: { x: number; y: number }) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)];
  const products = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  return products / points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
}
