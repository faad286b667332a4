/**
 * One of a request's choices: the text that the engine samples after one prompt.
 *
 * Invariants: the text never contains a special token, nor a stop string unless the request keeps it. The tokens are
 * all sampled tokens, the ending token included, so ids and logprobs line up. As in vLLM, stop strings are ignored
 * before `min_tokens`. Choice i of a seeded request is sampled with seed + i.
 */
import type { Engine } from "./engine.ts";
import type { Generation } from "./generation.ts";
import type { SampledToken } from "./sampler.ts";
import { roomFor, type SamplingPlan } from "./sampling.ts";
import { IncrementalDecoder } from "./tokenizer.ts";

export interface Choice extends Generation {
  readonly index: number;
  readonly prompt: readonly number[];
  readonly text: string;
  /**
   * The stop string or the id of the stop token that ended it; null if the model ended it or the length was reached.
   */
  readonly stopReason: string | number | null;
}

/** The text that one token added; the last delta of a choice may have text and no token. */
export interface Delta {
  readonly index: number;
  readonly text: string;
  readonly tokens: readonly SampledToken[];
}

export interface ChoicesRequest {
  readonly prompts: readonly (readonly number[])[];
  readonly plan: SamplingPlan;
  /** The number of likeliest tokens to report for each token of the prompt; absent: no logprobs of the prompt. */
  readonly promptLogprobs?: number | undefined;
  readonly signal: AbortSignal;
  /** Called with each delta as it arrives, for a stream. */
  readonly onDelta?: (delta: Delta) => void;
}

/**
 * Samples `plan.choices` choices of each prompt in parallel, numbered prompt by prompt. Throws vLLM's 400 if a prompt
 * and its completion do not fit the context.
 */
export function sampleChoices(engine: Engine, request: ChoicesRequest): Promise<Choice[]> {
  const { choices } = request.plan;
  const all = request.prompts.flatMap((prompt, which) =>
    Array.from({ length: choices }, (_, nth) => sampleChoice(engine, request, prompt, which * choices + nth)),
  );
  return Promise.all(all);
}

async function sampleChoice(
  engine: Engine,
  { plan, promptLogprobs, signal, onDelta }: ChoicesRequest,
  prompt: readonly number[],
  index: number,
): Promise<Choice> {
  const text = new ChoiceText(plan);
  const generation = await engine.generate({
    ...plan,
    prompt,
    maxTokens: roomFor(plan, prompt.length, engine.contextLength),
    seed: plan.seed === null ? null : plan.seed + (index % plan.choices),
    topLogprobs: plan.topLogprobs ?? 0,
    promptLogprobs,
    signal,
    onToken: (token) => {
      const added = text.push(token.id);
      onDelta?.({ index, text: added, tokens: [token] });
      return text.stop !== null;
    },
  });
  const rest = text.end();
  if (rest !== "") onDelta?.({ index, text: rest, tokens: [] });
  return { ...generation, index, prompt, text: text.whole, stopReason: text.stop ?? generation.stopToken };
}

/**
 * The text of a choice as its tokens arrive, cut at the first stop string.
 *
 * Invariants: text that could still become a stop string is held back, so that no part of one is ever returned,
 * wherever tokens end. The returned pieces, joined, are the whole text. Nothing is returned after a stop.
 */
class ChoiceText {
  /** All text that was returned. */
  whole = "";
  /** The stop string that was found; null if none was. */
  stop: string | null = null;
  readonly #plan: SamplingPlan;
  readonly #decoder = new IncrementalDecoder();
  #held = "";
  #tokens = 0;

  constructor(plan: SamplingPlan) {
    this.#plan = plan;
  }

  /** The text that can be shown with this token. */
  push(id: number): string {
    const { stopTokenIds, keepStop, minTokens } = this.#plan;
    this.#tokens += 1;
    if (stopTokenIds.includes(id) && !keepStop) return "";
    const piece = this.#decoder.push(id);
    return this.#tokens <= minTokens ? this.#handOut(piece) : this.#cut(piece);
  }

  /** The rest, when no more tokens come. */
  end(): string {
    if (this.stop !== null) return "";
    const text = this.#cut(this.#decoder.end());
    return this.stop === null ? text + this.#handOut(this.#held) : text;
  }

  #cut(piece: string): string {
    const { stops, keepStop } = this.#plan;
    const text = this.#held + piece;
    const [first] = stops
      .map((stop) => ({ stop, at: text.indexOf(stop) }))
      .filter(({ at }) => at >= 0)
      .sort((one, other) => one.at - other.at);
    if (first !== undefined) {
      this.stop = first.stop;
      return this.#handOut(text.slice(0, first.at + (keepStop ? first.stop.length : 0)));
    }
    const safe = text.length - longestBeginning(text, stops);
    this.#held = text.slice(safe);
    return this.#handOut(text.slice(0, safe));
  }

  #handOut(text: string): string {
    this.whole += text;
    return text;
  }
}

/** The length of the longest suffix of the text that is an incomplete beginning of one of these strings. */
export function longestBeginning(text: string, strings: readonly string[]): number {
  const lengths = strings.map((string) => {
    for (let length = Math.min(string.length - 1, text.length); length > 0; length -= 1) {
      if (text.endsWith(string.slice(0, length))) return length;
    }
    return 0;
  });
  return Math.max(0, ...lengths);
}
