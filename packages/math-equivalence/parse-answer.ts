/**
 * Reads an answer: relations, unions, lists, tuples, intervals, sets and matrices, with expressions inside.
 *
 * Invariants. Structure is found before any expression is read, by brackets counted over the tokens, each level once.
 * A sign that is "plus or minus" makes the answer a list of both readings.
 */

import { type Budget, refuseNodes } from "./budget.ts";
import { parseExpression } from "./parse-expression.ts";
import { type Answer, type Comparison, type Expression, type Link, MathSyntaxError } from "./syntax.ts";
import { Cursor, type Token, tokenize } from "./tokens.ts";

const TOKENS_PER_NODE = 4;

/** Throws `MathSyntaxError` for what is not of the grammar, `OverBudgetError` for what is too large. */
export function parseAnswer(normalised: string, budget: Budget): Answer {
  const tokens = tokenize(normalised);
  checkForm(tokens);
  // Each level of brackets is scanned once more, so their number is bounded before any is.
  refuseNodes(tokens.length / TOKENS_PER_NODE);
  const answer = readList(tokens, budget);
  budget.endText();
  return answer;
}

/** What no grammar would take is told in one pass, so that long nonsense is no question of budgets. */
function checkForm(tokens: readonly Token[]): void {
  let depth = 0;
  for (const [at, { kind, text }] of tokens.entries()) {
    if (kind === "mark" && OPENING.has(text)) depth += 1;
    if (kind === "mark" && CLOSING.has(text)) depth -= 1;
    if (depth < 0) throw new MathSyntaxError(`${text} closes nothing`);
    const numbers = [0, 1, 2].filter((ahead) => tokens[at + ahead]?.kind === "number");
    if (numbers.length === 3) throw new MathSyntaxError("numbers side by side");
  }
  if (depth > 0) throw new MathSyntaxError("a bracket does not close");
}

function readList(tokens: readonly Token[], budget: Budget): Answer {
  const items = split(tokens, ",", ";");
  if (items.length === 1) return readItem(tokens, budget);
  return {
    kind: "list",
    items: items.filter(({ length }) => length > 0).flatMap((item) => spread(readItem(item, budget))),
  };
}

/** The readings of `\pm` inside a list are entries of that list. */
function spread(answer: Answer): readonly Answer[] {
  return answer.kind === "list" ? answer.items : [answer];
}

function readItem(tokens: readonly Token[], budget: Budget): Answer {
  budget.node();
  if (tokens.some(isPlusMinus)) return readBoth(tokens, budget);
  const belongs = split(tokens, "in");
  if (belongs.length === 2) return readItem(belongs[1] ?? [], budget);
  const pieces = split(tokens, "cup");
  if (pieces.length > 1) return { kind: "union", items: pieces.map((piece) => readItem(piece, budget)) };
  if (split(tokens, ...COMPARISONS.keys()).length > 1) return readRelation(tokens, budget);
  return readMatrix(tokens, budget) ?? readBracketed(tokens, budget) ?? readExpression(tokens, budget);
}

function isPlusMinus({ kind, text }: Token): boolean {
  return kind === "mark" && (text === "pm" || text === "mp");
}

function readBoth(tokens: readonly Token[], budget: Budget): Answer {
  const reading = (pm: string, mp: string) =>
    tokens.map((token) => (isPlusMinus(token) ? { ...token, text: token.text === "pm" ? pm : mp } : token));
  const items = [reading("+", "-"), reading("-", "+")].map((both) => readItem(both, budget));
  return { kind: "list", items };
}

const COMPARISONS = new Map<string, { readonly sign: Comparison; readonly turned: boolean }>([
  ["=", { sign: "=", turned: false }],
  ["!=", { sign: "!=", turned: false }],
  ["<", { sign: "<", turned: false }],
  ["<=", { sign: "<=", turned: false }],
  [">", { sign: "<", turned: true }],
  [">=", { sign: "<=", turned: true }],
]);

function readRelation(tokens: readonly Token[], budget: Budget): Answer {
  const sides = split(tokens, ...COMPARISONS.keys());
  const signs = tokens.filter(({ kind, text }) => kind === "mark" && COMPARISONS.has(text));
  if (sides.length !== signs.length + 1) throw new MathSyntaxError("a comparison inside brackets");
  const terms = sides.map((side) => expressionOf(side, budget));
  const links = signs.map(({ text }, at): Link => {
    const [left, right, comparison] = [terms[at], terms[at + 1], COMPARISONS.get(text)];
    if (!left || !right || !comparison) throw new MathSyntaxError(`${text} without two sides`);
    const { sign, turned } = comparison;
    return turned ? { sign, left: right, right: left } : { sign, left, right };
  });
  return { kind: "relation", links };
}

/** A set, or a tuple or interval: brackets around the whole, with a comma in round and square ones. */
function readBracketed(tokens: readonly Token[], budget: Budget): Answer | undefined {
  const [open, close] = [tokens.at(0)?.text, tokens.at(-1)?.text];
  if (tokens.length < 2 || closingOf(tokens) !== tokens.length - 1) return undefined;
  const inner = tokens.slice(1, -1);
  const items = () => split(inner, ",", ";").map((item) => readItem(item, budget));
  if (isSetBraces(open, close, inner)) {
    return { kind: "set", items: inner.length === 0 ? [] : items().flatMap(spread) };
  }
  if ((open !== "(" && open !== "[") || (close !== ")" && close !== "]")) return undefined;
  if (split(inner, ",", ";").length > 1) return { kind: "ordered", open, close, items: items() };
  return open === "(" && close === ")" ? readItem(inner, budget) : undefined;
}

/** `\{1,2\}`; the backslashes are often forgotten, and plain braces around a list have no other meaning. */
function isSetBraces(open = "", close = "", inner: readonly Token[] = []): boolean {
  if (open === "{" && close === "}") return split(inner, ",").length > 1;
  return open === "\\{" && close === "\\}";
}

function readMatrix(tokens: readonly Token[], budget: Budget): Answer | undefined {
  const name = tokens[2]?.text ?? "";
  const end = ["end", "{", name, "}"];
  const ends = end.every((text, at) => tokens.at(at - end.length)?.text === text);
  if (tokens[0]?.text !== "begin" || !ends || !/^(?:[bp]|small)?matrix$|^array$/.test(name)) {
    return undefined;
  }
  // `array` names the alignment of its columns, which says nothing.
  const columns =
    name === "array" && tokens[4]?.text === "{" ? tokens.findIndex(({ text }, at) => at > 4 && text === "}") + 1 : 4;
  const rows = split(tokens.slice(columns, -end.length), "\\\\").filter(({ length }) => length > 0);
  return {
    kind: "matrix",
    rows: rows.map((row) => split(row, "&").map((cell) => expressionOf(cell, budget))),
  };
}

/** `3:4` is the ratio; of three terms there is no one number. */
function ratioOf(tokens: readonly Token[], budget: Budget): Expression | undefined {
  const [over = [], under, ...more] = split(tokens, ":");
  if (under === undefined || more.length > 0) return undefined;
  return { kind: "quotient", over: expressionOf(over, budget), under: expressionOf(under, budget) };
}

function readExpression(tokens: readonly Token[], budget: Budget): Answer {
  const expression = ratioOf(tokens, budget) ?? expressionOf(tokens, budget);
  if (expression.kind === "symbol" && expression.name === "emptyset") return { kind: "set", items: [] };
  return { kind: "expression", expression };
}

function expressionOf(tokens: readonly Token[], budget: Budget): Expression {
  const cursor = new Cursor(tokens, budget);
  const expression = parseExpression(cursor);
  if (!cursor.done) throw new MathSyntaxError(`unexpected ${cursor.next.text}`);
  return expression;
}

const OPENING = new Set(["(", "[", "{", "\\{"]);
const CLOSING = new Set([")", "]", "}", "\\}"]);

/** The parts between marks that stand in no brackets. Any closing bracket closes: `[0, 1)` is an interval. */
function split(tokens: readonly Token[], ...marks: readonly string[]): Token[][] {
  const parts: Token[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token.kind === "mark" && OPENING.has(token.text)) depth += 1;
    if (token.kind === "mark" && CLOSING.has(token.text)) depth -= 1;
    if (depth === 0 && token.kind === "mark" && marks.includes(token.text)) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

/** Where the bracket that opens the tokens closes; −1 when it does not, or none opens. */
function closingOf(tokens: readonly Token[]): number {
  let depth = 0;
  for (const [at, { kind, text }] of tokens.entries()) {
    if (kind === "mark" && OPENING.has(text)) depth += 1;
    if (kind === "mark" && CLOSING.has(text)) depth -= 1;
    if (depth === 0) return CLOSING.has(text) ? at : -1;
  }
  return -1;
}
