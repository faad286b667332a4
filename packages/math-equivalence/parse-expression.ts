/**
 * Parses one expression, by precedence: sums, products (with or without a sign), signs, powers, suffixes, values.
 *
 * Invariants: the grammar is closed: no name runs code. Every value and every bracket is a counted node, so depth is
 * bounded too. A whole number directly before a proper fraction of whole numbers is a mixed number: `1\frac{1}{2}` is
 * 3/2. This applies only at the start of a factor: in `x^2\frac{1}{2}` and `\sqrt2\frac{1}{2}` the fraction is a
 * separate factor.
 */

import { type Budget, refuseDigits } from "./budget.ts";
import { Cursor, type Reading } from "./cursor.ts";
import { add, MINUS_ONE, power, type Rational, rational, same, whole } from "./rational.ts";
import { type CallName, type Expression, FUNCTIONS, MathSyntaxError } from "./syntax.ts";
import { type Token, textOf } from "./token.ts";

/** An expression that uses all of the tokens. Throws `MathSyntaxError`. */
export function parseWhole(tokens: readonly Token[], reading: Reading): Expression {
  const cursor = new Cursor(tokens, reading);
  const expression = parseOver(cursor);
  if (!cursor.done) throw new MathSyntaxError(`unexpected ${cursor.next.text}`);
  const isInfinite = tokens.some(({ kind, text }) => kind === "name" && text === "infinity");
  if (isInfinite && !/^[+-]? ?infinity$/.test(textOf(tokens))) throw new MathSyntaxError("arithmetic with infinity");
  return expression;
}

/** An expression, or two with `\over` or `\choose` between them. */
function parseOver(cursor: Cursor): Expression {
  const over = parseExpression(cursor);
  if (cursor.takeMark("over")) return { kind: "quotient", over, under: parseExpression(cursor) };
  return cursor.takeMark("choose") ? call(cursor, "binomial", over, parseExpression(cursor)) : over;
}

function parseExpression(cursor: Cursor): Expression {
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
    } else if (startsValue(cursor)) term = times(term, parseFactor(cursor, term));
    else return term;
  }
}

/**
 * A factor without a multiplication sign: not a number, with or without braces. A word may only follow a number, and
 * nothing may follow a word: `2 apples`.
 */
function parseFactor(cursor: Cursor, before: Expression): Expression {
  const isWord = cursor.next.kind === "word";
  const isGroup = cursor.isMark("{");
  const factor = parsePower(cursor);
  if (isGroup && factor.kind === "number") throw new MathSyntaxError("numbers side by side");
  if (isWord && (before.kind !== "number" || startsValue(cursor))) throw new MathSyntaxError("words side by side");
  return factor;
}

function parseSigned(cursor: Cursor): Expression {
  cursor.budget.node();
  if (cursor.takeMark("-")) return negate(parseSigned(cursor));
  if (cursor.takeMark("+")) return parseSigned(cursor);
  return parsePower(cursor);
}

function parsePower(cursor: Cursor, mixes = true): Expression {
  return withSuffixes(cursor, parseValue(cursor, mixes));
}

/** `^`, `!`, `%` and a degree sign bind to the value before them. */
function withSuffixes(cursor: Cursor, value: Expression): Expression {
  if (cursor.isMark("!") && cursor.peek(1).text === "!") {
    cursor.skip(2);
    return withSuffixes(cursor, apply(cursor, "double factorial", [value]));
  }
  if (cursor.takeMark("!")) return withSuffixes(cursor, call(cursor, "factorial", value));
  if (cursor.takeMark("%")) return withSuffixes(cursor, times(value, symbol("percent")));
  if (!cursor.takeMark("^")) return value;
  if (takeDegree(cursor)) return withSuffixes(cursor, times(value, DEGREE));
  return { kind: "power", base: value, exponent: parseExponent(cursor) };
}

export const DEGREE: Expression = {
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

/** A group, or a signed value with its own powers: powers are right-associative. */
function parseExponent(cursor: Cursor): Expression {
  cursor.budget.node();
  if (cursor.takeMark("-")) return negate(parseExponent(cursor));
  if (cursor.isMark("{")) return withSuffixes(cursor, parseGroup(cursor));
  return parsePower(cursor, false);
}

/** Whether a value may follow without a multiplication sign. A number may follow only `n!`: `2 3` is not a product. */
function startsValue(cursor: Cursor): boolean {
  if (cursor.next.kind === "name" || cursor.next.kind === "word") return true;
  if (cursor.next.kind === "number") return cursor.peek(-1).text === "!";
  if (cursor.isMark("|")) return cursor.bars === 0;
  const isAccent = cursor.next.kind === "mark" && cursor.next.text.startsWith(ACCENT);
  return isAccent || cursor.isMark("(", "[", "{", "frac", "sqrt", "binom", "lfloor", "lceil", "angle", "triangle");
}

/**
 * `mixes`: a fraction after a whole number makes a mixed number; in an exponent or an argument without braces it does
 * not.
 */
function parseValue(cursor: Cursor, mixes = true): Expression {
  cursor.budget.node();
  const token = cursor.take();
  if (token.kind === "number") return numberFrom(cursor, token.text, mixes);
  if (token.kind === "name") return parseName(cursor, token.text);
  if (token.kind === "word") return parseWord(cursor, token);
  if (token.text.startsWith(ACCENT)) return apply(cursor, token.text.slice(ACCENT.length), [parseArgument(cursor)]);
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
    case "angle":
    case "triangle":
      return parseFigure(cursor, token.text);
    default:
      throw new MathSyntaxError(`unexpected ${token.text}`);
  }
}

/** Parses up to a closing bracket. Inside brackets a bar can open again. */
function parseUntil(cursor: Cursor, close: string): Expression {
  const outer = cursor.bars;
  cursor.bars = 0;
  const inner = parseOver(cursor);
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
  if (cursor.next.kind === "number") return numberFrom(cursor, cursor.takeDigit(), false);
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
  // The other functions have an inverse too, which is not supported here; it is not the reciprocal.
  if (isMinusOne(exponent)) return apply(cursor, `inverse ${name}`, args);
  const value = call(cursor, name, ...args);
  return exponent === undefined ? value : { kind: "power", base: value, exponent };
}

/**
 * Brackets, or factors without a multiplication sign, up to the next function: `\sin 2x \cos x` is a product of two.
 */
function parseFunctionArgument(cursor: Cursor): Expression {
  if (cursor.isMark("(", "[", "{")) return parseValue(cursor);
  let argument = cursor.takeMark("-") ? negate(parsePower(cursor)) : parsePower(cursor);
  while (startsValue(cursor) && !isFunctionName(cursor.next.text)) {
    argument = times(argument, parsePower(cursor));
  }
  return argument;
}

const ACCENT = "accent ";

/** `x_1`, `a_{n+1}`: the index belongs to the name. `f(x)`, `f^{-1}(x)`: a function, unless the name is a variable. */
function parseIndexed(cursor: Cursor, name: string): Expression {
  const full = cursor.takeMark("_") ? `${name}_${cursor.takeIndex()}` : name;
  if (cursor.isMark("[") && TAKES_SQUARE.test(name)) return parseApplication(cursor, full);
  if (!cursor.reading.functions.has(name)) return symbol(full);
  if (cursor.isMark("(")) return parseApplication(cursor, full);
  const iterate = iterateLength({ peek: (ahead) => cursor.peek(ahead) });
  if (iterate === 0) return symbol(full);
  const exponent = Array.from({ length: iterate }, () => cursor.take().text).join("");
  return parseApplication(cursor, full + exponent.replaceAll(/[()]/g, "'"));
}

/** Names of functions whose argument is in square brackets: `E[X]`, `f[x]`. */
const TAKES_SQUARE = /^(?:E|(?:set|script)_\w+|[fgh]|\w{2,})$/;

/**
 * The number of tokens of `^{-1}`, `^{(n)}` or `^2` before a bracket, if they belong to a function and are not a power;
 * else 0.
 */
export function iterateLength({ peek }: { peek: (ahead: number) => Token }): number {
  if (peek(0).text !== "^") return 0;
  let end = 2;
  if (peek(1).text === "{") while (end < MOST_ITERATE && peek(end - 1).text !== "}") end += 1;
  return peek(end).text === "(" ? end : 0;
}

const MOST_ITERATE = 12;

/** A word, or a function of the content of the brackets after it: after an upright name a space means nothing. */
function parseWord(cursor: Cursor, { text, upright }: Token): Expression {
  const word = text.toLowerCase();
  if (cursor.isMark("(") && (cursor.next.spaced !== true || upright === true)) return parseApplication(cursor, word);
  return parseIndexed(cursor, word);
}

function parseApplication(cursor: Cursor, name: string): Expression {
  const outer = cursor.bars;
  cursor.bars = 0;
  const close = cursor.take().text === "[" ? "]" : ")";
  const args = [parseExpression(cursor)];
  while (cursor.takeMark(",")) args.push(parseExpression(cursor));
  cursor.expect(close);
  cursor.bars = outer;
  return apply(cursor, name, args);
}

/** `\angle ABC`, `\triangle ABC`: the order of the letters counts. */
function parseFigure(cursor: Cursor, figure: string): Expression {
  const letters: string[] = [];
  const isGroup = cursor.takeMark("{");
  while (cursor.next.kind === "name" && /^[A-Z]+'*$/.test(cursor.next.text)) letters.push(cursor.take().text);
  if (letters.length === 0) throw new MathSyntaxError(`${figure} of nothing`);
  if (isGroup) cursor.expect("}");
  return symbol(`${figure}_${letters.join("")}`);
}

/** A decimal, a mixed number, or digits with a base, which are treated as a name: `101_2` is not 101. */
function numberFrom(cursor: Cursor, text: string, mixes: boolean): Expression {
  if (cursor.takeMark("_")) return symbol(`${text}_${cursor.takeIndex()}`);
  const value = readDecimal(cursor.budget, text);
  const fraction = mixes && /^\d+$/.test(text) ? takeProperFraction(cursor) : null;
  return { kind: "number", value: fraction === null ? value : add(cursor.budget, value, fraction) };
}

function symbol(name: string): Expression {
  return { kind: "symbol", name };
}

function apply(cursor: Cursor, name: string, args: readonly Expression[]): Expression {
  cursor.budget.node();
  return { kind: "apply", name, args };
}

function call(cursor: Cursor, name: CallName, ...args: readonly Expression[]): Expression {
  cursor.budget.node();
  return { kind: "call", name, args };
}

function negate(expression: Expression): Expression {
  return times({ kind: "number", value: MINUS_ONE }, expression);
}

/** Products from left to right become one list, not nested pairs. */
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

/** The fraction of a mixed number, if there is one: `\frac{1}{2}`, `\frac12` or `1/2`, below 1. */
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

/** The spellings, as the marks around the two numbers. */
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
