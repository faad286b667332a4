/** Builds a chat completion from a reply: OpenAI's object, and vLLM's fields if the reply has them. */
import type { Usage } from "../../src/contract/messages.ts";

/** The scripted model's reply: plain text, or as many parts of a completion as a test needs. */
export type Reply = string | ReplyParts;

export interface ReplyParts {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ScriptedCall[];
  /** Absent: "tool_calls" with tool calls, else "stop". */
  readonly finish_reason?: string;
  /** vLLM: at the top level of the completion. */
  readonly prompt_token_ids?: readonly number[];
  /** vLLM: in the choice. */
  readonly token_ids?: readonly number[];
  /** One per completion token. */
  readonly logprobs?: readonly number[];
  /** The likeliest tokens at each place, from the first on. */
  readonly top_logprobs?: readonly (readonly {
    readonly token: string;
    readonly logprob: number;
  }[])[];
  /** By default a quarter of the bytes. Null: the completion has no usage. */
  readonly usage?: Usage | null;
  /** More top-level fields, such as a policy version. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface ScriptedCall {
  /** By default made from its index. */
  readonly id?: string;
  readonly name: string;
  /** A string is sent unchanged, even if it is not JSON. */
  readonly arguments: string | Readonly<Record<string, unknown>>;
}

/** `serial` makes ids that no other completion of this server has. */
export function completionBody(
  reply: Reply,
  model: string,
  serial: number,
  promptTokens: number,
): Record<string, unknown> {
  const parts = typeof reply === "string" ? { content: reply } : reply;
  const usage = parts.usage === undefined ? estimate(parts, promptTokens) : parts.usage;
  return {
    id: `chatcmpl-${serial}`,
    object: "chat.completion",
    created: 0,
    model,
    ...(parts.prompt_token_ids && { prompt_token_ids: parts.prompt_token_ids }),
    choices: [choice(parts, serial)],
    ...(usage !== null && { usage }),
    ...parts.extra,
  };
}

function choice(parts: ReplyParts, serial: number): Record<string, unknown> {
  const calls = parts.tool_calls ?? [];
  return {
    index: 0,
    message: {
      role: "assistant",
      content: parts.content ?? null,
      ...(parts.reasoning_content !== undefined && { reasoning_content: parts.reasoning_content }),
      ...(calls.length > 0 && { tool_calls: calls.map((call, at) => wireCall(call, serial, at)) }),
    },
    ...(parts.token_ids && { token_ids: parts.token_ids }),
    logprobs: parts.logprobs === undefined ? null : wireLogprobs(parts),
    finish_reason: parts.finish_reason ?? (calls.length > 0 ? "tool_calls" : "stop"),
  };
}

function wireCall(call: ScriptedCall, serial: number, at: number): Record<string, unknown> {
  const sent = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
  return {
    id: call.id ?? `call_${serial}_${at}`,
    type: "function",
    function: { name: call.name, arguments: sent },
  };
}

function wireLogprobs({ logprobs = [], token_ids: ids = [], top_logprobs = [] }: ReplyParts) {
  const content = logprobs.map((logprob, at) => ({
    token: top_logprobs[at]?.[0]?.token ?? `token_id:${ids[at] ?? at}`,
    logprob,
    bytes: null,
    top_logprobs: top_logprobs[at] ?? [],
  }));
  return { content };
}

/** Four bytes per token: the usual estimate, and the same for the same text. */
function estimate(parts: ReplyParts, promptTokens: number): Usage {
  const said = (parts.content ?? "").length + (parts.tool_calls ?? []).length * 40;
  const completion = parts.token_ids?.length ?? Math.max(1, Math.ceil(said / 4));
  const prompt = parts.prompt_token_ids?.length ?? promptTokens;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
}
