/** Reads written numbers exactly: 0.1 is 1/10. */
import type { Cursor } from "./cursor.ts";
import { power, type Rational, rational, whole } from "./rational.ts";
import { MathSyntaxError } from "./syntax.ts";
import { type MathWork, refuseDigits } from "./work.ts";

const DECIMAL = /^(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/;

export function readDecimal(work: MathWork, text: string): Rational {
  refuseDigits(text.length - 1);
  const [, before = "", after = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  if (before === "" && after === "") throw new MathSyntaxError(`${text} is no number`);
  const scale = power(work, whole(10n), BigInt(exponent) - BigInt(after.length));
  return rational(work, BigInt(before + after) * scale.over, scale.under);
}

/** The fraction of a mixed number, where one stands: `\frac{1}{2}`, `\frac12` or `1/2`, below 1. */
export function takeProperFraction(cursor: Cursor): Rational | null {
  const found = findFraction(cursor);
  if (found === null) return null;
  const [over, under] = [readDecimal(cursor.work, found.over), readDecimal(cursor.work, found.under)];
  if (over.under !== 1n || under.under !== 1n || over.over >= under.over) return null;
  cursor.skip(found.tokens);
  return rational(cursor.work, over.over, under.over);
}

interface Written {
  readonly over: string;
  readonly under: string;
  readonly tokens: number;
}

/** The spellings, as the marks between which the two numbers stand. */
const SPELLINGS: readonly (readonly string[])[] = [
  ["frac", "{", "", "}", "{", "", "}"],
  ["", "/", ""],
];

function findFraction(cursor: Cursor): Written | null {
  for (const spelling of SPELLINGS) {
    const tokens = spelling.map((_, at) => cursor.peek(at));
    const fits = spelling.every((mark, at) =>
      mark === "" ? tokens[at]?.kind === "number" : tokens[at]?.text === mark,
    );
    const [over, under] = tokens.filter(({ kind }) => kind === "number");
    if (fits && over && under) return { over: over.text, under: under.text, tokens: tokens.length };
  }
  const digits = cursor.peek(0).text === "frac" ? cursor.peek(1).text : "";
  const [over, under] = digits;
  if (!/^\d\d$/.test(digits) || over === undefined || under === undefined) return null;
  return { over, under, tokens: 2 };
}
