/**
 * Continuous batching over one model. Every step computes a row for each sequence that decodes, fills the rest with the
 * prompts of new sequences, and then yields to the event loop.
 *
 * Invariants: the tokens of a request depend on its prompt, its seed and the weights, never on other requests. Requests
 * start in the order they arrived; at most `maxRunning` run, the others wait. Weights change between two steps: a
 * running sequence keeps its keys and values (vLLM calls this `keep`). A later request does not reuse anything computed
 * with old weights, unless `keepPrefixCache` is set. Each request is settled exactly once.
 */
import { createHash, randomInt } from "node:crypto";
import { seededRandom } from "rollcall/helpers";
import { Decoder, decoderCapacity } from "./decoder.ts";
import { Arena } from "./gemm.ts";
import { type Generation, type GenerationRequest, Sequence, type Waiting } from "./generation.ts";
import { KvCache, kvCapacity } from "./kv-cache.ts";
import { bytesFromWeights, POLICY, WEIGHT_COUNT } from "./weights.ts";

/**
 * The rows of one step: enough to use the processor well, few enough to yield to the event loop within milliseconds.
 */
const MAX_ROWS = 256;
const MAX_RUNNING = 256;

export interface EngineOptions {
  readonly weights: Float32Array;
  /** The name of the weights, returned with every generation. */
  readonly version: string;
  /** The most sequences at once; the cache holds twice as many. 256 by default, which takes 58 MB when all are used. */
  readonly maxRunning?: number;
  /** The base of the seeds for requests without one; random by default. */
  readonly seed?: number;
  /** After a change of weights, the cache stays valid for requests with the same salt, until `resetPrefixCache`. */
  readonly keepPrefixCache?: boolean;
}

/** Totals since the start, except `running`, `waiting` and `kvUsage`. */
export interface EngineStats {
  readonly running: number;
  readonly waiting: number;
  readonly promptTokens: number;
  readonly generationTokens: number;
  readonly cachedTokens: number;
  /** Generations that ended, for any reason. */
  readonly requests: number;
  /** The share of the sequence slots that running requests use, 0 to 1. */
  readonly kvUsage: number;
}

export class Engine {
  readonly contextLength = POLICY.context;
  readonly vocabularySize = POLICY.vocabulary;
  readonly #decoder: Decoder;
  readonly #cache: KvCache;
  readonly #maxRunning: number;
  readonly #seed: number;
  readonly #keepsPrefixCache: boolean;
  readonly #running = new Set<Sequence>();
  #waiting: Waiting[] = [];
  #version: string;
  #digest = "";
  #scheduled = false;
  #stopped = false;
  #accepted = 0;
  readonly #totals = { promptTokens: 0, generationTokens: 0, cachedTokens: 0, requests: 0 };

  constructor(options: EngineOptions) {
    const { maxRunning = MAX_RUNNING, seed = randomInt(2 ** 31) } = options;
    const slots = 2 * maxRunning;
    const arena = new Arena(decoderCapacity(MAX_ROWS) + kvCapacity(POLICY, slots));
    this.#decoder = new Decoder(arena, MAX_ROWS);
    this.#cache = new KvCache(POLICY, arena, slots);
    this.#maxRunning = maxRunning;
    this.#seed = seed;
    this.#keepsPrefixCache = options.keepPrefixCache ?? false;
    this.#version = options.version;
    this.#load(options.weights);
  }

  get weightVersion(): string {
    return this.#version;
  }

  /** SHA-256 of the weights in their file format, in hex. */
  get weightsDigest(): string {
    return this.#digest;
  }

  /**
   * Rejects with RangeError if the prompt and its tokens do not fit, or if the prompt is empty or has an unknown token;
   * rejects with any error of `onToken`. A request whose signal is aborted ends with `abort`.
   */
  async generate(request: GenerationRequest): Promise<Generation> {
    this.#check(request);
    const outcome = Promise.withResolvers<Generation>();
    const seed = request.seed === null ? [this.#seed, this.#accepted] : [request.seed];
    this.#accepted += 1;
    this.#waiting.push({ request, random: seededRandom("sample", ...seed), outcome });
    this.#schedule();
    return outcome.promise;
  }

  /**
   * Takes effect at the next step. Rejects with RangeError if the number of weights is wrong or a weight is not finite.
   */
  async updateWeights(weights: Float32Array, version: string): Promise<void> {
    this.#load(weights);
    this.#version = version;
    if (!this.#keepsPrefixCache) this.#cache.invalidate();
  }

  /** Later requests reuse nothing that was computed so far. */
  resetPrefixCache(): void {
    this.#cache.invalidate();
  }

  stats(): EngineStats {
    return {
      ...this.#totals,
      running: this.#running.size,
      waiting: this.#waiting.length,
      kvUsage: this.#cache.usage,
    };
  }

  /** Ends all requests with `abort` and accepts no more. */
  stop(): void {
    this.#stopped = true;
    for (const sequence of this.#running) this.#finish(sequence, "abort");
    this.#drop(() => true);
  }

  #check({ prompt, maxTokens }: GenerationRequest): void {
    if (this.#stopped) throw new Error("the engine has been stopped");
    const { contextLength } = this;
    if (prompt.length >= contextLength || prompt.length + maxTokens > contextLength) {
      throw new RangeError(
        `the context is ${contextLength} tokens, but the prompt has ${prompt.length} and ${maxTokens} more were asked for: ` +
          "shorten the messages or ask for fewer tokens",
      );
    }
    if (prompt.length === 0) throw new RangeError("the prompt is empty: it needs at least 1 token");
    if (!(maxTokens >= 1)) throw new RangeError(`maxTokens is ${maxTokens}: ask for at least 1`);
    const unknown = prompt.find((id) => !(Number.isInteger(id) && id >= 0 && id < this.vocabularySize));
    if (unknown !== undefined) {
      throw new RangeError(`${unknown} is no token: ids go from 0 to ${this.vocabularySize - 1}`);
    }
  }

  #load(weights: Float32Array): void {
    if (weights.length !== WEIGHT_COUNT) {
      throw new RangeError(`the model has ${WEIGHT_COUNT} weights, but ${weights.length} were given`);
    }
    if (!weights.every(Number.isFinite)) throw new RangeError("a weight is not a finite number");
    this.#decoder.load(weights);
    this.#digest = createHash("sha256").update(bytesFromWeights(weights)).digest("hex");
  }

  /** Runs each step in its own turn of the event loop, as long as there is work. */
  #schedule(): void {
    if (this.#scheduled || this.#running.size + this.#waiting.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#step();
      this.#schedule();
    });
  }

  #step(): void {
    this.#drop(({ request }) => request.signal?.aborted === true);
    for (const sequence of this.#running) {
      if (sequence.request.signal?.aborted === true) this.#finish(sequence, "abort");
    }
    this.#admit();
    const rows = [];
    const asking: { readonly sequence: Sequence; readonly count: number }[] = [];
    for (const sequence of this.#running) {
      const next = sequence.nextRows(MAX_ROWS - rows.length);
      rows.push(...next);
      const count = next.filter(({ sampled }) => sampled).length;
      if (count > 0) asking.push({ sequence, count });
    }
    const logits = this.#decoder.step(rows);
    // A listener may change the weights or stop the engine: this step's tokens belong to the weights it began with.
    const version = this.#version;
    let first = 0;
    for (const { sequence, count } of asking) {
      const own = logits.subarray(first, first + count * this.vocabularySize);
      first += own.length;
      this.#take(sequence, own, version);
    }
  }

  #admit(): void {
    while (this.#running.size < this.#maxRunning) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      const { prompt, cacheSalt, promptLogprobs } = next.request;
      // Logits after a cached token are not there any more.
      const salt = promptLogprobs === undefined ? cacheSalt : `prompt logprobs ${this.#totals.requests}`;
      const slot = this.#cache.acquire(prompt, salt);
      const sequence = new Sequence(next, slot);
      this.#running.add(sequence);
      this.#totals.promptTokens += prompt.length;
      this.#totals.cachedTokens += sequence.cachedTokens;
    }
  }

  /** The logits of one sequence: after tokens of its prompt if it reports those, and after its last token if that was read. */
  #take(sequence: Sequence, logits: Float32Array, version: string): void {
    const { vocabularySize: size } = this;
    const noted = sequence.isRead ? logits.length - size : logits.length;
    for (let at = 0; at < noted; at += size) sequence.note(logits.subarray(at, at + size));
    if (noted < logits.length) this.#sample(sequence, logits.subarray(noted), version);
  }

  #sample(sequence: Sequence, logits: Float32Array, version: string): void {
    if (!this.#running.has(sequence)) return;
    this.#totals.generationTokens += 1;
    try {
      const reason = sequence.sample(logits, version);
      if (reason !== null) this.#finish(sequence, reason);
    } catch (error) {
      this.#leave(sequence);
      sequence.outcome.reject(error);
    }
  }

  #finish(sequence: Sequence, reason: Generation["finishReason"]): void {
    this.#leave(sequence);
    sequence.outcome.resolve(sequence.generation(reason, this.#version));
  }

  #leave(sequence: Sequence): void {
    if (!this.#running.delete(sequence)) return;
    this.#cache.release(sequence.slot);
    this.#totals.requests += 1;
  }

  /** Ends requests that are still waiting. */
  #drop(unwanted: (waiting: Waiting) => boolean): void {
    const weightVersions = { first: this.#version, last: this.#version };
    for (const { outcome } of this.#waiting.filter(unwanted)) {
      this.#totals.requests += 1;
      outcome.resolve({
        promptLogprobs: [],
        tokens: [],
        finishReason: "abort",
        stopToken: null,
        cachedTokens: 0,
        weightVersions,
      });
    }
    this.#waiting = this.#waiting.filter((waiting) => !unwanted(waiting));
  }
}
