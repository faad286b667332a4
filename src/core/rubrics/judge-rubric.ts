/**
 * A rubric whose score is a model's judgement.
 *
 * Invariants. The judge is named here, and the run says which model it is (`judges`); it is never the policy. The
 * judgement is one of a closed set of labels. The prompt is filled in one pass, so braces in the template that name no
 * slot, and braces in the judged text, stay as they are. The policy's text is in a fence that it cannot close, and is
 * cut in the middle if it is too long; its reasoning is left out. A missing judgement is a null score, never 0.
 */
import { type Messages, textOf } from "../../contract/messages.ts";
import type { ScoringArgs } from "../environments/contract.ts";
import { refuseUnknownOptions } from "../field-path.ts";
import type { Parser } from "../parsers/parser.ts";
import { withoutThoughts } from "../parsers/thoughts.ts";
import { Rubric } from "./rubric.ts";

export interface JudgeOptions<Task, S> {
  /** The name of the score. */
  readonly name: string;
  readonly weight?: number;
  /** With the slots {question}, {answer}, {response} and those of `slots`. {response} and `slots` are fenced. */
  readonly prompt: string;
  /** Each possible label and its score; worst first. */
  readonly choices: Readonly<Record<string, number>>;
  readonly slots?: (args: ScoringArgs<Task, S>) => Readonly<Record<string, string>>;
  /** Which of the run's judges answers; `default` if absent. */
  readonly judge?: string;
  /** Finds {response} in the completion; the environment's own parser if absent. */
  readonly parser?: Parser;
  /** Number of independent judgements; the score is their mean. 1 if absent. */
  readonly passes?: number;
  /** Maximal length of each fenced text; the rest is cut out of its middle. 100,000 if absent. */
  readonly maxCharacters?: number;
}

interface Rendered {
  readonly prompt: string;
  readonly leftOut: number;
}

const OPTIONS = ["name", "weight", "prompt", "choices", "slots", "judge", "parser", "passes", "maxCharacters"];
const SLOT = /\{(\w+)\}/g;
const MAX_CHARACTERS = 100_000;

export class JudgeRubric<Task = unknown, S = unknown> extends Rubric<Task, S> {
  readonly #options: JudgeOptions<Task, S>;

  constructor(options: JudgeOptions<Task, S>) {
    refuseUnknownOptions("a judge rubric", options, OPTIONS);
    checkOptions(options);
    const { name, weight = 1, judge = "default", parser } = options;
    super({ judges: [judge], ...(parser === undefined ? {} : { parser }) });
    this.#options = options;
    this.addRewardFunc(name, (args) => this.#judge(args), weight);
  }

  /** Each label and its score. */
  get choices(): Readonly<Record<string, number>> {
    return this.#options.choices;
  }

  /** The prompt of the judge for one rollout. */
  render(args: ScoringArgs<Task, S>): string {
    return this.#rendered(args).prompt;
  }

  async #judge(args: ScoringArgs<Task, S>): Promise<number> {
    const { judge = "default", choices, passes = 1 } = this.#options;
    const { prompt, leftOut } = this.#rendered(args);
    const labels = Object.keys(choices);
    const judgements = await Promise.all(
      Array.from({ length: passes }, (_, pass) => args.judge(prompt, { judge, labels, pass, leftOut })),
    );
    return judgements.reduce((sum, label) => sum + (choices[label] ?? Number.NaN), 0) / passes;
  }

  #rendered(args: ScoringArgs<Task, S>): Rendered {
    const { prompt, slots, maxCharacters = MAX_CHARACTERS } = this.#options;
    const response = withoutThoughts(args.parser.parseAnswer(args.completion) ?? "");
    const judged = Object.entries({ response, ...slots?.(args) }).map(([name, text]) => {
      const cut = cutMiddle(text, maxCharacters);
      return { name, leftOut: cut.leftOut, text: text === "" ? "" : fenced(cut.text) };
    });
    const texts = new Map([
      ["question", textOf(args.prompt.at(-1))],
      ["answer", args.answer],
      ...judged.map(({ name, text }): [string, string] => [name, text]),
    ]);
    return {
      prompt: prompt.replace(SLOT, (slot, name: string) => texts.get(name) ?? slot),
      leftOut: judged.reduce((sum, { leftOut }) => sum + leftOut, 0),
    };
  }
}

function checkOptions<Task, S>(options: JudgeOptions<Task, S>): void {
  const { name, choices, passes = 1, maxCharacters = MAX_CHARACTERS } = options;
  const scores = Object.values(choices);
  if (scores.length === 0) throw new RangeError(`the judge of ${name} has no choices`);
  if (!scores.every(Number.isFinite)) {
    throw new RangeError(`a choice of the judge of ${name} has no finite score`);
  }
  const folded = new Set(Object.keys(choices).map((label) => label.trim().toLowerCase()));
  if (folded.size < scores.length) {
    throw new RangeError(`two choices of the judge of ${name} cannot be told apart in a reply`);
  }
  for (const [option, value] of Object.entries({ passes, maxCharacters })) {
    if (!Number.isInteger(value) || value < 1) {
      throw new RangeError(`${option} of the judge of ${name} is ${value}: it must be a whole number of at least 1`);
    }
  }
}

/**
 * Prepares judged text for a judge's prompt: it is fenced, because it is not trusted, and cut, because it may be long.
 */
const BACKTICKS = /`+/g;
const SHORTEST_FENCE = 3;

/** Puts the text between two lines of more backticks than it has in a row, so that it cannot close its own fence. */
export function fenced(text: string): string {
  const runs = text.match(BACKTICKS) ?? [];
  const longest = runs.reduce((most, run) => Math.max(most, run.length), SHORTEST_FENCE - 1);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

export interface Cut {
  readonly text: string;
  /** The number of characters that were cut out. */
  readonly leftOut: number;
}

/** At most `most` characters of the text: the first and the last ones, and between them a line with the number cut. */
export function cutMiddle(text: string, most: number): Cut {
  if (text.length <= most) return { text, leftOut: 0 };
  const head = untilCharacter(text, Math.ceil(most / 2));
  const tail = untilCharacter(text, text.length - Math.floor(most / 2));
  const leftOut = tail - head;
  const marker = `\n[… ${leftOut} characters left out …]\n`;
  return { text: `${text.slice(0, head)}${marker}${text.slice(tail)}`, leftOut };
}

/** A conversation for a judge: each role's text, and tool calls with arguments. No reasoning, ids or rewards. */
export function transcriptOf(messages: Messages): string {
  return messages
    .map((message) => {
      const calls = (message.tool_calls ?? []).map(
        ({ function: { name, arguments: given } }) => `calls ${name}(${given})`,
      );
      const said = message.role === "assistant" ? withoutThoughts(textOf(message)) : textOf(message);
      return [`[${message.role}]`, ...(said === "" ? [] : [said]), ...calls].join("\n");
    })
    .join("\n\n");
}

/** The nearest index up to `at` that does not split a surrogate pair. */
function untilCharacter(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}
