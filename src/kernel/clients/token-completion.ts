/**
 * Completions whose prompt is token ids: vLLM's `POST /completions`, and prime-rl's `POST /chat/completions/tokens`, which
 * takes a chat completion's body with the ids in `tokens`, and parses the reply as one.
 */
import { InvalidModelResponseError } from "../../contract/errors.ts";
import type { ModelResponse } from "../../contract/trajectory.ts";

/** A prompt as token ids. */
export interface PromptIds {
  readonly ids: readonly number[];
  /** The longest sequence of the model; null if the server does not report it. */
  readonly max_model_len: number | null;
  /** True: it is sent to `/chat/completions/tokens`, beside its messages. */
  readonly chat?: boolean;
}

/** The path of a call with this prompt, and its body. `chat`: the body of the chat completion. */
export function requestOfIds(
  chat: Readonly<Record<string, unknown>>,
  prompt: PromptIds,
): readonly [path: string, body: Readonly<Record<string, unknown>>] {
  if (prompt.chat === true) return ["/chat/completions/tokens", { ...chat, tokens: prompt.ids }];
  return ["/completions", completionRequest(chat, prompt)];
}

/** Fields of a chat completion that a completion of a prompt of ids does not have. */
const OF_CHAT: ReadonlySet<string> = new Set([
  ...["messages", "tools", "tool_choice", "parallel_tool_calls", "chat_template", "chat_template_kwargs"],
  ...["add_special_tokens", "include_reasoning", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens"],
]);

/** The body of a chat completion as that of a completion of these ids, which samples the same. */
function completionRequest(
  chat: Readonly<Record<string, unknown>>,
  { ids, max_model_len }: PromptIds,
): Record<string, unknown> {
  const { logprobs, top_logprobs } = chat;
  const most = chat["max_completion_tokens"] ?? chat["max_tokens"] ?? null;
  // Without a limit, a chat completion may fill the context, and a completion ends after 16 tokens.
  const room = max_model_len === null ? null : Math.max(1, max_model_len - ids.length);
  const kept = Object.entries(chat).filter(([name]) => !OF_CHAT.has(name));
  return {
    ...Object.fromEntries(kept),
    prompt: ids,
    ...((most ?? room) !== null && { max_tokens: most ?? room }),
    ...(logprobs === true && { logprobs: top_logprobs ?? 0 }),
  };
}

/** The response with the ids of the prompt that was sent. Throws if the engine reports others. */
export function withSentIds(response: ModelResponse, ids: readonly number[]): ModelResponse {
  const { prompt_ids } = response;
  const isSame =
    prompt_ids === null || (prompt_ids.length === ids.length && ids.every((id, at) => id === prompt_ids[at]));
  if (isSame) return { ...response, prompt_ids: ids };
  throw new InvalidModelResponseError(
    "the engine's prompt_token_ids are not the token ids of the prompt that was sent",
  );
}
