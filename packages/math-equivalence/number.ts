/** Reads an answer that is one number, with any unit: for datasets whose answers are numbers only. */
import { Budget, OverBudgetError } from "./budget.ts";
import { functionNames } from "./names.ts";
import { normalise } from "./normalise.ts";
import { parseAnswer } from "./parse-answer.ts";
import { rationalOf, UndefinedValueError } from "./quotient.ts";
import { type Rational, same, text as textOf } from "./rational.ts";
import { Ring } from "./ring.ts";
import { Simplifier } from "./simplify.ts";
import type { Answer, Expression } from "./syntax.ts";
import type { Token } from "./token.ts";
import { tokenize } from "./tokens.ts";
import { plainDecimals } from "./typography.ts";

/** A number with its unit is shorter, and takes fewer steps to compute. */
const MOST_CHARACTERS = 1000;
const MOST_STEPS = 2000;

/** `18 m`, `18 dollars a day`: letters after a blank are words, not factors, unless they are constants. */
const WORDS = /(?<= )(?:[a-df-hj-zA-Z]|[A-Za-z]{2,30})(?![A-Za-z\\({^_'])/g;

/** `20 squared`, `2 thirds`, `twice 20` */
const IS_TERM =
  /\d\s?(?:\\(?:text|mathrm)\{\s{0,3})?(?:squared|cubed|halves|thirds|fourths|fifths|sixths|eighths|tenths)\b|\b(?:twice|double|triple|thrice|half of|over|under|up to|at least|at most|between)\s?\}?\s?\\?\$?\d/i;

/**
 * The number in one spelling, `18.5` or `-7/3`: of `1{,}600`, `\$18`, `18\text{ dollars}`, `18.50`, `18\%`, `x = 18`,
 * `\frac{37}{2}`. Null if the text is not a number, or more than one.
 */
export function readNumber(text: string): string | null {
  if (text.length > MOST_CHARACTERS) return null;
  const plain = normalise(plainDecimals(text));
  if (IS_TERM.test(plain)) return null;
  const tokens = tokenize(/\d/.test(plain) ? plain.replace(WORDS, "\\text{$&}") : plain);
  return numberAlone(tokens) ?? calculated(tokens.filter(({ text: mark }) => mark !== "%"));
}

/**
 * A label, a currency sign, the number (N), and its unit: words (w), units and their powers, a currency code (U),
 * percent.
 */
const NUMBER_ALONE = /^(?:w+:)?[{(]*[U$]?([-+]?)\$?[{(]*N(?:[$%wU.(){}]|[/,](?=[wU])|(?<=w)\^\{?-?N\}?|\^\{?o\}?c?)*$/;

function numberAlone(tokens: readonly Token[]): string | null {
  const [, sign] = NUMBER_ALONE.exec(tokens.map(shapeOf).join("")) ?? [];
  const number = tokens.find(({ kind }) => kind === "number")?.text ?? "";
  if (sign === undefined || /e/i.test(number)) return null;
  const [whole = "", fraction = ""] = number.split(".");
  const digits = `${whole.replace(/^0+/, "") || "0"}.${fraction}`.replace(/\.?0*$/, "");
  return sign === "-" && digits !== "0" ? `-${digits}` : digits;
}

function shapeOf({ kind, text, upright }: Token): string {
  if (kind === "number") return "N";
  if (kind === "word" || upright === true) return "w";
  if (kind === "name") return /^[A-Z]{2,}$/.test(text) ? "U" : text === "C" || text === "F" ? "c" : "?";
  if (/^[＄£€¥₹₩₽₺₪₱₫₴฿円元원￥]$/.test(text)) return "$";
  return text === "circ" ? "o" : text.length === 1 ? text : "?";
}

/** The value of an expression, or of every side of an equation. */
function calculated(tokens: readonly Token[]): string | null {
  let steps = 0;
  const budget = new Budget((more) => {
    steps += more;
    if (steps > MOST_STEPS) throw new OverBudgetError(`more than ${MOST_STEPS} steps`);
  });
  try {
    const simplifier = new Simplifier(new Ring(budget));
    const values = valuesOf(parseAnswer(tokens, functionNames([tokens]), budget));
    const [first, ...others] = values.map((value) => rationalOf(simplifier.of(value)));
    if (first === undefined || !others.every((other) => other !== undefined && same(first, other))) return null;
    return spelled(first);
  } catch (thrown) {
    if (thrown instanceof OverBudgetError || thrown instanceof UndefinedValueError) return null;
    throw thrown;
  }
}

function valuesOf(answer: Answer): readonly Expression[] {
  if (answer.kind === "expression") return [answer.expression];
  if (answer.kind === "quantity") return answer.sums ? [] : [answer.expression];
  if (answer.kind !== "relation" || answer.links.some(({ sign }) => sign !== "=")) return [];
  const sides = answer.links.flatMap(({ left, right }) => [left, right]);
  return sides.flatMap((side) => (side.label === null ? valuesOf(side.answer) : []));
}

/** The most digits after the point of a number that is written as a decimal. */
const MOST_DECIMALS = 20;

function spelled(value: Rational): string {
  const { over, under } = value;
  for (let places = 0; places <= MOST_DECIMALS; places += 1) {
    const scale = 10n ** BigInt(places);
    if (scale % under !== 0n) continue;
    const padded = String(((over < 0n ? -over : over) * scale) / under).padStart(places + 1, "0");
    const point = padded.length - places;
    const decimal = places === 0 ? padded : `${padded.slice(0, point)}.${padded.slice(point)}`;
    return over < 0n ? `-${decimal}` : decimal;
  }
  return textOf(value);
}
