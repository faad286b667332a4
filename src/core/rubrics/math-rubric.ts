/**
 * A rubric whose score is whether the answer is the row's, as mathematics.
 *
 * 1 or 0: an answer that is missing, unreadable or longer than 50,000 characters is wrong. A row's answer that cannot be read
 * (`MalformedTargetError`), a comparison beyond its budget of work (`WorkBudgetError`) and one that no rule decides
 * (`UndecidedError`) give no score.
 */

import { extractMathAnswer, extractMathTarget } from "../../../packages/math-equivalence/extract.ts";
import { textOf } from "../../contract/messages.ts";
import type { Awaitable, ScoringArgs } from "../environments/contract.ts";
import { refuseUnknownOptions } from "../options.ts";
import { Parser } from "../parsers/parser.ts";
import { Rubric } from "./rubric.ts";
import { isSameMathematics } from "./scorers/math.ts";
import { scoreWork } from "./work.ts";

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

const OPTIONS: readonly (keyof MathOptions<unknown, unknown>)[] = [
  "name",
  "weight",
  "answer",
  "strict",
  "percentIsRatio",
  "maxCharacters",
  "parser",
];

export class MathRubric<Task = unknown, S = unknown> extends Rubric<Task, S> {
  constructor(options: MathOptions<Task, S> = {}) {
    refuseUnknownOptions("a math rubric", options, OPTIONS);
    const { name = "correct_answer", weight, answer = rowAnswer, strict = false } = options;
    const reader = (question: string) =>
      options.parser ?? new Parser((text) => extractMathAnswer(text, strict, question));
    super({ parser: reader("") });
    const fn = async (args: ScoringArgs<Task, S>) => {
      const target = extractMathTarget(await answer(args));
      const found = reader(textOf(args.prompt.at(-1))).parseAnswer(args.completion);
      return isSameMathematics(found ?? "", target, options, scoreWork(args));
    };
    this.addRewardFunc(name, fn, weight);
  }
}

function rowAnswer({ answer }: ScoringArgs<unknown, unknown>): string {
  return answer;
}
