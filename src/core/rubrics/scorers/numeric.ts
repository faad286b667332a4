/**
 * The scorers `numeric` and `numeric_diff`: the last number of the output against the reference. Without a number it is
 * 0. Numbers that are written out are compared by their digits: two of them may have one double.
 */
import * as z from "zod";
import { withoutDenied } from "../../../../packages/math-equivalence/told.ts";
import { plainDecimals, plainTypography } from "../../../../packages/math-equivalence/typography.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

/** Forgives the rounding of doubles. */
const ROUNDING = 1e-9;

/** 1 when they differ by no more than `absolute`, or than `relative` times the reference. */
export const numeric = scorer(
  z.strictObject({
    absolute: z.number().min(0).default(0),
    /** By default `ROUNDING`, and no more than half a unit of the last place that both are written to. */
    relative: z.number().min(0).optional(),
  }),
  ({ absolute, relative }) =>
    (output, reference) => {
      const expected = referenceNumber(reference);
      const said = lastNumber(output);
      if (said === null) return 0;
      const share = (relative ?? ROUNDING) * Math.abs(expected.value);
      const rounding = relative === undefined ? Math.min(share, halfUnit(said, expected)) : share;
      return distance(said, expected) <= Math.max(absolute, rounding) ? 1 : 0;
    },
);

/** `1 − |e − o| / (|e| + |o|)`, and 1 when both are 0. As autoevals' NumericDiff. */
export const numericDiff = scorer(z.strictObject({}), () => (output, reference) => {
  const expected = referenceNumber(reference);
  const said = lastNumber(output);
  if (said === null) return 0;
  const score = closeness(said.value, expected.value);
  return distance(said, expected) > 0 ? Math.min(score, BELOW_ONE) : score;
});

/** The greatest score of two numbers that differ. */
const BELOW_ONE = 1 - Number.EPSILON / 2;

/** How near two numbers are, from 0 to 1. */
export function closeness(a: number, b: number): number {
  if (a === b) return 1;
  // Halved first: the sum of two large numbers may be no number any more.
  return Math.min(1 - Math.abs(a / 2 - b / 2) / (Math.abs(a) / 2 + Math.abs(b) / 2), BELOW_ONE);
}

/** Numbers in texts: `1,234.5`, `-3`, `2e5`, `$18`, `3/4`. Of `3,14` nobody knows whether it is one number or two. */
const NUMBER =
  /(?<!±\s?)(?:(?<![\w)])[-+])?(?:(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+(?:,\d+)*)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?(?:\/\d+(?![\d/.]))?/g;

/** A number that was read. `exact`: its digits as a whole number, `decimals` of them behind the point. */
interface ReadNumber {
  readonly value: number;
  readonly exact: bigint | null;
  readonly decimals: number;
}

/** What its digits say without an exponent; no double has more than 309 before its point. */
const DIGITS = /^([+-]?\d{0,400})(?:\.(\d{0,400}))?$/;

/** Of two numbers that are written out: by their digits, for a double keeps about 16 of them. */
function distance(a: ReadNumber, b: ReadNumber): number {
  if (a.exact === null || b.exact === null) return Math.abs(a.value - b.value);
  const [left, right] = [a.exact * power(b.decimals - a.decimals), b.exact * power(a.decimals - b.decimals)];
  const apart = left < right ? right - left : left - right;
  // Divided as texts: neither side need be a double of its own.
  return Number(`${apart}e-${Math.max(a.decimals, b.decimals)}`);
}

function power(of: number): bigint {
  return 10n ** BigInt(Math.max(0, of));
}

/** Half a unit of the last place of the one that is written to fewer places. */
function halfUnit(a: ReadNumber, b: ReadNumber): number {
  return Number(`5e-${Math.min(a.decimals, b.decimals) + 1}`);
}

/** The last number of a text that it does not deny ("20, not 18"); null when it holds none. A minus after a digit or a letter is no sign. */
function lastNumber(text: string): ReadNumber | null {
  let last: string | undefined;
  // One at a time: a reply may be nothing but numbers.
  for (const [number] of withoutDenied(plainTypography(plainDecimals(text))).matchAll(NUMBER)) last = number;
  const read = last === undefined ? null : readNumber(last);
  return read !== null && Number.isFinite(read.value) ? read : null;
}

/** The number that a reference is. */
function referenceNumber(reference: string): ReadNumber {
  const plain = plainTypography(plainDecimals(reference)).trim();
  const read = readNumber(plain.replace(/^\$/, ""));
  if (plain !== "" && Number.isFinite(read.value)) return read;
  throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is no number`);
}

/** Of a fraction, which is as exact as its double. */
const MOST_DECIMALS = 300;
/** Commas where they separate thousands. */
const GROUPED = /^[-+]?\d{1,3}(?:,\d{3})+(?![\d,])/;

function readNumber(text: string): ReadNumber {
  const plain = GROUPED.test(text) ? text.replaceAll(",", "") : text;
  const [over, under] = plain.split("/");
  if (under !== undefined) return { value: Number(over) / Number(under), exact: null, decimals: MOST_DECIMALS };
  const [, whole = "", fraction = ""] = DIGITS.exec(plain) ?? [];
  const exact = /\d/.test(whole + fraction) ? BigInt(whole.replace("+", "") + fraction) : null;
  return { value: Number(plain), exact, decimals: exact === null ? 0 : fraction.length };
}
