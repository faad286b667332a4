/** Whether two texts are the same mathematics: the scorer `math`, and what `MathRubric` compares with. */
import * as z from "zod";
import { NoVerdictError, OverBudgetError } from "../../../../packages/math-equivalence/budget.ts";
import { type MathEqualOptions, mathEqual } from "../../../../packages/math-equivalence/equivalence.ts";
import { extractMathAnswer, extractMathTarget } from "../../../../packages/math-equivalence/extract.ts";
import { NoScoreError } from "../score-value.ts";
import { type Work, WorkBudgetError } from "../work.ts";
import { scorer } from "./scorer.ts";

/** 1 when output and reference are the same mathematics, by the rules of `MathRubric`. */
export const math = scorer(
  z.strictObject({
    /** Only what stands in `\boxed{…}` is an answer. */
    strict: z.boolean().default(false),
    /** Reads 5 % as 0.05. */
    percent_is_ratio: z.boolean().default(false),
  }),
  ({ strict, percent_is_ratio }) =>
    (output, reference, work) => {
      const answer = extractMathAnswer(output, strict) ?? "";
      const options = { percentIsRatio: percent_is_ratio };
      return isSameMathematics(answer, extractMathTarget(reference), options, work) ? 1 : 0;
    },
);

/** Steps of a score's budget that one step of a comparison takes. */
const SCORE_STEPS = 60;

/** A comparison without a verdict is no score. The error keeps the name of what was wrong. */
class UncomparedError extends NoScoreError {
  override readonly name: string;

  constructor({ name, message }: NoVerdictError) {
    super("scorer", message);
    this.name = name;
  }
}

/**
 * Compares two texts within the budget of a score. Throws `WorkBudgetError` beyond it, and a `NoScoreError` of the name
 * `MalformedTargetError` or `UndecidedError` where there is no verdict.
 */
export function isSameMathematics(
  answer: string,
  target: string,
  options: Omit<MathEqualOptions, "spend">,
  work: Work,
): boolean {
  const spend = (steps: number) => work.spend(steps * SCORE_STEPS, "comparing two expressions");
  try {
    return mathEqual(answer, target, { ...options, spend });
  } catch (thrown) {
    if (thrown instanceof OverBudgetError) throw new WorkBudgetError(thrown.message);
    if (thrown instanceof NoVerdictError) throw new UncomparedError(thrown);
    throw thrown;
  }
}
