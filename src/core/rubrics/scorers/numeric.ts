/** Numbers: the last one of the output against the reference. An output without a number scores 0. */
import * as z from "zod";
import { lastNumber, referenceNumber } from "./number-text.ts";
import { scorer } from "./scorer.ts";

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
