/** Requests with every field set, for tests that set only one of them. */
import type { GenerationRequest } from "../generation.ts";

/** Eight tokens at temperature 1, not ended by `<|end|>`. */
export function requestFor(prompt: readonly number[], fields: Partial<GenerationRequest> = {}): GenerationRequest {
  return {
    prompt,
    maxTokens: 8,
    temperature: 1,
    topP: 1,
    topK: -1,
    minP: 0,
    seed: 1,
    ignoreEos: true,
    minTokens: 0,
    stopTokenIds: [],
    topLogprobs: 0,
    cacheSalt: null,
    penalties: { repetition: 1, presence: 0, frequency: 0 },
    grammar: null,
    rawLogprobs: false,
    ...fields,
  };
}
