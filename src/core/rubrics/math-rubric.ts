/**
 * A rubric whose score is whether the answer is the row's, as mathematics.
 *
 * 1 or 0: an answer that is missing, unreadable or longer than 50,000 characters is wrong, and so is one that no rule
 * proves equal; the metric `undecided` counts the last kind. A row's answer that is empty or whose braces do not close
 * (`MalformedTargetError`) and a comparison beyond its budget of work (`WorkBudgetError`) give no score.
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
  /** The name of the score; `correct_answer` when left out. */
  readonly name?: string;
  readonly weight?: number;
  /** The target, where it is not the row's `answer`. A solution that ends in `\boxed{…}` or `#### …` is read for it. */
  readonly answer?: (args: ScoringArgs<Task, S>) => Awaitable<string>;
  /** Only what stands in `\boxed{…}` is an answer. */
  readonly strict?: boolean;
  /** Reads 5 % as 0.05; otherwise a percentage equals percentages only. */
  readonly percentIsRatio?: boolean;
  /** Characters of an answer above which it is wrong. */
  readonly maxCharacters?: number;
  /** Finds the answer in a reply, in place of the usual places. */
  readonly parser?: Parser;
}

const OPTIONS = ["name", "weight", "answer", "strict", "percentIsRatio", "maxCharacters", "parser"];

/** The metric of answers that no rule proves equal to the row's, nor different: 1 or 0. Their score is 0. */
const UNDECIDED = "undecided";

export class MathRubric<Task = unknown, S = unknown> extends Rubric<Task, S> {
  constructor(options: MathOptions<Task, S> = {}) {
    refuseUnknownOptions("a math rubric", options, OPTIONS);
    const { name = "correct_answer", weight, answer = rowAnswer, strict = false } = options;
    const reader = (question: string) =>
      options.parser ?? new Parser((text) => extractMathAnswer(withoutThoughts(text), strict, question));
    super({ parser: reader("") });
    // Between the score of a rollout and its metric: both get the same state.
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
/** For each character of the two texts; those that are too long are not read as expressions. */
const READ_STEPS = 20;

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
 * `MalformedTargetError` where the target is none.
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
