/**
 * JSON texts whose numbers a double cannot hold. `JSON.parse` rounds 9007199254740993 to 9007199254740992 without an
 * error; the parsers here keep the digits. Source: ECMA-262, "JSON.parse source text access".
 */
import { quotedText } from "./shown-text.ts";

/** A number as it was written. `JSON.stringify` writes it back with the same digits; its type is not `number`. */
export interface RawNumber {
  readonly rawJSON: string;
}

type Context = { readonly source?: string };
interface SourceAccess {
  readonly parse: (
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context: Context) => unknown,
  ) => unknown;
  readonly rawJSON: (text: string) => RawNumber;
  readonly isRawJSON: (value: unknown) => value is RawNumber;
}
const { parse, rawJSON, isRawJSON }: SourceAccess = JSON as typeof JSON & SourceAccess;

/** Sixteen digits, with or without a point, or an exponent. A double holds every number of a text that has neither. */
const MAY_BE_INEXACT = /\d{16}|[\d.]{17}|\d[eE]/;

/** Whether parsing this text may change one of its numbers. Also true for some texts whose numbers are all kept. */
export function mayBeInexact(text: string): boolean {
  return MAY_BE_INEXACT.test(text);
}

/** `JSON.parse`, except that a number which JavaScript would write differently is kept as it was written. */
export function parseExactJson(text: string): unknown {
  return parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source ? rawJSON(source) : value,
  );
}

/**
 * `JSON.parse`, except that a number that a double does not keep (`isKept`) becomes a raw number, with the digits of
 * the text or those that `write` makes of them. Throws SyntaxError also if such a number is in a text that is nested
 * too deeply to be parsed in this way. Such a text is parsed twice; the second time takes 1 µs a character.
 */
export function parseKeepingNumbers(
  text: string,
  write: (source: string) => string = (source) => source,
  beforeReadingAgain: () => void = () => undefined,
): unknown {
  const value: unknown = JSON.parse(text);
  if (!holdsLarge(value)) return value;
  beforeReadingAgain();
  try {
    return parse(text, (_key, inner, { source }) =>
      typeof inner !== "number" || source === undefined || isKept(inner, source) ? inner : rawJSON(write(source)),
    );
  } catch (thrown) {
    if (thrown instanceof RangeError) throw new SyntaxError("it is nested too deeply", { cause: thrown });
    throw thrown;
  }
}

/** The same, for texts that are compared: equal numbers get one text, which is all digits for whole numbers. */
export function parseDigits(text: string, beforeReadingAgain?: () => void): unknown {
  return parseKeepingNumbers(text, (source) => wholeOf(source) ?? decimalOf(source), beforeReadingAgain);
}

/** Whether a number in the value is past 2^53, or raw. */
export function holdsLarge(value: unknown): boolean {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (isRawNumber(next) || (typeof next === "number" && Math.abs(next) > Number.MAX_SAFE_INTEGER)) return true;
    if (typeof next === "object" && next !== null) for (const member of Object.values(next)) open.push(member);
  }
  return false;
}

/**
 * Whether JSON written from this double has the same number as `source`, from which it was parsed. Below 2^53 the
 * rounding of a fraction is accepted; from there on each digit counts: 9007199254740994 and 6.02e23 are kept,
 * 9007199254740993, 9223372036854775808 (written back as 9223372036854776000) and 1e400 are not.
 */
export function isKept(value: number, source: string): boolean {
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return true;
  return Number.isFinite(value) && decimalOf(String(value)) === decimalOf(source);
}

/** Longest whole number that is written out, in digits. */
const MOST_DIGITS = 1000;

/** The digits of a whole number, with its sign; null if it has a fraction, or more than `MOST_DIGITS` digits. */
export function wholeOf(source: string): string | null {
  const [digits = "", power = "0"] = decimalOf(source).split("e");
  const zeros = Number(power);
  return zeros < 0 || digits.length + zeros > MOST_DIGITS ? null : digits + "0".repeat(zeros);
}

/** The error text for a number that is not kept. */
export function inexactMessage(source: string): string {
  const number = /^-?\d+(\.0*)?$/.test(source) ? "the whole number" : "the number";
  const why = Number.isFinite(Number(source))
    ? "has too many digits to be stored exactly"
    : "is too large to be stored";
  return `${number} ${quotedText(source, 60)} ${why}`;
}

/** The first raw number in a value, with its path as `findOddity` writes it. Searches down to `depth` levels. */
export function findRawNumber(value: unknown, path: string, depth = 100): { path: string; source: string } | null {
  if (isRawNumber(value)) return { path, source: value.rawJSON };
  if (typeof value !== "object" || value === null || depth === 0) return null;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member !== "object" || member === null) continue;
    const inner = Array.isArray(value) ? `${path}[${name}]` : `${path}${path === "" ? "" : "."}${name}`;
    const found = findRawNumber(member, inner, depth - 1);
    if (found !== null) return found;
  }
  return null;
}

/** Longest exponent that is computed with, in digits: parsing one takes the square of its length. Longer ones stay. */
const MOST_EXPONENT = 20;

/** A canonical form: equal numbers have equal texts, whatever their zeros and exponents. */
export function decimalOf(source: string): string {
  const negative = source.startsWith("-");
  const [mantissa = "", exponent = "0"] = source
    .slice(negative ? 1 : 0)
    .toLowerCase()
    .split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  let [from, to] = [0, digits.length];
  while (digits[from] === "0") from += 1;
  while (to > from && digits[to - 1] === "0") to -= 1;
  if (from === to) return "0";
  const raised = exponent.replace(/^\+?(-?)0*(?=\d)/, "$1");
  const isLong = raised.length > MOST_EXPONENT;
  const power = isLong ? raised : BigInt(raised) - BigInt(fraction.length) + BigInt(digits.length - to);
  return `${negative ? "-" : ""}${digits.slice(from, to)}e${power}`;
}

/** Throws SyntaxError if the text is not a JSON number. */
export function rawNumber(source: string): RawNumber {
  return rawJSON(source);
}

export function isRawNumber(value: unknown): value is RawNumber {
  return isRawJSON(value);
}
