/**
 * A rubric whose score is a model's verdict.
 *
 * Invariants. The judge is named here and given by the run (`judges`); it is never the policy. The verdict is one of a
 * closed set of labels. The prompt is filled in one pass, so braces in the template that name no slot, and braces in the
 * text that is judged, stay as they are. A verdict that is missing is a null score, never 0.
 */
import type { ScoringArgs } from "../environments/contract.ts";
import { refuseUnknownOptions } from "../options.ts";
import { Rubric } from "./rubric.ts";
import { NoScoreError } from "./score-value.ts";

export interface JudgeOptions<Task, S> {
  /** The name of the score. */
  readonly name: string;
  readonly weight?: number;
  /** With the slots {question}, {answer}, {response} and those of `slots`. */
  readonly prompt: string;
  /** Each label a verdict may have, and its score. */
  readonly choices: Readonly<Record<string, number>>;
  readonly slots?: (args: ScoringArgs<Task, S>) => Readonly<Record<string, string>>;
  /** Which of the run's judges answers; `default` when left out. */
  readonly judge?: string;
}

const OPTIONS = ["name", "weight", "prompt", "choices", "slots", "judge"];
const SLOT = /\{(\w+)\}/g;

export class JudgeRubric<Task = unknown, S = unknown> extends Rubric<Task, S> {
  override readonly judges: readonly string[];
  readonly #options: JudgeOptions<Task, S>;

  constructor(options: JudgeOptions<Task, S>) {
    refuseUnknownOptions("a judge rubric", options, OPTIONS);
    checkChoices(options.name, options.choices);
    super();
    const { name, weight = 1, judge = "default" } = options;
    this.#options = options;
    this.judges = [judge];
    // A run that needs a judge is refused before it starts; whoever scores all the same gets no score and learns why.
    const owed = () => {
      throw new NoScoreError("judge", `the judge "${judge}" gave no verdict: none was asked`);
    };
    this.addRewardFunc(name, owed, weight);
  }

  /** Each label and its score. */
  get choices(): Readonly<Record<string, number>> {
    return this.#options.choices;
  }

  /** What the judge is asked about one rollout. */
  render(args: ScoringArgs<Task, S>): string {
    const slots = new Map(
      Object.entries({
        question: args.prompt.at(-1)?.content ?? "",
        answer: args.answer,
        response: args.parser.parseAnswer(args.completion) ?? "",
        ...this.#options.slots?.(args),
      }),
    );
    return this.#options.prompt.replace(SLOT, (slot, name: string) => slots.get(name) ?? slot);
  }
}

function checkChoices(name: string, choices: Readonly<Record<string, number>>): void {
  const scores = Object.values(choices);
  if (scores.length === 0) throw new RangeError(`the judge of ${name} has no choices`);
  if (!scores.every(Number.isFinite)) {
    throw new RangeError(`a choice of the judge of ${name} has no finite score`);
  }
}
