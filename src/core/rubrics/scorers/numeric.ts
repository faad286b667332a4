/**
 * The scorers `numeric` and `numeric_diff`: the last number of the output against the reference. Without a number it is
 * 0. Whole numbers past 2^53 are compared by their digits: two of them may have one double.
 */
import * as z from "zod";
import { plainTypography } from "../../../../packages/math-equivalence/typography.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

/** Forgives the rounding of doubles. Whole numbers that a text writes out are not rounded, whatever their length. */
const ROUNDING = 1e-9;
const WHOLE = /^[+-]?\d{1,400}(?:\.0*)?$/;

/** 1 when they differ by no more than `absolute`, or than `relative` times the reference. */
export const numeric = scorer(
  z.strictObject({
    absolute: z.number().min(0).default(0),
    /** By default `ROUNDING`, and 0 between two whole numbers. */
    relative: z.number().min(0).optional(),
  }),
  ({ absolute, relative }) =>
    (output, reference) => {
      const expected = referenceNumber(reference);
      const said = lastNumber(output);
      if (said === null) return 0;
      const share = relative ?? (said.isWhole && expected.isWhole ? 0 : ROUNDING);
      return distance(said, expected) <= Math.max(absolute, share * Math.abs(expected.value)) ? 1 : 0;
    },
);

/** `1 − |e − o| / (|e| + |o|)`, and 1 when both are 0. As autoevals' NumericDiff. */
export const numericDiff = scorer(z.strictObject({}), () => (output, reference) => {
  const expected = referenceNumber(reference);
  const said = lastNumber(output);
  if (said === null) return 0;
  const score = closeness(said.value, expected.value);
  return score === 1 && distance(said, expected) > 0 ? BELOW_ONE : score;
});

/** The greatest score of two numbers that differ. */
const BELOW_ONE = 1 - Number.EPSILON / 2;

/** How near two numbers are, from 0 to 1. */
export function closeness(a: number, b: number): number {
  if (a === b) return 1;
  // Halved first: the sum of two large numbers may be no number any more.
  return 1 - Math.abs(a / 2 - b / 2) / (Math.abs(a) / 2 + Math.abs(b) / 2);
}

/** Numbers in texts: `1,234.5`, `-3`, `2e5`, `$18`. */
const NUMBER = /(?:(?<![\w)])[-+])?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?/g;

/** A number that was read. `whole`: what it is, where it is written as a whole number that its double may not be. */
interface ReadNumber {
  readonly value: number;
  readonly whole: bigint | null;
  /** It is written as a whole number, of any length. */
  readonly isWhole: boolean;
}

/** From 16 digits on a double may be another number; no double has more than 309 before its point. */
const LONG_WHOLE = /^[+-]?\d{16,400}(?=(?:\.0*)?$)/;

function distance(a: ReadNumber, b: ReadNumber): number {
  const exact = a.whole !== null && b.whole !== null ? a.whole - b.whole : null;
  return Math.abs(exact === null ? a.value - b.value : Number(exact));
}

/** The last number of a text; null when it holds none. A minus after a digit or a letter is no sign. */
function lastNumber(text: string): ReadNumber | null {
  let last: string | undefined;
  // One at a time: a reply may be nothing but numbers.
  for (const [number] of plainTypography(text).matchAll(NUMBER)) last = number;
  const read = last === undefined ? null : readNumber(last);
  return read !== null && Number.isFinite(read.value) ? read : null;
}

/** The number that a reference is. */
function referenceNumber(reference: string): ReadNumber {
  const plain = plainTypography(reference).trim();
  const read = readNumber(plain.replace(/^\$/, ""));
  if (plain !== "" && Number.isFinite(read.value)) return read;
  throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is no number`);
}

function readNumber(text: string): ReadNumber {
  const plain = text.replaceAll(",", "");
  const [whole] = LONG_WHOLE.exec(plain) ?? [];
  return { value: Number(plain), whole: whole === undefined ? null : BigInt(whole), isWhole: WHOLE.test(plain) };
}
