/** Finds out which names are functions, and which sides of an equation are only names for the other side. */
import { iterateLength } from "./parse-expression.ts";
import { closingOf } from "./structure.ts";
import { FUNCTIONS } from "./syntax.ts";
import { type Token, textOf } from "./token.ts";

const CONSTANTS = new Set(["pi", "e", "i", "infinity", "emptyset"]);
/** Names of functions by convention: their exponent before a bracket is not a power. */
const FUNCTION_NAME = /^(?:(?:[fghFGH]|phi|psi|Phi|Psi|Gamma|zeta)'*|\w+'+)$/;
/** Marks that no factor in brackets contains. */
const NO_FACTOR = /^(?:,|=|!=|<|>|<=|>=|in|cap|cup)$/;

/**
 * Names that are functions before a bracket: conventional function names, names with one name or number in their
 * bracket (`T(n)`) or with something that is not a factor (`P(A|B)`), and capital letters before small ones (`T(n+1)`).
 * A name that also occurs alone, in the text with the bracket, is a variable.
 */
export function functionNames(texts: readonly (readonly Token[])[]): Set<string> {
  const functions = new Set<string>();
  for (const tokens of texts) {
    const names = [...tokens.entries()].filter(([, { kind, text }]) => kind === "name" && !CONSTANTS.has(text));
    const alone = new Set(names.filter(([at]) => !isHead(tokens, at)).map(([, { text }]) => text));
    for (const [at, { text }] of names) {
      if (!alone.has(text) && (FUNCTION_NAME.test(text) || hasArgument(tokens, at) || isCapitalOf(tokens, at)))
        functions.add(text);
    }
  }
  return functions;
}

/** Whether the content of the bracket after a name cannot be a factor. */
function hasArgument(tokens: readonly Token[], at: number): boolean {
  const start = indexEnd(tokens, at + 1) + 1;
  const end = start - 1 + closingOf(tokens.slice(start - 1, start + MOST_TOKENS));
  const marks = tokens.slice(start, end).filter(({ kind }) => kind === "mark");
  // Bars around a value come in pairs.
  const isConditional = marks.filter(({ text }) => text === "|").length % 2 === 1;
  return end === start + 1 || isConditional || marks.some(({ text }) => NO_FACTOR.test(text));
}

/** `T(n+1)`: a capital letter before a bracket with a small one in it, unless the bracket has a power or begins with a number, `P(1+rt)`. */
function isCapitalOf(tokens: readonly Token[], at: number): boolean {
  if (!/^[A-Z]'*$/.test(tokens[at]?.text ?? "")) return false;
  const start = indexEnd(tokens, at + 1);
  const end = start + closingOf(tokens.slice(start, start + MOST_TOKENS));
  if (end < start || tokens[end + 1]?.text === "^") return false;
  if (tokens[start + 1]?.kind === "number" && /^[+-]$/.test(tokens[start + 2]?.text ?? "")) return false;
  return tokens.slice(start, end).some(({ kind, text }) => kind === "name" && /^[a-z]$/.test(text));
}

/** The most tokens of an argument that are checked. */
const MOST_TOKENS = 40;

function isHead(tokens: readonly Token[], at: number): boolean {
  const end = indexEnd(tokens, at + 1);
  if (tokens[end]?.text === "(") return true;
  const peek = (ahead: number) => tokens[end + ahead] ?? { kind: "mark", text: "" };
  return FUNCTION_NAME.test(tokens[at]?.text ?? "") && iterateLength({ peek }) > 0;
}

/** Where an index that begins at `at` ends; `at` itself if there is none. */
function indexEnd(tokens: readonly Token[], at: number): number {
  if (tokens[at]?.text !== "_") return at;
  if (tokens[at + 1]?.text !== "{") return at + 2;
  const close = tokens.slice(at, at + 20).findIndex(({ text }) => text === "}");
  return close === -1 ? at : at + close + 1;
}

const INDEX = String.raw`(?:_(?:[aAw0]|\{[^{}]*\}))?`;
/** `x`, `xy`, `a_n`, a word or several; `f(x)`, `f^{-1}(x)`, `P(A|B)`. */
const NAMES = new RegExp(`^(?:[aAw]${INDEX})+$`);
const APPLIED = new RegExp(String.raw`^[faAw]${INDEX}(?:\^(?:[0aA]|\{[^{}]*\}))?\(.*\)$`, "s");
/** `a/b`, `dy/dx`, `|AB|`, `[ABC]`, `\angle ABC`, `\overline{AB}`, `m\angle A`. */
const FIGURES =
  /^(?:frac\{a\}\{a(?:\^0)?\}|frac\{\\d(?:\^0)?\}\{a(?:\^0)?\}f\(.*\)|\|A\||\[A\]|[aw]?(?:angle|triangle)\{?[aA]+\}?|accent\w*\{?[aA]\}?)$/;
/** `a:b` */
const RATIO = /^a(?::a)+$/;
/** `(x, y)` */
const TUPLE = new RegExp(String.raw`^\(a${INDEX}(?:,a${INDEX})+\)$`);

/** "Not x = 5" and "at least x = 5" are not names of a value. */
const CONDITION = /^(?:not|no|never|if|unless|except|when|where|without|least|most|than|about)$/i;

/** The text of a side that is a name; null if it has a value itself. */
export function labelOf(tokens: readonly Token[], functions: ReadonlySet<string>): string | null {
  const signature = tokens.map((token) => signatureOf(token, functions)).join("");
  const isApplied = APPLIED.test(signature) && (signature[0] === "f" || signature[0] === "w");
  const isLabel = isApplied || [NAMES, FIGURES, RATIO, TUPLE].some((form) => form.test(signature));
  return isLabel ? textOf(tokens) : null;
}

/** a: a name, A: several capitals, w: a word, f: a function, 0: a number, else the mark itself. */
function signatureOf({ kind, text }: Token, functions: ReadonlySet<string>): string {
  if (kind === "word") return CONDITION.test(text) ? "?" : "w";
  if (kind === "number") return "0";
  if (kind === "mark") return text.replace(" ", "");
  if ((CONSTANTS.has(text) && text !== "e" && text !== "i") || FUNCTIONS.some((known) => known === text)) return "c";
  if (functions.has(text)) return "f";
  return /^[A-Z]{2,}/.test(text) ? "A" : "a";
}

/** The names of a tuple that is a label; null for any other label. */
export function namesOfTuple(label: string): readonly string[] | null {
  return label.startsWith("( ") ? label.slice(2, -2).split(" , ") : null;
}
