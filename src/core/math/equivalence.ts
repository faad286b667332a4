/**
 * Whether an answer is the target, as mathematics.
 *
 * In this order: the same text once typography is put aside; the same structure; in it the same exact rationals and the
 * same normal forms. Neither text is ever run. A wrong or unreadable answer is false; a target that cannot be read, a
 * comparison that would cost more than its budget, and one that no rule decides are errors: nobody knows the score.
 */
import { NoScoreError } from "../rubrics/score-value.ts";
import type { Work } from "../rubrics/work.ts";
import { AnswerComparison } from "./equal-answers.ts";
import { normalise, squeeze } from "./normalise.ts";
import { parseAnswer } from "./parse-answer.ts";
import { type Answer, MathSyntaxError } from "./syntax.ts";
import { MATH_LIMITS, MathWork } from "./work.ts";

/** The dataset's own answer is no mathematics that can be compared. */
export class MalformedTargetError extends NoScoreError {
  override readonly name = "MalformedTargetError";

  constructor(why: string) {
    super("scorer", `the target cannot be read: ${why}`);
  }
}

export interface MathOptions {
  /** Characters of an answer; a longer one is wrong. 50,000 unless given. */
  readonly maxCharacters?: number;
  /** Reads 5 % as 0.05. Otherwise a percentage equals percentages only. */
  readonly percentIsRatio?: boolean;
}

/**
 * Throws `MalformedTargetError`, `WorkBudgetError` and `UndecidedError`: there is no verdict. `score`: the budget it draws on.
 */
export function mathEqual(answer: string, target: string, options: MathOptions = {}, score?: Work): boolean {
  const { maxCharacters = MATH_LIMITS.characters, percentIsRatio = false } = options;
  if (answer.length > maxCharacters) return false;
  const [given, wanted] = [normalise(answer), normalise(target)];
  if (wanted === "") throw new MalformedTargetError("it is empty");
  if (squeeze(given) === squeeze(wanted)) return true;
  const work = new MathWork(score);
  const read = (text: string) => parseAnswer(percentIsRatio ? asRatio(text) : text, work);
  const right = readTarget(wanted, read);
  const left = readGiven(given, read);
  return left !== null && new AnswerComparison(work).equal(left, right);
}

function asRatio(text: string): string {
  return text.replaceAll("%", "/100 ");
}

function readTarget(text: string, read: (text: string) => Answer): Answer {
  try {
    return read(text);
  } catch (thrown) {
    if (thrown instanceof MathSyntaxError) throw new MalformedTargetError(thrown.message);
    throw thrown;
  }
}

/** Null for what is not of the grammar. */
function readGiven(text: string, read: (text: string) => Answer): Answer | null {
  try {
    return read(text);
  } catch (thrown) {
    if (thrown instanceof MathSyntaxError) return null;
    throw thrown;
  }
}
