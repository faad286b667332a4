/** The selected point of a chart: its values in words, and the point that a key selects next. Pure. */
import { numberText } from "./format.ts";

export interface Series {
  readonly name: string;
  /** Null: not measured, a gap. Undefined: another series has this point, and the line goes on across it. */
  readonly values: readonly (number | null | undefined)[];
  /** The bounds of its interval, point by point. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
}

/** `0.5 (0.25 to 0.75)`, or a note that it was not measured. At a point of another series: the value before it. */
export function valueAt({ values, low, high }: Series, at: number): string {
  let index = at;
  while (index > 0 && values[index] === undefined) index -= 1;
  const value = values[index];
  if (value === null || value === undefined) return "not measured";
  const bounds = [low?.[index], high?.[index]].filter((bound) => typeof bound === "number");
  return bounds.length === 2 ? `${numberText(value)} (${bounds.map(numberText).join(" to ")})` : numberText(value);
}

/** `step 3: mean 0.5 (0.25 to 0.75), smoothed 0.4` */
export function pointText(name: string, series: readonly Series[], index: number): string {
  return `${name}: ${series.map((one) => `${one.name} ${valueAt(one, index)}`).join(", ")}`;
}

/** The index of the point that a key selects, of `count` points; null for other keys. */
export function pointFrom(key: string, index: number, count: number): number | null {
  const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: count - 1 }[key];
  return to === undefined ? null : Math.max(0, Math.min(to, count - 1));
}
