/**
 * The interface with which a scoring function asks a judge, and the collector of its questions.
 *
 * Invariants. A function does not wait for a model. If a judgement is not known yet, the question is collected and the
 * function's promise rejects. The caller of the scoring gets the judgements, stores them, and runs the functions again;
 * then a known judgement is returned at once. So functions may run several times, and must ask the same questions
 * again: a question is identified by its content (judge, messages, menu, sampling, pass), and equal questions are one.
 * A failed judgement rejects, so the score is null, never 0. The policy's endpoint is not a judge. Open questions are
 * held in memory, so their size is limited, singly (`LIMITS.askCharacters`) and together: the rest is asked in a later
 * pass.
 */
import { cloneJson } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Messages } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";
import { charactersOf } from "../size.ts";
import { askedMessages, type JudgementValue, type Menu, type Prompt } from "./judgement.ts";
import { NoScoreError } from "./score-value.ts";

export interface AskOptions {
  /** Which of the run's judges; `default` if absent. The rubric lists it in its `judges`. */
  readonly judge?: string;
  /** Merged over the run's sampling for this judge. */
  readonly sampling?: Sampling;
  /** Another number requests another judgement of the same text; 0 if absent. */
  readonly pass?: number;
  /** Characters of the evidence that were cut out. Recorded with the judgement. */
  readonly leftOut?: number;
  /** The seed of the order. Recorded with the judgement. */
  readonly seed?: number;
}

/** Asks a judge. Rejects with `NoScoreError` if there is no judgement; then there is no score. */
export interface Judge {
  /** A score for each id, within the range. */
  (
    prompt: string | Messages,
    options: AskOptions & { readonly ids: readonly string[]; readonly range: Range },
  ): Promise<Readonly<Record<string, number>>>;
  /** One of the labels, listed worst first. */
  <Label extends string>(
    prompt: string | Messages,
    options: AskOptions & { readonly labels: readonly Label[] },
  ): Promise<Label>;
  /** A number within the range, both ends included. */
  (prompt: string | Messages, options: AskOptions & { readonly range: Range }): Promise<number>;
  /** The similarity of two texts for an embedding model: the cosine of their embeddings, 0 if it is negative. */
  (texts: readonly [string, string], options: AskOptions & { readonly cosine: true }): Promise<number>;
  /** The unparsed reply. */
  (prompt: string | Messages, options?: AskOptions): Promise<string>;
}

type Range = readonly [least: number, most: number];

/** The source of judges for scoring functions. Null: the question is about the group, not one rollout of it. */
export interface Judges {
  of(rolloutId: string | null): Judge;
  /** Judgements that are still missing: if there are any, the scores of this pass are void. */
  readonly pending: readonly JudgeAsk[];
}

/** One question to a judge: all that determines the judgement, and what is recorded with it. */
export interface JudgeAsk {
  /** Hash of all that determines the judgement. */
  readonly key: string;
  readonly judge: string;
  /** The messages as they are sent, including the required form of the reply. */
  readonly messages: Messages;
  readonly menu: Menu;
  readonly sampling: Sampling;
  readonly pass: number;
  /** The rollout to which its cost is charged; null = the whole group. */
  readonly rollout_id: string | null;
  readonly left_out: number;
  readonly seed: number | null;
  /** Present if it is not a question: the logprobs of these tokens are requested (core/training/reference.ts). */
  readonly token_ids?: Int32Array<ArrayBuffer>;
}

/** The final result of a question. */
export type JudgeResult =
  | { readonly value: JudgementValue; readonly reason: string | null }
  | { readonly value: null; readonly error: string; readonly retryable: boolean };

/** A judge gave no judgement, after its retries. */
class UnjudgedError extends NoScoreError {
  override readonly retryable: boolean;

  constructor(message: string, retryable: boolean) {
    super("judge", message);
    this.retryable = retryable;
  }
}

export interface AskCollectorOptions {
  /** By key. */
  readonly known: Readonly<Record<string, JudgeResult>>;
  /** The judges that may be asked. */
  readonly named: readonly string[];
  /** Gives the same key for the same text. */
  readonly hash: (text: string) => string;
  /** Judgements that one scoring group may request: a function that asks a new question each time would never end. */
  readonly most: number;
}

/** The judges of one scoring pass. If `pending` is not empty after it, the scores of the pass are void. */
export class AskCollector implements Judges {
  readonly #options: AskCollectorOptions;
  readonly #pending = new Map<string, JudgeAsk>();
  /** Characters of the pending questions. */
  #characters = 0;

  constructor(options: AskCollectorOptions) {
    this.#options = options;
  }

  get pending(): JudgeAsk[] {
    return [...this.#pending.values()];
  }

  /** The size of the pending questions (UTF-16 units). */
  get characters(): number {
    return this.#characters;
  }

  of(rolloutId: string | null): Judge {
    return judgeThat((prompt, options) => this.#ask(rolloutId, prompt, options));
  }

  async #ask(rollout_id: string | null, prompt: Prompt, options: AnyAskOptions): Promise<JudgementValue> {
    const { judge = "default" } = options;
    const { known, named, hash, most } = this.#options;
    if (!named.includes(judge)) {
      const message = `the run has no judge "${judge}": list it in the rubric's judges`;
      throw new UnjudgedError(message, false);
    }
    const ask = askOf(rollout_id, judge, prompt, options, hash);
    const judgement = Object.hasOwn(known, ask.key) ? known[ask.key] : undefined;
    if (judgement === undefined) {
      if (Object.keys(known).length + this.#pending.size >= most && !this.#pending.has(ask.key)) {
        const advice = "a reward function must ask the same questions when it runs again";
        throw new UnjudgedError(`more than ${most} judgements were requested; ${advice}`, false);
      }
      this.#keep(ask);
      throw new UnjudgedError(`the judge "${judge}" has not answered yet`, true);
    }
    if (judgement.value === null) throw new UnjudgedError(judgement.error, judgement.retryable);
    return judgement.value;
  }

  /** Keeps the question if it fits. Otherwise it is asked in a later pass, and this pass is void. */
  #keep(ask: JudgeAsk): void {
    const characters = this.#characters + charactersOf(ask.messages);
    const fits = characters <= LIMITS.scoringGroupAskCharacters || this.#pending.size === 0;
    if (!fits || this.#pending.has(ask.key)) return;
    this.#pending.set(ask.key, ask);
    this.#characters = characters;
  }
}

/** For scoring without judges: every question rejects with the reason. */
export const NO_JUDGES: Judges = {
  pending: [],
  of: () =>
    judgeThat((_prompt, { judge = "default" }) => {
      const message = `the judge "${judge}" gave no judgement: judges are not called here`;
      return Promise.reject(new UnjudgedError(message, false));
    }),
};

interface AnyAskOptions extends AskOptions {
  readonly ids?: readonly string[];
  readonly labels?: readonly string[];
  readonly range?: Range;
  readonly cosine?: true;
}

type Asking = (prompt: Prompt, options: AnyAskOptions) => Promise<JudgementValue>;

/** One function for the forms of `Judge`: the judgement was parsed as the type that the menu requests. */
function judgeThat(ask: Asking): Judge {
  function judge<Value extends JudgementValue>(prompt: Prompt, options: AnyAskOptions = {}): Promise<Value> {
    const judgement = ask(prompt, options) as Promise<Value>;
    // A function may ask and never await; then the rejection must not count as unhandled.
    judgement.catch(() => undefined);
    return judgement;
  }
  return judge;
}

function askOf(
  rollout_id: string | null,
  judge: string,
  prompt: Prompt,
  options: AnyAskOptions,
  hash: (text: string) => string,
): JudgeAsk {
  const { sampling = {}, pass = 0, leftOut = 0, seed = null } = options;
  const menu = menuOf(options);
  const messages = askedMessages(prompt, menu);
  const characters = charactersOf(messages);
  if (characters > LIMITS.askCharacters) {
    const most = `the limit is ${LIMITS.askCharacters}`;
    throw new UnjudgedError(`the question to the judge "${judge}" has ${characters} characters; ${most}`, false);
  }
  // A copy, as it will be stored: the function may change its own object before it is read again.
  const asked = cloneJson({
    ...{ judge, messages, menu, sampling, pass },
    ...{ left_out: leftOut, seed },
  });
  const key = hash(JSON.stringify([judge, asked.messages, asked.menu, asked.sampling, asked.pass]));
  return { key, rollout_id, ...asked };
}

function menuOf({ ids, labels, range, cosine }: AnyAskOptions): Menu {
  if (cosine === true) return { kind: "cosine" };
  if (ids !== undefined && range !== undefined) return { kind: "scores", ids, range };
  if (labels !== undefined) return { kind: "label", labels };
  if (range !== undefined) return { kind: "number", range };
  return { kind: "text" };
}
