/**
 * Decides whether an answer equals the target, as mathematics.
 *
 * In this order: the same text without typography; the same structure; inside it the same exact rationals and the same
 * normal forms. Neither text is ever run. A wrong or unreadable answer is false, and so is one that no rule proves
 * equal; an unreadable target equals only its own text. A target whose braces do not close, and a comparison beyond its
 * budget, are errors, because the result is unknown.
 */
import { Budget, MATH_LIMITS, MalformedTargetError } from "./budget.ts";
import { AnswerComparison } from "./compare.ts";
import { functionNames } from "./names.ts";
import { normalise } from "./normalise.ts";
import { parseAnswer } from "./parse-answer.ts";
import type { Answer } from "./syntax.ts";
import { type Token, textOf } from "./token.ts";
import { tokenize } from "./tokens.ts";

export interface MathEqualOptions {
  /**
   * The most characters of an answer; a longer one is wrong. A longer target equals only its own text, apart from
   * spacing. Default: 50,000.
   */
  readonly maxCharacters?: number;
  /** Reads 5 % as 0.05. Otherwise a percentage equals percentages only. */
  readonly percentIsRatio?: boolean;
  /**
   * Called with the number of steps before they are taken, for the caller's own budget. An error that it throws ends
   * the comparison.
   */
  readonly spend?: (steps: number) => void;
  /** Called if no rule decides whether the two are equal: then the answer is false. */
  readonly onUndecided?: () => void;
}

/** Throws a `NoVerdictError`: `MalformedTargetError` or `OverBudgetError`. */
export function mathEqual(answer: string, target: string, options: MathEqualOptions = {}): boolean {
  const { maxCharacters = MATH_LIMITS.characters, percentIsRatio = false, spend = () => undefined } = options;
  if (answer.length > maxCharacters) return false;
  if (target.length > maxCharacters) return withSingleSpaces(answer) === withSingleSpaces(target);
  const [given, wanted] = [normalise(answer), normalise(target)];
  if (wanted === "") throw new MalformedTargetError("it is empty");
  const cut = (text: string, grouped = true) => {
    const tokens = tokenize(text, grouped);
    return percentIsRatio ? tokens.flatMap(withRatio) : tokens;
  };
  const [left, right] = [cut(given), cut(wanted)];
  if (isSameText(left, right)) return true;
  if (!closesBraces(right)) throw new MalformedTargetError("a bracket does not close");
  const budget = new Budget(spend);
  const functions = functionNames([left, right]);
  const read = (text: string) => readings(text, (grouped) => parseAnswer(cut(text, grouped), functions, budget));
  const [answers, targets] = [read(given), read(wanted)];
  const comparison = new AnswerComparison(budget);
  const equal = targets.some((one) => answers.some((other) => comparison.equal(other, one)));
  if (!equal && comparison.undecided) options.onUndecided?.();
  return equal;
}

/**
 * A comma before three digits may belong to the number or separate two entries. No entry of a list begins with 0, and
 * brackets around a point are not brackets around a number.
 */
function readings(text: string, read: (grouped: boolean) => Answer): Answer[] {
  const grouped = read(true);
  if (!/\d,\d{3}(?!\d)/.test(text) || /\d,0\d\d(?!\d)/.test(text)) return [grouped];
  const separated = read(false);
  const isPoint = separated.kind === "ordered" && grouped.kind !== "ordered";
  return isPoint ? [separated] : [grouped, separated];
}

/** A target that is too long to be read equals only the same text. */
function withSingleSpaces(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** 5 % as 5/100. */
function withRatio(token: Token): Token[] {
  if (token.kind !== "mark" || token.text !== "%") return [token];
  return [
    { kind: "mark", text: "/" },
    { kind: "number", text: "100" },
  ];
}

/**
 * Whether the tokens are the same. If one text consists of words, capitals make no difference, nor do brackets or the
 * style of letters.
 */
function isSameText(a: readonly Token[], b: readonly Token[]): boolean {
  if (a.length > 0 && textOf(a) === textOf(b)) return true;
  const areWords = [a, b].map(isAllWords);
  if (!areWords.includes(true)) return false;
  // Spaces between the letters of variables mean nothing.
  const isLetters = [a, b].some((tokens) => tokens.every(({ kind, upright }) => kind === "name" && upright !== true));
  const spaces = isLetters ? /^\( ?|\)$|\s/g : /^\( ?|\)$/g;
  const [left = "", right = ""] = [a, b].map((tokens) => textOf(tokens).replace(spaces, "").trim().toLowerCase());
  return left.length > 1 && left === right;
}

function isAllWords(tokens: readonly Token[]): boolean {
  return tokens.length > 0 && tokens.every(({ kind, upright }) => kind === "word" || upright === true);
}

function closesBraces(tokens: readonly Token[]): boolean {
  let depth = 0;
  for (const { kind, text } of tokens) {
    if (kind === "mark" && text === "{") depth += 1;
    if (kind === "mark" && text === "}") depth -= 1;
    if (depth < 0) return false;
  }
  return depth === 0;
}
