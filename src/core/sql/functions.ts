/**
 * What SQLite's functions make of texts: how long their results may be, and what a call costs.
 *
 * Invariant. Both are from above. A function that is not named here reads its arguments once, and its result is no
 * longer than they are together (an escaped character of JSON: six).
 */
import { LIMITS } from "../../contract/limits.ts";

/** Bytes of a value: at most, and on the average of all the rows it is taken from. */
export interface Length {
  readonly most: number;
  readonly mean: number;
}

/** A number as text. */
export const NUMBER: Length = { most: 25, mean: 25 };
export const LONGEST: Length = { most: LIMITS.sqlValueBytes, mean: LIMITS.sqlValueBytes };

export interface Argument extends Length {
  /** What it is, where the statement says so. */
  readonly text: string | null;
  readonly number: number | null;
}

interface Call {
  readonly length: Length;
  /** Bytes that a call looks at, on the average. */
  readonly looks: number;
}

export function lengthOf(most: number, mean = most): Length {
  const longest = LIMITS.sqlValueBytes;
  return { most: Math.min(most, longest), mean: Math.min(mean, longest) };
}

export function sumOf(lengths: readonly Length[]): Length {
  const sum = (pick: (length: Length) => number) => lengths.reduce((total, length) => total + pick(length), 0);
  return lengthOf(
    sum(({ most }) => most),
    sum(({ mean }) => mean),
  );
}

export function longerOf(one: Length, other: Length): Length {
  return { most: Math.max(one.most, other.most), mean: Math.max(one.mean, other.mean) };
}

function times({ most, mean }: Length, factor: number, more = 16): Length {
  return lengthOf(most * factor + more, mean * factor + more);
}

const none: Argument = { ...NUMBER, text: null, number: null };

/** `name` in lower case. Of a function of any number of arguments, some may stand here that are not its own. */
export function callOf(name: string, args: readonly Argument[]): Call {
  const all = sumOf(args);
  const [x = none, y = none, z = none] = args;
  switch (name) {
    case "zeroblob":
    case "randomblob": {
      const made = x.number === null ? LONGEST : lengthOf(Math.max(1, x.number));
      return { length: made, looks: made.most };
    }
    case "hex":
    case "quote":
      return linear(all, times(x, 2));
    case "char":
      return linear(all, lengthOf(4 * args.length));
    case "replace":
      return {
        length: times(x, Math.max(1, z.most)),
        looks: x.mean * (1 + y.most / 8) + x.mean * Math.max(1, z.most),
      };
    case "printf":
    case "format":
      return linear(all, formatLength(x.text, all));
    case "strftime":
      return linear(all, times(x, 32, 64));
    case "json_pretty":
      return linear(all, LONGEST);
    case "instr":
      return { length: NUMBER, looks: x.mean * (1 + y.most / 8) };
    // Of these the pattern comes first, and is short: SQLite refuses others.
    case "like":
    case "glob":
      return { length: NUMBER, looks: y.mean * (2 + 2 * Math.min(x.most, LIMITS.sqlPatternBytes)) };
    case "trim":
    case "ltrim":
    case "rtrim":
      return { length: x, looks: x.mean * (1 + (y === none ? 1 : y.most)) };
    case "json_patch":
    case "jsonb_patch":
      return { length: all, looks: all.mean + x.mean * (1 + y.most / 8) };
    case "coalesce":
    case "ifnull":
    case "iif":
    case "if":
    case "nullif":
    case "min":
    case "max":
      return { length: args.reduce<Length>(longerOf, NUMBER), looks: all.mean };
    case "concat_ws":
      return linear(all, times(all, 1, x.most * args.length));
    default:
      return other(name, args, all);
  }
}

function other(name: string, args: readonly Argument[], all: Length): Call {
  // They read the text of a table, a view or a trigger as SQL.
  if (name.startsWith("sqlite_")) return { length: times(all, 2), looks: 64 * all.mean };
  if (!name.startsWith("json")) return linear(all, times(all, 1));
  // A path is looked for in the whole text, each anew.
  const looks = /_(array|object|quote)$/.test(name) ? all.mean : all.mean * args.length;
  return { length: times(all, /_(array|object|quote)$/.test(name) ? 6 : 1, 64), looks };
}

function linear(all: Length, length: Length): Call {
  return { length, looks: all.mean + length.mean };
}

/** A width or a precision may ask for any length: it must be short, and stand in the statement. */
function formatLength(format: string | null, all: Length): Length {
  if (format === null || /\*|\d{4}/.test(format)) return LONGEST;
  const fields = format.split("%").length;
  // Two texts of up to 999 characters, or a number of a few hundred digits; %q doubles its quotes.
  return times(all, 2, fields * 2400);
}

/** Whether an aggregate's result grows with its rows. */
export function gathers(name: string): boolean {
  return /^(group_concat|string_agg|jsonb?_group_)/.test(name);
}
