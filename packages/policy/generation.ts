/** What the engine is asked for, what it gives, and one request while it runs. Token ids throughout: no text. */
import type { Row } from "./decoder.ts";
import type { ToolGrammar } from "./hermes.ts";
import type { KvSlot } from "./kv-cache.ts";
import { applyPenalties, type Penalties, type SampledToken, type SamplingOptions, sampleToken } from "./sampler.ts";
import { END } from "./tokenizer.ts";

export interface GenerationRequest extends SamplingOptions {
  readonly prompt: readonly number[];
  /** At least 1. */
  readonly maxTokens: number;
  /** Null: a seed of the engine's own, another for each request. */
  readonly seed: number | null;
  /** `<|end|>` is a token like any other. */
  readonly ignoreEos: boolean;
  /** `<|end|>` and the stop tokens are not sampled before there are this many. */
  readonly minTokens: number;
  readonly stopTokenIds: readonly number[];
  readonly penalties: Penalties;
  /** What its tool calls are held to; null: nothing. */
  readonly grammar: ToolGrammar | null;
  /** Log probabilities are of the logits as the weights give them. */
  readonly rawLogprobs: boolean;
  /** Only requests with the same salt share what the cache holds. */
  readonly cacheSalt: string | null;
  readonly signal?: AbortSignal;
  /** Told of each token as it is sampled; true ends the generation there: a stop string was met. */
  readonly onToken?: (token: SampledToken) => boolean;
}

export interface Generation {
  /** Everything sampled, the token that ended it included. */
  readonly tokens: readonly SampledToken[];
  readonly finishReason: "stop" | "length" | "abort";
  /** The one of `stopTokenIds` that ended it; null for `<|end|>` and everything else. */
  readonly stopToken: number | null;
  /** Prompt tokens that were read from the cache. */
  readonly cachedTokens: number;
  /** The weights that the first and the last token came from. */
  readonly weightVersions: { readonly first: string; readonly last: string };
}

/** A request that waits for its turn. */
export interface Waiting {
  readonly request: GenerationRequest;
  readonly random: () => number;
  readonly outcome: PromiseWithResolvers<Generation>;
}

/**
 * One request while it runs: which tokens it needs computed next, and what becomes of what is sampled.
 *
 * Invariants. The slot holds a prefix of prompt + sampled tokens; the rows asked for continue it. A token is sampled
 * from the row of the last token only. The random numbers are the sequence's own: who else is in the batch changes
 * nothing.
 */
export class Sequence {
  readonly request: GenerationRequest;
  readonly outcome: PromiseWithResolvers<Generation>;
  readonly slot: KvSlot;
  /** Prompt tokens the slot held already. */
  readonly cachedTokens: number;
  readonly #random: () => number;
  readonly #tokens: SampledToken[] = [];
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

  /** The tokens to compute next, at most `limit`. */
  nextRows(limit: number): Row[] {
    const first = this.slot.tokens.length;
    const end = Math.min(this.#ids.length, first + limit);
    const last = this.#ids.length - 1;
    return this.#ids
      .slice(first, end)
      .map((token, index) => ({ slot: this.slot, token, sampled: first + index === last }));
  }

  /** Takes one more token; why the generation ends with it, or null while it goes on. */
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

  /** The result. `version` stands for the weights of a sequence that sampled nothing. */
  generation(finishReason: Generation["finishReason"], version: string): Generation {
    const last = this.#tokens.at(-1)?.id;
    const isNamed = finishReason === "stop" && last !== undefined && this.#isStopToken(last);
    return {
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
