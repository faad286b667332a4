/** The requests and results of the engine, and one request while it runs. Everything is token ids, not text. */
import type { Row } from "./decoder.ts";
import type { ToolGrammar } from "./hermes.ts";
import type { KvSlot } from "./kv-cache.ts";
import {
  applyPenalties,
  type Penalties,
  type PromptLogprob,
  rankedLogprob,
  type SampledToken,
  type SamplingOptions,
  sampleToken,
} from "./sampler.ts";
import { END } from "./tokenizer.ts";

export interface GenerationRequest extends SamplingOptions {
  readonly prompt: readonly number[];
  /** At least 1. */
  readonly maxTokens: number;
  /** Null for a seed of the engine, different for each request. */
  readonly seed: number | null;
  /** Treats `<|end|>` like any other token. */
  readonly ignoreEos: boolean;
  /** `<|end|>` and the stop tokens are not sampled before this number of tokens. */
  readonly minTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly penalties: Penalties;
  /** The grammar of its tool calls; null for none. */
  readonly grammar: ToolGrammar | null;
  /** Log probabilities are computed from the logits before penalties, grammar and temperature. */
  readonly rawLogprobs: boolean;
  /** Only requests with the same salt share cache entries. */
  readonly cacheSalt: string | null;
  /** Reports the logprob of each token of the prompt, and this many likeliest ones; absent: none. */
  readonly promptLogprobs?: number | undefined;
  readonly signal?: AbortSignal;
  /** Called with each sampled token; returning true ends the generation, because a stop string was found. */
  readonly onToken?: (token: SampledToken) => boolean;
}

export interface Generation {
  /** For each token of the prompt but the first, if the request asked for them: by log_softmax of the plain logits. */
  readonly promptLogprobs: readonly PromptLogprob[];
  /** All sampled tokens, including the one that ended it. */
  readonly tokens: readonly SampledToken[];
  readonly finishReason: "stop" | "length" | "abort";
  /** The entry of `stopTokenIds` that ended it; null if it ended in another way. */
  readonly stopToken: number | null;
  /** The number of prompt tokens that were read from the cache. */
  readonly cachedTokens: number;
  /** The weights that sampled the first and the last token. */
  readonly weightVersions: { readonly first: string; readonly last: string };
}

/** A request that waits to start. */
export interface Waiting {
  readonly request: GenerationRequest;
  readonly random: () => number;
  readonly outcome: PromiseWithResolvers<Generation>;
}

/**
 * One request while it runs: the tokens to compute next, and the handling of sampled tokens.
 *
 * Invariants: the slot holds a prefix of prompt + sampled tokens, and `nextRows` continues it. Tokens are sampled only
 * from the row of the last token. Each sequence has its own random numbers, so other requests in the batch change
 * nothing.
 */
export class Sequence {
  readonly request: GenerationRequest;
  readonly outcome: PromiseWithResolvers<Generation>;
  readonly slot: KvSlot;
  /** The number of prompt tokens that the slot already held. */
  readonly cachedTokens: number;
  readonly #random: () => number;
  readonly #tokens: SampledToken[] = [];
  readonly #promptLogprobs: PromptLogprob[] = [];
  readonly #ids: number[];
  #weightVersions: Generation["weightVersions"] | null = null;

  constructor({ request, random, outcome }: Waiting, slot: KvSlot) {
    this.request = request;
    this.outcome = outcome;
    this.slot = slot;
    this.cachedTokens = slot.tokens.length;
    this.#random = random;
    this.#ids = [...request.prompt];
  }

  /** The tokens to compute next, at most `limit`. A row with `sampled` gets logits: `note` or `sample` takes them. */
  nextRows(limit: number): Row[] {
    const first = this.slot.tokens.length;
    const end = Math.min(this.#ids.length, first + limit);
    const last = this.#ids.length - 1;
    return this.#ids
      .slice(first, end)
      .map((token, index) => ({ slot: this.slot, token, sampled: first + index === last || this.#reports }));
  }

  /** Whether the logits after the prompt's tokens are reported. */
  get #reports(): boolean {
    return this.request.promptLogprobs !== undefined && this.#tokens.length === 0;
  }

  /** Whether the slot has all tokens so far. */
  get isRead(): boolean {
    return this.slot.tokens.length === this.#ids.length;
  }

  /** Takes the logits after the next token of the prompt, of which another token follows in the prompt. */
  note(logits: Float32Array): void {
    const { prompt, promptLogprobs = 0 } = this.request;
    const id = prompt[this.#promptLogprobs.length + 1];
    if (id !== undefined) this.#promptLogprobs.push(rankedLogprob(logits, id, promptLogprobs));
  }

  /** Samples one more token; returns the finish reason, or null if the generation continues. */
  sample(logits: Float32Array, version: string): "stop" | "length" | null {
    const { maxTokens, onToken } = this.request;
    const token = this.#draw(logits);
    this.#tokens.push(token);
    this.#ids.push(token.id);
    this.#weightVersions = { first: this.#weightVersions?.first ?? version, last: version };
    const metStop = onToken?.(token) === true;
    const isEnd = token.id === END && !this.request.ignoreEos;
    if (metStop || isEnd || this.#isStopToken(token.id)) return "stop";
    return this.#tokens.length >= maxTokens ? "length" : null;
  }

  #draw(logits: Float32Array): SampledToken {
    const { prompt, penalties, grammar, rawLogprobs, minTokens, stopTokenIds } = this.request;
    const answer = this.#ids.slice(prompt.length);
    return sampleToken(applyPenalties(logits, penalties, prompt, answer), this.request, this.#random, {
      forbidden: this.#tokens.length < minTokens ? [END, ...stopTokenIds] : [],
      allowed: grammar?.allowedAfter(answer) ?? null,
      ...(rawLogprobs && { raw: logits }),
    });
  }

  /** The result. `version` names the weights for a sequence that sampled nothing. */
  generation(finishReason: Generation["finishReason"], version: string): Generation {
    const last = this.#tokens.at(-1)?.id;
    const isNamed = finishReason === "stop" && last !== undefined && this.#isStopToken(last);
    return {
      promptLogprobs: this.#promptLogprobs,
      tokens: this.#tokens,
      finishReason,
      stopToken: isNamed ? last : null,
      cachedTokens: this.cachedTokens,
      weightVersions: this.#weightVersions ?? { first: version, last: version },
    };
  }

  #isStopToken(id: number): boolean {
    return this.request.stopTokenIds.includes(id);
  }
}
