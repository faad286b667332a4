/** The series of a training run in the form that charts need: one list of steps, and a list of values for each name. */
import type { StepMetrics } from "../../../contract/training-view.ts";

export interface RunSeries {
  /** In ascending order. */
  readonly steps: readonly number[];
  /** Every name that any step has, sorted. */
  readonly names: readonly string[];
  /** One value per step; null if it was not measured. */
  readonly of: (name: string) => readonly (number | null)[];
}

export function seriesOf(rows: readonly StepMetrics[]): RunSeries {
  const inOrder = [...rows].sort((one, other) => one.step - other.step);
  const names = [...new Set(inOrder.flatMap(({ values }) => Object.keys(values)))].sort();
  return {
    steps: inOrder.map(({ step }) => step),
    names,
    of: (name) => inOrder.map(({ values }) => values[name] ?? null),
  };
}

/**
 * An exponential moving average that starts with the first measured value: `weight` is the weight of the past, from 0
 * to below 1. A step that was not measured stays a gap.
 */
export function smooth(values: readonly (number | null)[], weight: number): (number | null)[] {
  let before: number | null = null;
  return values.map((value) => {
    if (value === null) return null;
    before = before === null ? value : weight * before + (1 - weight) * value;
    return before;
  });
}
