/**
 * How a scoring function asks a judge, and how its verdicts outlive the isolate that asked for them.
 *
 * Invariants. A function does not wait for a model: it asks, and what is not known yet is collected while its promise
 * rejects. Whoever scores gets those verdicts, keeps them, and runs the functions again; a verdict that is known is
 * answered at once. So functions may run several times, and must ask the same again: an ask is known by its content
 * (judge, messages, menu, sampling, pass), and two that are alike are one. A verdict that failed rejects, and so the
 * score is null, never 0. The policy's endpoint is no judge. Asks are held until they are answered, so they have a size, one
 * by one (`LIMITS.askCharacters`) and together: what would be more is asked in a later pass.
 */
import { cloneJson } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Messages } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";
import { charactersOf } from "../size.ts";
import { NoScoreError } from "./score-value.ts";
import { askedMessages, type Menu, type Prompt, type VerdictValue } from "./verdict.ts";

export interface AskOptions {
  /** Which of the run's judges; `default` when left out. The rubric lists it in its `judges`. */
  readonly judge?: string;
  /** Over what the run says for this judge. */
  readonly sampling?: Sampling;
  /** Another number asks for another verdict on the same text; 0 when left out. */
  readonly pass?: number;
  /** Characters of the evidence that were left out. Recorded with the verdict. */
  readonly leftOut?: number;
  /** What an order was drawn from. Recorded with the verdict. */
  readonly seed?: number;
}

/** Asks a judge. Rejects with `NoScoreError` when there is no verdict, and then there is no score. */
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
  /** How alike an embedding model finds two texts: the cosine of their embeddings, 0 where it is negative. */
  (texts: readonly [string, string], options: AskOptions & { readonly cosine: true }): Promise<number>;
  /** The reply as it is. */
  (prompt: string | Messages, options?: AskOptions): Promise<string>;
}

type Range = readonly [least: number, most: number];

/** Where scoring functions get their judges. Null: what is asked is about the group, not one rollout of it. */
export interface Judges {
  of(rolloutId: string | null): Judge;
  /** Verdicts that are still to come: with any, what was scored so far is void. */
  readonly pending: readonly JudgeAsk[];
}

/** One question to a judge: all that decides the verdict, and what is recorded with it. */
export interface JudgeAsk {
  /** Hash of what decides the verdict. */
  readonly key: string;
  readonly judge: string;
  /** As they are sent, the form of the reply included. */
  readonly messages: Messages;
  readonly menu: Menu;
  readonly sampling: Sampling;
  readonly pass: number;
  /** Whose cost it is; null = the whole group's. */
  readonly rollout_id: string | null;
  readonly left_out: number;
  readonly seed: number | null;
}

/** What came of an ask, in the end. */
export type JudgeResult =
  | { readonly value: VerdictValue; readonly reason: string | null }
  | { readonly value: null; readonly error: string; readonly retryable: boolean };

/** A judge that gave no verdict, after its retries. */
class UnjudgedError extends NoScoreError {
  override readonly retryable: boolean;

  constructor(message: string, retryable: boolean) {
    super("judge", message);
    this.retryable = retryable;
  }
}

export interface AskCollectorOptions {
  readonly known: ReadonlyMap<string, JudgeResult>;
  /** Judges that may be asked. */
  readonly named: readonly string[];
  /** Gives the same key for the same text. */
  readonly hash: (text: string) => string;
  /** Verdicts one unit may ask for; a function that never asks the same again would ask for ever. */
  readonly most: number;
}

/** The judges of one scoring pass. When `pending` is not empty after it, the scores of the pass are void. */
export class AskCollector implements Judges {
  readonly #options: AskCollectorOptions;
  readonly #pending = new Map<string, JudgeAsk>();
  /** Of those that are pending. */
  #characters = 0;

  constructor(options: AskCollectorOptions) {
    this.#options = options;
  }

  get pending(): JudgeAsk[] {
    return [...this.#pending.values()];
  }

  /** What those that are pending take (UTF-16 units). */
  get characters(): number {
    return this.#characters;
  }

  of(rolloutId: string | null): Judge {
    return judgeThat((prompt, options) => this.#ask(rolloutId, prompt, options));
  }

  async #ask(rollout_id: string | null, prompt: Prompt, options: AnyAskOptions): Promise<VerdictValue> {
    const { judge = "default" } = options;
    const { known, named, hash, most } = this.#options;
    if (!named.includes(judge)) {
      const message = `the run has no judge "${judge}": list it in the rubric's judges`;
      throw new UnjudgedError(message, false);
    }
    const ask = askOf(rollout_id, judge, prompt, options, hash);
    const verdict = known.get(ask.key);
    if (verdict === undefined) {
      if (known.size + this.#pending.size >= most && !this.#pending.has(ask.key)) {
        const advice = "a reward function must ask the same questions when it runs again";
        throw new UnjudgedError(`more than ${most} judgements were requested; ${advice}`, false);
      }
      this.#keep(ask);
      throw new UnjudgedError(`the judge "${judge}" has not answered yet`, true);
    }
    if (verdict.value === null) throw new UnjudgedError(verdict.error, verdict.retryable);
    return verdict.value;
  }

  /** One for which no room is left is asked in a later pass: this one is void. */
  #keep(ask: JudgeAsk): void {
    const characters = this.#characters + charactersOf(ask.messages);
    const fits = characters <= LIMITS.unitAskCharacters || this.#pending.size === 0;
    if (!fits || this.#pending.has(ask.key)) return;
    this.#pending.set(ask.key, ask);
    this.#characters = characters;
  }
}

/** For scoring without judges: whoever asks gets no score, and learns why. */
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

type Asking = (prompt: Prompt, options: AnyAskOptions) => Promise<VerdictValue>;

/** One function with the four faces of `Judge`: what the menu asks for is what the verdict was read as. */
function judgeThat(ask: Asking): Judge {
  function judge<Value extends VerdictValue>(prompt: Prompt, options: AnyAskOptions = {}): Promise<Value> {
    const verdict = ask(prompt, options) as Promise<Value>;
    // A function may ask and never wait; the rejection is kept for whoever does.
    verdict.catch(() => undefined);
    return verdict;
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
  // A copy, as it will be stored: what the function hands over is its own, and may say something else when it is read
  // again.
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
