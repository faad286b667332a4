/**
 * The scorers `numeric` and `numeric_diff`: compare the last number of the output with the reference. An output without
 * a number scores 0. Numbers are compared by their digits, because two numbers may have the same double.
 */

import { isOpen, plainDecimals, plainTypography, withoutDenied } from "@rollcall/math-equivalence";
import * as z from "zod";
import { MalformedReferenceError, scorer } from "./scorer.ts";

/** Tolerance for the rounding of doubles. */
const ROUNDING = 1e-9;

/** 1 if they differ by at most `absolute`, or by at most `relative` times the reference. */
export const numeric = scorer(
  z.strictObject({
    absolute: z.number().min(0).default(0),
    /** By default `ROUNDING`, but at most half a unit of the last decimal place that both have. */
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

/** `1 − |e − o| / (|e| + |o|)`, and 1 if both are 0. As autoevals' NumericDiff. */
export const numericDiff = scorer(z.strictObject({}), () => (output, reference) => {
  const expected = referenceNumber(reference);
  const said = lastNumber(output);
  if (said === null) return 0;
  const score = closeness(said.value, expected.value);
  return distance(said, expected) > 0 ? Math.min(score, BELOW_ONE) : score;
});

/** The highest score of two different numbers. */
const BELOW_ONE = 1 - Number.EPSILON / 2;

/** The closeness of two numbers, from 0 to 1. */
export function closeness(a: number, b: number): number {
  if (a === b) return 1;
  // Halved first: the sum of two large numbers may be infinite.
  return Math.min(1 - Math.abs(a / 2 - b / 2) / (Math.abs(a) / 2 + Math.abs(b) / 2), BELOW_ONE);
}

/** Numbers in texts: `1,234.5`, `-3`, `2e5`, `$18`, `3/4`. `3,14` is ambiguous: one number or two. */
const NUMBER =
  /(?<!±\s?)(?:(?<![\w)])[-+])?(?:(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+(?:,\d+)*)(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?(?:\/\d+(?![\d/.]))?/g;

/** A parsed number: exactly `over / under`. `decimals`: the number of decimal places it is written with. */
interface ReadNumber {
  readonly value: number;
  readonly over: bigint;
  readonly under: bigint;
  readonly decimals: number;
}

/** Sign, digits and exponent. No double has more than 309 digits before its point; longer ones are not parsed. */
const DIGITS = /^([+-]?)(\d{0,400})(?:\.(\d{0,400}))?(?:e([+-]?\d{1,3}))?$/i;

function distance(a: ReadNumber, b: ReadNumber): number {
  const [left, right] = [a.over * b.under, b.over * a.under];
  return quotient(left < right ? right - left : left - right, a.under * b.under);
}

/** Digits of a quotient: more than a double has. */
const PLACES = 20;

/** Divides bigints that may be too large for a double. */
function quotient(over: bigint, under: bigint): number {
  const places = PLACES + Math.max(0, String(under).length - String(over).length);
  return Number(`${(over * 10n ** BigInt(places)) / under}e-${places}`);
}

/** Half a unit of the last place of the number with fewer decimal places. */
function halfUnit(a: ReadNumber, b: ReadNumber): number {
  return Number(`5e-${Math.min(a.decimals, b.decimals) + 1}`);
}

/** Exponents in superscript: `10⁹`. */
const RAISED = /(?<=\d)[⁻⁰¹²³⁴-⁹]{1,4}/g;
/** `2 × 10^9` */
const POWER_OF_TEN = /(?:(?<=\d)\s?(?:[×*·]|\\times|\\cdot)\s?|(?<![\w.,]))10\^(?:\{(-?\d{1,3})\}|(-?\d{1,3}))/g;

/** A text with its numbers in the notation that `NUMBER` matches. */
function plain(text: string): string {
  const raised = text.replace(RAISED, (exponent) => `^${exponent.normalize("NFKD")}`);
  return plainTypography(plainDecimals(raised)).replace(
    POWER_OF_TEN,
    (_all, braced: string | undefined, bare: string | undefined, at: number, whole: string) =>
      `${/\d/.test(whole[at - 1] ?? "") ? "" : "1"}e${braced ?? bare}`,
  );
}

/** Characters before and after a number that are checked for words which leave it open. */
const BESIDE = 60;

/**
 * The last number of a text that is not denied ("20, not 18"); null if there is none, or it is left open: "less than
 * 18", "18 or 20". A minus after a digit or a letter is not a sign.
 */
function lastNumber(text: string): ReadNumber | null {
  const said = withoutDenied(plain(text));
  let last: RegExpExecArray | undefined;
  // One at a time: a reply may consist of numbers only.
  for (const number of said.matchAll(NUMBER)) last = number;
  if (last === undefined) return null;
  const end = last.index + last[0].length;
  if (isOpen(said.slice(Math.max(0, last.index - BESIDE), last.index), said.slice(end, end + BESIDE))) return null;
  return readNumber(last[0]);
}

/** The number in a reference. */
function referenceNumber(reference: string): ReadNumber {
  const read = readNumber(plain(reference).trim().replace(/^\$/, ""));
  if (read !== null) return read;
  throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is not a number`);
}

/** The decimal places of a fraction, which has no last place. */
const MOST_DECIMALS = 300;
/** Commas that separate thousands. */
const GROUPED = /^[-+]?\d{1,3}(?:,\d{3})+(?![\d,])/;

/** Null if the text is not a number, or the number is larger than every double. */
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
