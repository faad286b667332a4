/**
 * The scorers `numeric` and `numeric_diff`: the last number of the output against the reference. Without a number it is
 * 0. Numbers are compared by their digits: two of them may have one double.
 */

import { isOpen, plainDecimals, plainTypography, withoutDenied } from "@rollcall/math-equivalence";
import * as z from "zod";
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

/** A number that was read: exactly `over / under`. `decimals`: to how many places behind the point it is written. */
interface ReadNumber {
  readonly value: number;
  readonly over: bigint;
  readonly under: bigint;
  readonly decimals: number;
}

/** Sign, digits and exponent. No double has more than 309 digits before its point, and no more is read. */
const DIGITS = /^([+-]?)(\d{0,400})(?:\.(\d{0,400}))?(?:e([+-]?\d{1,3}))?$/i;

function distance(a: ReadNumber, b: ReadNumber): number {
  const [left, right] = [a.over * b.under, b.over * a.under];
  return quotient(left < right ? right - left : left - right, a.under * b.under);
}

/** Digits of a quotient, more than a double keeps. */
const PLACES = 20;

/** Neither number need be a double of its own. */
function quotient(over: bigint, under: bigint): number {
  const places = PLACES + Math.max(0, String(under).length - String(over).length);
  return Number(`${(over * 10n ** BigInt(places)) / under}e-${places}`);
}

/** Half a unit of the last place of the one that is written to fewer places. */
function halfUnit(a: ReadNumber, b: ReadNumber): number {
  return Number(`5e-${Math.min(a.decimals, b.decimals) + 1}`);
}

/** Exponents in the characters for them: `10⁹`. */
const RAISED = /(?<=\d)[⁻⁰¹²³⁴-⁹]{1,4}/g;
/** `2 × 10^9` */
const POWER_OF_TEN = /(?:(?<=\d)\s?(?:[×*·]|\\times|\\cdot)\s?|(?<![\w.,]))10\^(?:\{(-?\d{1,3})\}|(-?\d{1,3}))/g;

/** A text with its numbers in the spelling that `NUMBER` reads. */
function plain(text: string): string {
  const raised = text.replace(RAISED, (exponent) => `^${exponent.normalize("NFKD")}`);
  return plainTypography(plainDecimals(raised)).replace(
    POWER_OF_TEN,
    (_all, braced: string | undefined, bare: string | undefined, at: number, whole: string) =>
      `${/\d/.test(whole[at - 1] ?? "") ? "" : "1"}e${braced ?? bare}`,
  );
}

/** Characters before and after a number that say whether it is open. */
const BESIDE = 60;

/**
 * The last number of a text that it does not deny ("20, not 18"); null when it holds none, or leaves it open: "less than
 * 18", "18 or 20". A minus after a digit or a letter is no sign.
 */
function lastNumber(text: string): ReadNumber | null {
  const said = withoutDenied(plain(text));
  let last: RegExpExecArray | undefined;
  // One at a time: a reply may be nothing but numbers.
  for (const number of said.matchAll(NUMBER)) last = number;
  if (last === undefined) return null;
  const end = last.index + last[0].length;
  if (isOpen(said.slice(Math.max(0, last.index - BESIDE), last.index), said.slice(end, end + BESIDE))) return null;
  return readNumber(last[0]);
}

/** The number that a reference is. */
function referenceNumber(reference: string): ReadNumber {
  const read = readNumber(plain(reference).trim().replace(/^\$/, ""));
  if (read !== null) return read;
  throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is not a number`);
}

/** Of a fraction, which has no last place. */
const MOST_DECIMALS = 300;
/** Commas where they separate thousands. */
const GROUPED = /^[-+]?\d{1,3}(?:,\d{3})+(?![\d,])/;

/** Null for what is not a number, and for what is larger than every double. */
function readNumber(text: string): ReadNumber | null {
  const [above = "", below] = (GROUPED.test(text) ? text.replaceAll(",", "") : text).split("/");
  const [over, divisor] = [readDecimal(above), below === undefined ? undefined : readDecimal(below)];
  if (over === null || divisor === null || divisor?.over === 0n) return null;
  if (divisor === undefined) return over;
  const value = over.value / divisor.value;
  if (!Number.isFinite(value)) return null;
  return { value, over: over.over * divisor.under, under: over.under * divisor.over, decimals: MOST_DECIMALS };
}

function readDecimal(text: string): ReadNumber | null {
  const [, sign, whole = "", fraction = "", exponent = "0"] = DIGITS.exec(text) ?? [];
  const value = Number(text);
  if (whole + fraction === "" || !Number.isFinite(value)) return null;
  const digits = BigInt(whole + fraction) * (sign === "-" ? -1n : 1n);
  const places = fraction.length - Number(exponent);
  const scale = 10n ** BigInt(Math.abs(places));
  const [over, under] = places < 0 ? [digits * scale, 1n] : [digits, scale];
  return { value, over, under, decimals: Math.max(0, places) };
}
