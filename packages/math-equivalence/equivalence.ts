/**
 * Whether an answer is the target, as mathematics.
 *
 * In this order: the same text once typography is put aside; the same structure; in it the same exact rationals and the
 * same normal forms. Neither text is ever run. A wrong or unreadable answer is false; a target that cannot be read, a
 * comparison that would cost more than its budget, and one that no rule decides are errors, for nobody knows the
 * verdict.
 */
import { Budget, MATH_LIMITS, MalformedTargetError } from "./budget.ts";
import { AnswerComparison } from "./compare.ts";
import { normalise, squeeze } from "./normalise.ts";
import { parseAnswer } from "./parse-answer.ts";
import { type Answer, MathSyntaxError } from "./syntax.ts";

export interface MathEqualOptions {
  /** Characters of an answer; a longer one is wrong. 50,000 unless given. */
  readonly maxCharacters?: number;
  /** Reads 5 % as 0.05. Otherwise a percentage equals percentages only. */
  readonly percentIsRatio?: boolean;
  /** Is told how many steps are about to be taken, for a budget of the caller's. What it throws ends the comparison. */
  readonly spend?: (steps: number) => void;
}

/** Throws a `NoVerdictError`: `MalformedTargetError`, `OverBudgetError` or `UndecidedError`. */
export function mathEqual(answer: string, target: string, options: MathEqualOptions = {}): boolean {
  const { maxCharacters = MATH_LIMITS.characters, percentIsRatio = false, spend = () => undefined } = options;
  if (answer.length > maxCharacters) return false;
  const [given, wanted] = [normalise(answer), normalise(target)];
  if (wanted === "") throw new MalformedTargetError("it is empty");
  if (squeeze(given) === squeeze(wanted)) return true;
  const budget = new Budget(spend);
  const read = (text: string) => readAnswer(percentIsRatio ? text.replaceAll("%", "/100 ") : text, budget);
  const right = read(wanted);
  if (right instanceof MathSyntaxError) throw new MalformedTargetError(right.message);
  const left = read(given);
  return !(left instanceof MathSyntaxError) && new AnswerComparison(budget).equal(left, right);
}

/** What was read, or what is wrong with the text. */
function readAnswer(text: string, budget: Budget): Answer | MathSyntaxError {
  try {
    return parseAnswer(text, budget);
  } catch (thrown) {
    if (thrown instanceof MathSyntaxError) return thrown;
    throw thrown;
  }
}
