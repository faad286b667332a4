/**
 * The scorers `numeric` and `numeric_diff`: the last number of the output against the reference. Without a number it is
 * 0.
 */
import * as z from "zod";
import { plainTypography } from "../../../../packages/math-equivalence/typography.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

/** 1 when they differ by no more than `absolute`, or than `relative` times the reference. */
export const numeric = scorer(
  z.strictObject({
    absolute: z.number().min(0).default(0),
    /** The default forgives the rounding of doubles and nothing else. */
    relative: z.number().min(0).default(1e-9),
  }),
  ({ absolute, relative }) =>
    (output, reference) => {
      const expected = referenceNumber(reference);
      const said = lastNumber(output);
      if (said === null) return 0;
      return Math.abs(said - expected) <= Math.max(absolute, relative * Math.abs(expected)) ? 1 : 0;
    },
);

/** `1 − |e − o| / (|e| + |o|)`, and 1 when both are 0. As autoevals' NumericDiff. */
export const numericDiff = scorer(z.strictObject({}), () => (output, reference) => {
  const expected = referenceNumber(reference);
  const said = lastNumber(output);
  return said === null ? 0 : closeness(said, expected);
});

/** How near two numbers are, from 0 to 1. */
export function closeness(a: number, b: number): number {
  if (a === b) return 1;
  // Halved first: the sum of two large numbers may be no number any more.
  return 1 - Math.abs(a / 2 - b / 2) / (Math.abs(a) / 2 + Math.abs(b) / 2);
}

/** Numbers in texts: `1,234.5`, `-3`, `2e5`, `$18`. */
const NUMBER = /(?:(?<![\w)])[-+])?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?/g;

/** The last number of a text; null when it holds none. A minus after a digit or a letter is no sign. */
function lastNumber(text: string): number | null {
  let last: string | undefined;
  // One at a time: a reply may be nothing but numbers.
  for (const [number] of plainTypography(text).matchAll(NUMBER)) last = number;
  const value = last === undefined ? Number.NaN : asNumber(last);
  return Number.isFinite(value) ? value : null;
}

/** The number that a reference is. */
function referenceNumber(reference: string): number {
  const plain = plainTypography(reference).trim();
  const value = asNumber(plain.replace(/^\$/, ""));
  if (plain !== "" && Number.isFinite(value)) return value;
  throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is no number`);
}

function asNumber(text: string): number {
  return Number(text.replaceAll(",", ""));
}
