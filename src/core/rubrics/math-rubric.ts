/**
 * A rubric whose score is whether the answer equals the row's, as mathematics.
 *
 * The score is 1 or 0. An answer that is missing, unreadable or longer than 50,000 characters is wrong, and so is one
 * that no rule proves equal; the metric `undecided` counts the last kind. There is no score if the row's answer is
 * empty or has unbalanced braces (`MalformedTargetError`), or if the comparison exceeds its work budget
 * (`WorkBudgetError`).
 */

import {
  extractMathAnswer,
  extractMathTarget,
  MATH_LIMITS,
  type MathEqualOptions,
  mathEqual,
  NoVerdictError,
  OverBudgetError,
} from "@rollcall/math-equivalence";
import * as z from "zod";
import { textOf } from "../../contract/messages.ts";
import type { Awaitable, ScoringArgs } from "../environments/contract.ts";
import { refuseUnknownOptions } from "../field-path.ts";
import { Parser } from "../parsers/parser.ts";
import { withoutThoughts } from "../parsers/thoughts.ts";
import { Rubric } from "./rubric.ts";
import { NoScoreError } from "./score-value.ts";
import { scorer } from "./scorers/scorer.ts";
import { scoreWork, type Work, WorkBudgetError } from "./work.ts";

export interface MathOptions<Task, S> {
  /** The name of the score; `correct_answer` if absent. */
  readonly name?: string;
  readonly weight?: number;
  /** The target, if it is not the row's `answer`. Of a solution, the final `\boxed{…}` or `#### …` is used. */
  readonly answer?: (args: ScoringArgs<Task, S>) => Awaitable<string>;
  /** Only the content of `\boxed{…}` is an answer. */
  readonly strict?: boolean;
  /** Reads 5 % as 0.05; otherwise a percentage only equals percentages. */
  readonly percentIsRatio?: boolean;
  /** An answer with more characters is wrong. */
  readonly maxCharacters?: number;
  /** Finds the answer in a reply, instead of the usual rules. */
  readonly parser?: Parser;
}

const OPTIONS = ["name", "weight", "answer", "strict", "percentIsRatio", "maxCharacters", "parser"];

/** The metric for answers that no rule proves equal to the row's or different: 1 or 0. Their score is 0. */
const UNDECIDED = "undecided";

export class MathRubric<Task = unknown, S = unknown> extends Rubric<Task, S> {
  constructor(options: MathOptions<Task, S> = {}) {
    refuseUnknownOptions("a math rubric", options, OPTIONS);
    const { name = "correct_answer", weight, answer = rowAnswer, strict = false } = options;
    const reader = (question: string) =>
      options.parser ?? new Parser((text) => extractMathAnswer(withoutThoughts(text), strict, question));
    super({ parser: reader("") });
    // Links the score of a rollout with its metric: both get the same state.
    const undecided = new WeakSet<object>();
    const fn = async (args: ScoringArgs<Task, S>) => {
      const target = extractMathTarget(await answer(args));
      const found = reader(textOf(args.prompt.at(-1))).parseAnswer(args.completion);
      const onUndecided = () => undecided.add(args.state);
      return isSameMathematics(found ?? "", target, { ...options, onUndecided }, scoreWork(args));
    };
    this.addRewardFunc(name, fn, weight);
    this.addMetric(UNDECIDED, ({ state }) => undecided.has(state));
  }
}

function rowAnswer({ answer }: ScoringArgs<unknown, unknown>): string {
  return answer;
}

/** 1 if output and reference are equal as mathematics, by the rules of `MathRubric`. */
export const math = scorer(
  z.strictObject({
    /** Only the content of `\boxed{…}` is an answer. */
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

/** One step of a comparison counts as so many steps of a score's budget. */
const SCORE_STEPS = 60;
/** Steps per character of the two texts; texts that are too long are not parsed as expressions. */
const READ_STEPS = 20;

/** A comparison without a result gives no score. The error keeps the name of its cause. */
class UncomparedError extends NoScoreError {
  override readonly name: string;

  constructor({ name, message }: NoVerdictError) {
    super("scorer", message);
    this.name = name;
  }
}

/**
 * Compares two texts within the budget of a score. Throws `WorkBudgetError` beyond it, and a `NoScoreError` with the
 * name `MalformedTargetError` if the target is malformed.
 */
function isSameMathematics(
  answer: string,
  target: string,
  options: Omit<MathEqualOptions, "spend">,
  work: Work,
): boolean {
  const spend = (steps: number) => work.spend(steps * SCORE_STEPS, "comparing two expressions");
  const { maxCharacters = MATH_LIMITS.characters } = options;
  const longest = Math.max(answer.length, target.length);
  if (longest <= maxCharacters) work.spend(READ_STEPS * (answer.length + target.length), "reading two expressions");
  try {
    return mathEqual(answer, target, { ...options, spend });
  } catch (thrown) {
    if (thrown instanceof OverBudgetError) throw new WorkBudgetError(thrown.message);
    if (thrown instanceof NoVerdictError) throw new UncomparedError(thrown);
    throw thrown;
  }
}
