/** The logprobs of a plain completion: OpenAI's older shape, one list per column. */

import { tokenLabel } from "./reply.ts";
import type { CompletionRequest } from "./request-schemas.ts";
import type { SampledToken } from "./sampler.ts";

/** `offset`: characters of the choice's tokens before these. Null where the request asked for no logprobs. */
export function completionLogprobs(
  tokens: readonly SampledToken[],
  request: CompletionRequest,
  offset: number,
): object | null {
  if (request.logprobs === undefined || request.logprobs === null) return null;
  const label = (id: number) => tokenLabel(id, request.return_tokens_as_token_ids);
  let end = offset;
  const text_offset = tokens.map(({ id }) => {
    const start = end;
    end += label(id).length;
    return start;
  });
  return {
    tokens: tokens.map(({ id }) => label(id)),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    // As in vLLM the sampled token stands among its alternatives.
    top_logprobs: tokens.map((token) =>
      Object.fromEntries([token, ...token.top].map(({ id, logprob }) => [label(id), logprob])),
    ),
    text_offset,
  };
}
