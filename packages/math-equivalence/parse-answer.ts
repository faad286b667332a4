/**
 * Parses an answer: relations, sets and their operations, lists, tuples, matrices and quantities, with expressions
 * inside.
 *
 * Invariants: structure is found before any expression is read, by counting brackets over the tokens, each level once.
 * A "plus or minus" sign makes the answer a list of both readings. Text that cannot be read stays text, and equals only
 * the very same text.
 */

import { type Budget, refuseNodes } from "./budget.ts";
import type { Reading } from "./cursor.ts";
import { isCondition, jointOf, nameOf, solutionsOf } from "./lists.ts";
import { labelOf } from "./names.ts";
import { parseWhole } from "./parse-expression.ts";
import { readClock, readQuantity, sumOf } from "./quantity.ts";
import { closingOf, cut, isBalanced, placesOf, split, turn, ungroup } from "./structure.ts";
import { type Answer, type Comparison, type Link, MathSyntaxError, type Side } from "./syntax.ts";
import { type Token, textOf } from "./token.ts";

const TOKENS_PER_NODE = 4;
type Unordered = Answer & { readonly kind: "set" | "list" };

/** Throws `OverBudgetError` if it is too large. */
export function parseAnswer(tokens: readonly Token[], functions: ReadonlySet<string>, budget: Budget): Answer {
  const turned = withBracketsInward(tokens);
  if (!isBalanced(turned) || hasNumbersSideBySide(turned)) return asText(tokens);
  // Each level of brackets is scanned again, so their number is limited before the first scan.
  refuseNodes(turned.length / TOKENS_PER_NODE);
  const answer = readList(turned, { budget, functions });
  budget.endText();
  return answer;
}

/** `]0, 1[` is another spelling of `(0, 1)`. */
function withBracketsInward(tokens: readonly Token[]): readonly Token[] {
  const [first, last] = [tokens.at(0), tokens.at(-1)];
  if (tokens.length < 2 || (first?.text !== "]" && last?.text !== "[")) return tokens;
  const open: Token = { kind: "mark", text: first?.text === "]" ? "(" : (first?.text ?? "") };
  const close: Token = { kind: "mark", text: last?.text === "[" ? ")" : (last?.text ?? "") };
  return [open, ...tokens.slice(1, -1), close];
}

/** Text that the grammar cannot accept is recognised in one pass, so that long nonsense does not use up the budget. */
function hasNumbersSideBySide(tokens: readonly Token[]): boolean {
  return tokens.some((_, at) => [0, 1, 2].every((ahead) => tokens[at + ahead]?.kind === "number"));
}

const SEPARATORS = new Set([",", ";", "and", "or", "land", "lor"]);
const isSeparator = ({ kind, text }: Token) => kind === "mark" && SEPARATORS.has(text);

function readList(tokens: readonly Token[], reading: Reading): Answer {
  const places = placesOf(tokens, isSeparator);
  if (places.length === 0) return readItem(tokens, reading);
  const marks = new Set(places.map((at) => tokens[at]?.text));
  const written = cut(tokens, places).filter(({ length }) => length > 0);
  const items = written.flatMap((item) => spread(readItem(item, reading)));
  const [only] = items;
  const isLogic = marks.has("land") || marks.has("lor");
  if (isLogic && !items.every(({ kind }) => kind === "relation")) return asText(tokens);
  const grouped = readSolutions(tokens, items) ?? readChoices(tokens, items, reading);
  if (grouped !== undefined) return grouped;
  const joint = jointOf(marks);
  const sum = joint === "and" ? sumOf(items, reading) : undefined;
  if (sum !== undefined) return sum;
  return items.length === 1 && only !== undefined && !marks.has(",") ? only : { kind: "list", joint, items };
}

/**
 * The values of several unknowns belong together. With a "plus or minus" sign there are more values than written ones.
 */
function readSolutions(tokens: readonly Token[], items: readonly Answer[]): Answer | undefined {
  const solutions = tokens.some(isPlusMinus) ? undefined : solutionsOf(items);
  return solutions === null ? asText(tokens) : solutions;
}

/** "And" binds more strongly than "or"; with several unknowns, a comma next to "or" is ambiguous. */
function readChoices(tokens: readonly Token[], items: readonly Answer[], reading: Reading): Answer | undefined {
  if (!items.some(isCondition)) return undefined;
  const choices = split(tokens, "or", "lor");
  const isJoined = (choice: readonly Token[]) => split(choice, "and", "land").length > 1;
  if (choices.length === 1) return undefined;
  if (new Set(items.map(nameOf)).size > 1 && split(tokens, ",", ";").length > 1) return asText(tokens);
  if (!choices.some(isJoined)) return undefined;
  return { kind: "list", joint: "or", items: choices.map((choice) => readList(choice, reading)) };
}

/** The readings of `\pm` inside a list are entries of that list. */
function spread(answer: Answer): readonly Answer[] {
  return answer.kind === "list" ? answer.items : [answer];
}

/** Text outside the grammar is a phrase: its words, and the answers between them. */
function readItem(written: readonly Token[], reading: Reading): Answer {
  reading.budget.node();
  const tokens = ungroup(written);
  const choice = readChoice(tokens, reading);
  if (choice !== undefined) return choice;
  try {
    return readStructure(isSetInPlainBraces(written) ? written : tokens, reading);
  } catch (thrown) {
    if (thrown instanceof MathSyntaxError) return readPhrase(tokens, reading);
    throw thrown;
  }
}

function readStructure(tokens: readonly Token[], reading: Reading): Answer {
  if (tokens.some(isPlusMinus)) return readBoth(tokens, reading);
  if (placesOf(tokens, isComparison).length > 0) return readRelation(tokens, reading);
  return (
    readJoined(tokens, reading) ??
    readMatrix(tokens, reading) ??
    readMultiple(tokens, reading) ??
    readBracketed(tokens, reading) ??
    readClock(tokens, reading) ??
    readRatio(tokens, reading) ??
    readQuantity(tokens, reading) ??
    readExpression(tokens, reading)
  );
}

/** `\text{(C)}\ 34`: the letter of a choice, and its content. */
function readChoice(tokens: readonly Token[], reading: Reading): Answer | undefined {
  const [open, letter, close, ...content] = tokens;
  const isLetter = letter?.kind === "name" && /^[A-J]$/.test(letter.text);
  const [first] = content;
  const isContent = letter?.upright
    ? first?.kind !== "mark" || /^(?:\(|-|frac|sqrt|＄)$/.test(first.text)
    : first?.kind === "number";
  if (open?.text !== "(" || !isLetter || close?.text !== ")" || first === undefined || !isContent) return undefined;
  return { kind: "choice", letter: letter.text, content: readList(content, reading) };
}

function readPhrase(tokens: readonly Token[], reading: Reading): Answer {
  const isWord = ({ kind }: Token) => kind === "word";
  if (placesOf(tokens, isWord).length === 0 || tokens.length < 2) return asText(tokens);
  const parts: (string | Answer)[] = [];
  let between: Token[] = [];
  let depth = 0;
  const endBetween = () => {
    if (between.length > 0) parts.push(readList(between, reading));
    between = [];
  };
  for (const token of tokens) {
    depth += turn(token);
    if (depth > 0 || !isWord(token)) between.push(token);
    else {
      endBetween();
      parts.push(token.text.toLowerCase());
    }
  }
  endBetween();
  return /^no solutions?$/.test(parts.join(" ")) ? EMPTY_SET : { kind: "phrase", parts };
}

export function asText(tokens: readonly Token[]): Answer {
  return { kind: "phrase", parts: [textOf(tokens)] };
}

function isPlusMinus({ kind, text }: Token): boolean {
  return kind === "mark" && (text === "pm" || text === "mp");
}

function readBoth(tokens: readonly Token[], reading: Reading): Answer {
  const choose = (pm: string, mp: string) =>
    tokens.map((token) => (isPlusMinus(token) ? { ...token, text: token.text === "pm" ? pm : mp } : token));
  const items = [choose("+", "-"), choose("-", "+")].map((both) => readItem(both, reading));
  // x ≠ ±2 excludes both.
  return { kind: "list", joint: tokens.some(({ text }) => text === "!=") ? "and" : "or", items };
}

const COMPARISONS = new Map<string, { readonly sign: Comparison; readonly turned: boolean }>([
  ["=", { sign: "=", turned: false }],
  ["approx", { sign: "approx", turned: false }],
  ["in", { sign: "in", turned: false }],
  ["!=", { sign: "!=", turned: false }],
  ["<", { sign: "<", turned: false }],
  ["<=", { sign: "<=", turned: false }],
  [">", { sign: "<", turned: true }],
  [">=", { sign: "<=", turned: true }],
]);
const isComparison = ({ kind, text }: Token) => kind === "mark" && COMPARISONS.has(text);

function readRelation(tokens: readonly Token[], reading: Reading): Answer {
  const places = placesOf(tokens, isComparison);
  // `= 5` and `≈ 5` leave out the left side.
  if (places[0] === 0 && /^(?:=|approx)$/.test(tokens[0]?.text ?? "")) return readItem(tokens.slice(1), reading);
  if (tokens.some(({ text }) => text === "\\not")) throw new MathSyntaxError("a comparison turned into its opposite");
  const sides = cut(tokens, places).map((side) => readSide(side, reading));
  const links = places.map((place, at): Link => {
    const [left, right, comparison] = [sides[at], sides[at + 1], COMPARISONS.get(tokens[place]?.text ?? "")];
    if (!left || !right || !comparison) throw new MathSyntaxError("a comparison without two sides");
    const { sign, turned } = comparison;
    return turned ? { sign, left: right, right: left } : { sign, left, right };
  });
  return { kind: "relation", links };
}

function readSide(tokens: readonly Token[], reading: Reading): Side {
  if (tokens.length === 0) throw new MathSyntaxError("a comparison without two sides");
  return { answer: readItem(tokens, reading), label: labelOf(ungroup(tokens), reading.functions) };
}

const JOINED = [
  ["cup", "union"],
  ["setminus", "difference"],
  ["cap", "intersection"],
] as const;

function readJoined(tokens: readonly Token[], reading: Reading): Answer | undefined {
  for (const [mark, kind] of JOINED) {
    const pieces = split(tokens, mark);
    if (pieces.length === 1) continue;
    if (pieces.some(({ length }) => length === 0)) throw new MathSyntaxError(`${mark} without two sides`);
    return { kind, items: pieces.map((piece) => readItem(piece, reading)) };
  }
  // A set is removed, not a number subtracted.
  const [from = [], taken = [], ...more] = split(tokens, "-");
  if (more.length > 0 || from.length === 0 || taken[0]?.text !== "\\{") return undefined;
  return { kind: "difference", items: [readItem(from, reading), readItem(taken, reading)] };
}

/** A set, or a tuple or interval: brackets around the whole, with a comma if they are round or square. */
function readBracketed(tokens: readonly Token[], reading: Reading): Answer | undefined {
  const isVector = tokens.at(0)?.text === "langle" && tokens.at(-1)?.text === "rangle";
  const [open, close] = isVector ? ["(", ")"] : [tokens.at(0)?.text, tokens.at(-1)?.text];
  if (tokens.length < 2 || closingOf(tokens) !== tokens.length - 1) return undefined;
  const inner = tokens.slice(1, -1);
  if ((open === "\\{" && close === "\\}") || isSetInPlainBraces(tokens)) return readSet(inner, reading);
  if ((open !== "(" && open !== "[") || (close !== ")" && close !== "]")) return undefined;
  const matrix = readMatrix(inner, reading);
  if (matrix !== undefined) return matrix;
  const items = split(inner, ",", ";");
  if (items.length > 1) return { kind: "ordered", open, close, items: items.map((item) => readItem(item, reading)) };
  return open === "(" && close === ")" && !isVector ? readItem(inner, reading) : undefined;
}

/** The backslashes are often forgotten, and plain braces around a list have no other meaning. */
function isSetInPlainBraces(tokens: readonly Token[]): boolean {
  const isGroup = tokens[0]?.text === "{" && closingOf(tokens) === tokens.length - 1;
  return isGroup && split(tokens.slice(1, -1), ",").length > 1;
}

/** `\{1, 2\}`; for `\{x : x > 2\}` the condition. */
function readSet(inner: readonly Token[], reading: Reading): Answer {
  if (inner.length === 0) return EMPTY_SET;
  const [bar] = placesOf(inner, ({ kind, text }) => kind === "mark" && (text === ":" || text === "|"));
  const variable = inner.slice(0, bar ?? 0);
  const [name = [], domain] = split(variable, "in");
  if (bar !== undefined && labelOf(name, reading.functions) !== null) {
    const condition = readList(inner.slice(bar + 1), reading);
    // A condition with the domain of its variable differs from the same condition without it.
    return domain === undefined ? condition : narrowed(readItem(variable, reading), condition);
  }
  // The content is a formula with a condition, not a ratio.
  if (bar !== undefined && placesOf(inner, isComparison).length > 0) throw new MathSyntaxError("a set by its formula");
  return { kind: "set", items: split(inner, ",", ";").flatMap((item) => spread(readItem(item, reading))) };
}

function narrowed(belongs: Answer, condition: Answer): Answer {
  const isReal = belongs.kind === "relation" && isRealLine(belongs.links[0]?.right.answer);
  return isReal ? condition : { kind: "list", joint: "and", items: [belongs, condition] };
}

export function isRealLine(answer: Answer | undefined): boolean {
  const expression = answer?.kind === "expression" ? answer.expression : undefined;
  return expression?.kind === "symbol" && expression.name === "set_R";
}

const EMPTY_SET: Unordered = { kind: "set", items: [] };
const ENVIRONMENT = /^(?:([bpv]|small)?matrix|array|align(?:ed)?|cases)\*?$/;

function readMatrix(written: readonly Token[], reading: Reading): Answer | undefined {
  const isFenced = written[0]?.text === "|" && written.at(-1)?.text === "|";
  const tokens = isFenced ? written.slice(1, -1) : written;
  const name = tokens[2]?.text.toLowerCase() ?? tokens[2]?.text ?? "";
  const ends = ["end", "{", tokens[2]?.text ?? "", "}"];
  const [all, letter] = ENVIRONMENT.exec(name) ?? [];
  const isWhole = ends.every((text, at) => tokens.at(at - ends.length)?.text === text);
  if (tokens[0]?.text !== "begin" || all === undefined || !isWhole) return undefined;
  // `array` has an argument for the alignment of its columns, which means nothing here.
  const columns = tokens[4]?.text === "{" && name === "array" ? closingOf(tokens.slice(4)) + 5 : 4;
  const rows = split(tokens.slice(columns, -ends.length), "\\\\").filter(({ length }) => length > 0);
  // There the marks between columns show where lines begin.
  const isAligned = name.startsWith("align");
  const cells = rows.map((row) => (isAligned ? [row.filter(({ text }) => text !== "&")] : split(row, "&")));
  if (isAligned) return readCases(cells, reading);
  const fence = isFenced || letter === "v" ? "|" : "";
  return name === "cases" ? readCases(cells, reading) : { kind: "matrix", fence, rows: readCells(cells, reading) };
}

/** A number times a matrix is the matrix of the products. */
function readMultiple(tokens: readonly Token[], reading: Reading): Answer | undefined {
  const begin = tokens.findIndex(({ text }) => text === "begin");
  const start = begin - (turn(tokens[begin - 1] ?? END) === 1 ? 1 : 0);
  if (start < 1) return undefined;
  const matrix = readItem(tokens.slice(start), reading);
  if (matrix.kind !== "matrix" || matrix.fence !== "") return undefined;
  const factor = parseWhole(factorBefore(tokens.slice(0, start)), reading);
  const scaled = (cell: Answer): Answer => {
    if (cell.kind !== "expression") throw new MathSyntaxError("a multiple of what is no number");
    return { kind: "expression", expression: { kind: "product", parts: [factor, cell.expression] } };
  };
  return { ...matrix, rows: matrix.rows.map((row) => row.map(scaled)) };
}

const END: Token = { kind: "mark", text: "" };

/** The tokens without the multiplication sign; a minus alone is −1. */
function factorBefore(tokens: readonly Token[]): readonly Token[] {
  if (tokens.at(-1)?.text === "*") return tokens.slice(0, -1);
  return tokens.length === 1 && tokens[0]?.text === "-" ? [...tokens, { kind: "number", text: "1" }] : tokens;
}

function readCells(rows: readonly Token[][][], reading: Reading): Answer[][] {
  return rows.map((row) => row.map((cell) => readItem(cell, reading)));
}

/** One column holds equations that hold together; with two columns, the second gives the condition of the first. */
function readCases(rows: readonly Token[][][], reading: Reading): Answer {
  const isSystem = rows.every(({ length }) => length === 1);
  const cells = rows.map((row) => row.map(withoutEdges));
  if (!isSystem) return { kind: "matrix", fence: "cases", rows: readCells(cells, reading) };
  return { kind: "list", joint: "and", items: readCells(cells, reading).flat() };
}

/** A cell without a trailing comma and a leading "if". */
function withoutEdges(cell: readonly Token[]): Token[] {
  const isEdge = ({ kind, text }: Token) =>
    kind === "word" ? /^(?:if|for|when|where)$/i.test(text) : text === "," || text === ".";
  const start = cell.findIndex((token) => !isEdge(token));
  const end = cell.findLastIndex((token) => !isEdge(token));
  return start === -1 ? [] : cell.slice(start, end + 1);
}

/** `2:30`; 10:25 is also a ratio, as is 75:25. */
const TIME = /^(?:[01]?\d|2[0-4]) : \d\d$/;

function readRatio(tokens: readonly Token[], reading: Reading): Answer | undefined {
  const terms = split(tokens, ":");
  if (terms.length === 1) return undefined;
  const mayBeTime = TIME.test(textOf(tokens));
  return { kind: "ratio", terms: terms.map((term) => parseWhole(term, reading)), mayBeTime };
}

function readExpression(tokens: readonly Token[], reading: Reading): Answer {
  const expression = parseWhole(tokens, reading);
  return expression.kind === "symbol" && expression.name === "emptyset"
    ? EMPTY_SET
    : { kind: "expression", expression };
}
