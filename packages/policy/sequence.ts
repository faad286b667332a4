/**
 * One request while it runs: which tokens it needs computed next, and what becomes of what is sampled.
 *
 * Invariants. The slot holds a prefix of prompt + sampled tokens; the rows asked for continue it. A token is sampled
 * from the row of the last token only. The random numbers are the sequence's own: who else is in the batch changes
 * nothing.
 */
import type { Row } from "./decoder.ts";
import type { Generation, GenerationRequest } from "./generation.ts";
import type { KvSlot } from "./kv-cache.ts";
import { penalised } from "./penalties.ts";
import { type SampledToken, sampleToken } from "./sampler.ts";
import { END } from "./vocabulary.ts";

/** A request that waits for its turn. */
export interface Waiting {
  readonly request: GenerationRequest;
  readonly random: () => number;
  readonly outcome: PromiseWithResolvers<Generation>;
}

export class Sequence {
  readonly request: GenerationRequest;
  readonly outcome: PromiseWithResolvers<Generation>;
  readonly slot: KvSlot;
  /** Prompt tokens the slot held already. */
  readonly cachedTokens: number;
  readonly #random: () => number;
  readonly #tokens: SampledToken[] = [];
  readonly #ids: number[];
  #firstVersion: string | null = null;
  #lastVersion: string | null = null;

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
    this.#firstVersion ??= version;
    this.#lastVersion = version;
    const stopped = onToken?.(token) === true;
    if (stopped || this.#endsWith(token.id)) return "stop";
    return this.#tokens.length >= maxTokens ? "length" : null;
  }

  #draw(logits: Float32Array): SampledToken {
    const { prompt, penalties, grammar, rawLogprobs } = this.request;
    const answer = this.#ids.slice(prompt.length);
    return sampleToken(penalised(logits, penalties, prompt, answer), this.request, this.#random, {
      forbidden: this.#forbidden(),
      allowed: grammar?.allowedAfter(answer) ?? null,
      ...(rawLogprobs && { raw: logits }),
    });
  }

  /** What came of it. `version` stands for the weights of a sequence that sampled nothing. */
  generation(finishReason: Generation["finishReason"], version: string): Generation {
    const last = this.#tokens.at(-1)?.id;
    const named = finishReason === "stop" && last !== undefined && this.#isStopToken(last);
    return {
      tokens: this.#tokens,
      finishReason,
      stopToken: named ? last : null,
      cachedTokens: this.cachedTokens,
      weightVersions: {
        first: this.#firstVersion ?? version,
        last: this.#lastVersion ?? version,
      },
    };
  }

  #endsWith(id: number): boolean {
    return this.#isStopToken(id) || (id === END && !this.request.ignoreEos);
  }

  #isStopToken(id: number): boolean {
    return this.request.stopTokenIds.includes(id);
  }

  #forbidden(): readonly number[] {
    const { minTokens, stopTokenIds } = this.request;
    return this.#tokens.length < minTokens ? [END, ...stopTokenIds] : [];
  }
}
