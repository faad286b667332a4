/** What a chat completion says of one choice, whole or in chunks: message, tool calls, logprobs, finish reason. */

import type { Choice } from "./choice.ts";
import { parseToolCalls } from "./hermes.ts";
import { hexId, tokenLabel } from "./reply.ts";
import type { ChatRequest } from "./request-schemas.ts";
import type { SampledToken } from "./sampler.ts";
import { tokenBytes } from "./tokenizer.ts";

export interface WireToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface SaidMessage {
  readonly content: string | null;
  readonly toolCalls: readonly WireToolCall[];
}

/** As in vLLM, text is looked through for calls only where the request offers tools and lets the model choose. */
export function parsesTools(request: ChatRequest): boolean {
  return (request.tools?.length ?? 0) > 0 && request.tool_choice !== "none";
}

export function messageOf(text: string, request: ChatRequest): SaidMessage {
  if (!parsesTools(request)) return { content: text, toolCalls: [] };
  const { content, toolCalls } = parseToolCalls(text);
  const allowed = request.parallel_tool_calls === false ? toolCalls.slice(0, 1) : toolCalls;
  const wire = allowed.map((call) => {
    const { name, arguments: sent } = call;
    const id = `chatcmpl-tool-${hexId()}`;
    return { id, type: "function" as const, function: { name, arguments: sent } };
  });
  return { content, toolCalls: wire };
}

export function finishReason(choice: Choice, message: SaidMessage): string {
  const called = message.toolCalls.length > 0 && choice.finishReason !== "abort";
  return called ? "tool_calls" : choice.finishReason;
}

/** Null where the request asked for none. */
export function chatLogprobs(tokens: readonly SampledToken[], request: ChatRequest): object | null {
  if (!request.logprobs) return null;
  const entry = ({ id, logprob }: Pick<SampledToken, "id" | "logprob">) => ({
    token: tokenLabel(id, request.return_tokens_as_token_ids),
    logprob,
    bytes: tokenBytes(id),
  });
  const content = tokens.map((token) => ({
    ...entry(token),
    top_logprobs: token.top.map(entry),
  }));
  return { content };
}
