/** What the engine is asked for and what it gives. Token ids throughout: text is the caller's business. */
import type { Penalties } from "./penalties.ts";
import type { SampledToken, SamplingOptions } from "./sampler.ts";
import type { ToolGrammar } from "./tool-grammar.ts";

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

/** Totals since the start, but for `running`, `waiting` and `kvUsage`. */
export interface EngineStats {
  readonly running: number;
  readonly waiting: number;
  readonly promptTokens: number;
  readonly generationTokens: number;
  readonly cachedTokens: number;
  /** Generations ended, however they did. */
  readonly requests: number;
  readonly steps: number;
  /** Share of the sequence slots that running requests hold, 0 to 1. */
  readonly kvUsage: number;
}

/** The prompt and the tokens asked for do not fit the context. */
export class ContextOverflow extends Error {
  override readonly name = "ContextOverflow";
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly contextLength: number;

  constructor(promptTokens: number, maxTokens: number, contextLength: number) {
    super(
      `the context is ${contextLength} tokens, but the prompt has ${promptTokens} and ${maxTokens} more were asked for: ` +
        "shorten the messages or ask for fewer tokens",
    );
    this.promptTokens = promptTokens;
    this.maxTokens = maxTokens;
    this.contextLength = contextLength;
  }
}
