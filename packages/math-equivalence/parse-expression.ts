/**
 * Reads one expression, by precedence: sums, products (written or not), signs, powers, what follows a value, values.
 *
 * Invariants. The grammar is closed: no name runs anything. Every value and every bracket is a counted node, so depth
 * is bounded too. A whole number right before a proper fraction of whole numbers is a mixed number: `1\frac{1}{2}` is
 * 3/2.
 */

import { type Budget, refuseDigits } from "./budget.ts";
import { add, MINUS_ONE, power, type Rational, rational, same, whole } from "./rational.ts";
import { type CallName, type Expression, FUNCTIONS, MathSyntaxError } from "./syntax.ts";
import type { Cursor } from "./tokens.ts";

export function parseExpression(cursor: Cursor): Expression {
  const parts = [parseTerm(cursor)];
  while (cursor.isMark("+", "-")) {
    const minus = cursor.take().text === "-";
    const term = parseTerm(cursor);
    parts.push(minus ? negate(term) : term);
  }
  return onlyPart(parts) ?? { kind: "sum", parts };
}

function parseTerm(cursor: Cursor): Expression {
  let term = parseSigned(cursor);
  for (;;) {
    if (cursor.takeMark("*")) term = times(term, parseSigned(cursor));
    else if (cursor.takeMark("/")) {
      term = { kind: "quotient", over: term, under: parseSigned(cursor) };
    } else if (startsValue(cursor)) term = times(term, parsePower(cursor));
    else return term;
  }
}

function parseSigned(cursor: Cursor): Expression {
  cursor.budget.node();
  if (cursor.takeMark("-")) return negate(parseSigned(cursor));
  if (cursor.takeMark("+")) return parseSigned(cursor);
  return parsePower(cursor);
}

function parsePower(cursor: Cursor): Expression {
  return withSuffixes(cursor, parseValue(cursor));
}

/** `^`, `!`, `%` and a degree sign bind to the value before them. */
function withSuffixes(cursor: Cursor, value: Expression): Expression {
  if (cursor.takeMark("!")) return withSuffixes(cursor, call(cursor, "factorial", value));
  if (cursor.takeMark("%")) return withSuffixes(cursor, times(value, symbol("percent")));
  if (!cursor.takeMark("^")) return value;
  if (takeDegree(cursor)) return withSuffixes(cursor, times(value, DEGREE));
  return { kind: "power", base: value, exponent: parseExponent(cursor) };
}

const DEGREE: Expression = {
  kind: "quotient",
  over: symbol("pi"),
  under: { kind: "number", value: whole(180n) },
};

function takeDegree(cursor: Cursor): boolean {
  if (cursor.takeMark("circ")) return true;
  if (!cursor.isMark("{") || cursor.peek(1).text !== "circ") return false;
  cursor.take();
  cursor.take();
  cursor.expect("}");
  return true;
}

/** A group, or a signed value with powers of its own: powers are read from the right. */
function parseExponent(cursor: Cursor): Expression {
  cursor.budget.node();
  if (cursor.takeMark("-")) return negate(parseExponent(cursor));
  if (cursor.isMark("{")) return withSuffixes(cursor, parseGroup(cursor));
  return parsePower(cursor);
}

/** Whether a value may follow without a sign for the product. A number may not: `2 3` is no product. */
function startsValue(cursor: Cursor): boolean {
  if (cursor.next.kind === "name") return true;
  if (cursor.isMark("|")) return cursor.bars === 0;
  return cursor.isMark("(", "[", "{", "frac", "sqrt", "binom", "lfloor", "lceil");
}

function parseValue(cursor: Cursor): Expression {
  cursor.budget.node();
  const token = cursor.take();
  if (token.kind === "number") return numberFrom(cursor, token.text);
  if (token.kind === "name") return parseName(cursor, token.text);
  switch (token.text) {
    case "(":
      return parseUntil(cursor, ")");
    case "[":
      return parseUntil(cursor, "]");
    case "{":
      return parseUntil(cursor, "}");
    case "|":
      return parseBars(cursor);
    case "lfloor":
      return call(cursor, "floor", parseUntil(cursor, "rfloor"));
    case "lceil":
      return call(cursor, "ceil", parseUntil(cursor, "rceil"));
    case "frac":
      return { kind: "quotient", over: parseArgument(cursor), under: parseArgument(cursor) };
    case "binom":
      return call(cursor, "binomial", parseArgument(cursor), parseArgument(cursor));
    case "sqrt":
      return parseRoot(cursor);
    default:
      throw new MathSyntaxError(`unexpected ${token.text}`);
  }
}

/** What stands before a closing bracket. Inside brackets a bar opens again. */
function parseUntil(cursor: Cursor, close: string): Expression {
  const outer = cursor.bars;
  cursor.bars = 0;
  const inner = parseExpression(cursor);
  cursor.expect(close);
  cursor.bars = outer;
  return inner;
}

function parseBars(cursor: Cursor): Expression {
  cursor.bars += 1;
  const inner = parseExpression(cursor);
  cursor.expect("|");
  cursor.bars -= 1;
  return call(cursor, "abs", inner);
}

function parseRoot(cursor: Cursor): Expression {
  const index = cursor.takeMark("[") ? parseUntil(cursor, "]") : undefined;
  const base = cursor.isMark("(") ? parseValue(cursor) : parseArgument(cursor);
  const one: Expression = { kind: "number", value: whole(1n) };
  const under: Expression = index ?? { kind: "number", value: whole(2n) };
  return { kind: "power", base, exponent: { kind: "quotient", over: one, under } };
}

/** A group in braces, or one sign: `\frac12` is a half. */
function parseArgument(cursor: Cursor): Expression {
  if (cursor.isMark("{")) return parseGroup(cursor);
  cursor.budget.node();
  if (cursor.next.kind === "number") return numberFrom(cursor, cursor.takeDigit());
  return parseValue(cursor);
}

function parseGroup(cursor: Cursor): Expression {
  cursor.budget.node();
  cursor.expect("{");
  return parseUntil(cursor, "}");
}

/** A function with its argument, or a symbol with its index. */
function parseName(cursor: Cursor, name: string): Expression {
  const known = FUNCTIONS.find((candidate) => candidate === name);
  if (known === undefined && name !== "abs") return parseIndexed(cursor, name);
  const base = known === "log" && cursor.takeMark("_") ? parseArgument(cursor) : undefined;
  const exponent = cursor.takeMark("^") ? parseExponent(cursor) : undefined;
  const argument = parseFunctionArgument(cursor);
  const args = known === "log" ? [argument, base ?? TEN] : [argument];
  return applyFunction(cursor, known ?? "abs", args, exponent);
}

const TEN: Expression = { kind: "number", value: whole(10n) };
const INVERSES = new Map<CallName, CallName>([
  ["sin", "arcsin"],
  ["cos", "arccos"],
  ["tan", "arctan"],
]);

/** `\sin^2 x` is a power of the sine; `\sin^{-1} x` is the arcsine. */
function applyFunction(
  cursor: Cursor,
  name: CallName,
  args: readonly Expression[],
  exponent: Expression | undefined,
): Expression {
  const inverse = INVERSES.get(name);
  if (inverse !== undefined && isMinusOne(exponent)) return call(cursor, inverse, ...args);
  const value = call(cursor, name, ...args);
  return exponent === undefined ? value : { kind: "power", base: value, exponent };
}

/** Brackets, or what is multiplied without a sign, up to the next function: `\sin 2x \cos x` is a product of two. */
function parseFunctionArgument(cursor: Cursor): Expression {
  if (cursor.isMark("(", "[", "{")) return parseValue(cursor);
  let argument = cursor.takeMark("-") ? negate(parsePower(cursor)) : parsePower(cursor);
  while (startsValue(cursor) && !isFunctionName(cursor.next.text)) {
    argument = times(argument, parsePower(cursor));
  }
  return argument;
}

/** `x_1`, `a_{n+1}`: the index belongs to the name. */
function parseIndexed(cursor: Cursor, name: string): Expression {
  return symbol(cursor.takeMark("_") ? `${name}_${cursor.takeIndex()}` : name);
}

/** A decimal, a mixed number, or digits to a base, which are a name of their own: `101_2` is not 101. */
function numberFrom(cursor: Cursor, text: string): Expression {
  if (cursor.takeMark("_")) return symbol(`${text}_${cursor.takeIndex()}`);
  const value = readDecimal(cursor.budget, text);
  const fraction = /^\d+$/.test(text) ? takeProperFraction(cursor) : null;
  return { kind: "number", value: fraction === null ? value : add(cursor.budget, value, fraction) };
}

function symbol(name: string): Expression {
  return { kind: "symbol", name };
}

function call(cursor: Cursor, name: CallName, ...args: readonly Expression[]): Expression {
  cursor.budget.node();
  return { kind: "call", name, args };
}

function negate(expression: Expression): Expression {
  return times({ kind: "number", value: MINUS_ONE }, expression);
}

/** Products read from left to right make one list, not a tower. */
function times(left: Expression, right: Expression): Expression {
  const before = left.kind === "product" ? left.parts : [left];
  return { kind: "product", parts: [...before, right] };
}

function onlyPart(parts: readonly Expression[]): Expression | undefined {
  return parts.length === 1 ? parts[0] : undefined;
}

function isFunctionName(name: string): boolean {
  return FUNCTIONS.some((known) => known === name);
}

function isMinusOne(exponent: Expression | undefined): boolean {
  const [sign, one, ...more] = exponent?.kind === "product" ? exponent.parts : [];
  return more.length === 0 && isNumber(sign, -1n) && isNumber(one, 1n);
}

function isNumber(expression: Expression | undefined, value: bigint): boolean {
  return expression?.kind === "number" && same(expression.value, whole(value));
}

const DECIMAL = /^(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/;

/** Reads written numbers exactly: 0.1 is 1/10. */
function readDecimal(budget: Budget, text: string): Rational {
  refuseDigits(text.length - 1);
  const [, before = "", after = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  if (before === "" && after === "") throw new MathSyntaxError(`${text} is no number`);
  const scale = power(budget, whole(10n), BigInt(exponent) - BigInt(after.length));
  return rational(budget, BigInt(before + after) * scale.over, scale.under);
}

/** The fraction of a mixed number, where one stands: `\frac{1}{2}`, `\frac12` or `1/2`, below 1. */
function takeProperFraction(cursor: Cursor): Rational | null {
  const found = findFraction(cursor);
  if (found === null) return null;
  const [over, under] = [readDecimal(cursor.budget, found.over), readDecimal(cursor.budget, found.under)];
  if (over.under !== 1n || under.under !== 1n || over.over >= under.over) return null;
  cursor.skip(found.tokens);
  return rational(cursor.budget, over.over, under.over);
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
