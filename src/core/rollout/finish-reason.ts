/**
 * Maps the finish reasons of many servers to four endings: the reply is whole, was cut at a token limit, was broken
 * off, or was stopped by a policy. Each word comes from the documentation or source of the server named next to it.
 */
import { isRecord } from "../../contract/json.ts";
import { shortText } from "../../contract/shown-text.ts";

export type Ending = "stop" | "tool_calls" | "length" | "broken_off" | "refused_by_policy" | "unknown";

const ENDINGS: Readonly<Record<Exclude<Ending, "unknown">, readonly string[]>> = {
  // OpenAI; Anthropic, Bedrock (end_turn, stop_sequence); TGI (eos_token); Cohere (complete); Gemini (STOP); SGLang, Ollama.
  stop: ["stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed", "finished", "done"],
  // OpenAI (function_call before 2023-11); Anthropic, Bedrock (tool_use); Cohere (tool_call).
  tool_calls: ["tool_calls", "tool_call", "tool_use", "function_call", "function_calls"],
  // OpenAI; Mistral (model_length); Gemini, Bedrock, Cohere (MAX_TOKENS, ERROR_LIMIT); Anthropic
  // (model_context_window_exceeded); Azure.
  length: [
    ...["length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_new_tokens", "max_length"],
    ...["model_length", "token_limit", "token_limit_reached", "model_context_window_exceeded", "error_limit"],
  ],
  // OpenRouter, Mistral, Cohere (error); vLLM, SGLang (abort); DeepSeek; Zhipu (network_error); Gemini (MALFORMED_…).
  broken_off: [
    ...["error", "abort", "aborted", "cancel", "canceled", "cancelled", "user_cancel", "timeout", "interrupted"],
    ...["insufficient_system_resource", "network_error", "internal_error", "server_error", "model_error", "failed"],
    ...["malformed_function_call", "malformed_response", "malformed_tool_use", "malformed_model_output"],
    ...["unexpected_tool_call", "too_many_tool_calls", "missing_thought_signature"],
  ],
  // OpenAI, Azure; Anthropic (refusal); Gemini (LANGUAGE: a language that it does not support); Bedrock (content_filtered, guardrail_intervened); Zhipu (sensitive); Cohere.
  refused_by_policy: [
    ...[
      "content_filter",
      "content_filtered",
      "content_policy_violation",
      "refusal",
      "guardrail_intervened",
      "sensitive",
    ],
    ...["safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety", "error_toxic", "moderation"],
    ...["image_prohibited_content", "image_recitation", "model_armor", "data_inspection_failed", "language"],
  ],
};

const ENDING_OF: ReadonlyMap<string, Ending> = new Map(
  Object.entries(ENDINGS).flatMap(([ending, words]) => words.map((word) => [word, ending as Ending])),
);

const LONGEST_REASON = 100;

/** Patterns for words that are not listed. Policy words are tested first, since `content_filter_error` matches both. */
const SOUNDS_LIKE: readonly (readonly [Ending, RegExp])[] = [
  [
    "refused_by_policy",
    /filter|block(?:ed|list)|unsafe|safety|moderat|guardrail|polic(?:y|ies)|violat|prohibit|sensitive|harmful/,
  ],
  [
    "broken_off",
    /error|abort|fail|exception|time_?out|timed_out|overload|incomplete|interrupt|cancel|disconnect|unavailable|crash|killed|preempt|shutdown|oom|rate_limit/,
  ],
];

/** The server's own word; null if it sent none, or a word for "none". Some servers wrap it in an object or a list. */
export function finishWord(reason: unknown): string | null {
  const one: unknown = Array.isArray(reason) ? reason[0] : reason;
  const given = isRecord(one) ? (one["type"] ?? one["reason"] ?? one["name"]) : one;
  if (typeof given !== "string" && typeof given !== "number") return null;
  const word = shortText(String(given).trim(), LONGEST_REASON);
  return /^(?:null|none|)$/i.test(word) ? null : word;
}

/** Normalises first: `FinishReason.MAX_TOKENS`, `FINISH_REASON_MAX_TOKENS` and `max-tokens` are the same word. */
export function endingOf(word: string | null): Ending {
  if (word === null) return "unknown";
  const plain = word
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replaceAll(/[\s-]/g, "_")
    .replace(/^finish_?reason[._:]+/, "");
  const known = ENDING_OF.get(plain);
  if (known !== undefined) return known;
  // Gemini's OpenAI-compatible API writes `content_filter: PROHIBITED_CONTENT`.
  const parts = plain.split(/[:;,/|]/).map((part) => ENDING_OF.get(part.replaceAll(/^_+|_+$/g, "")));
  const listed = parts.find((part) => part === "refused_by_policy" || part === "broken_off");
  return listed ?? SOUNDS_LIKE.find(([, words]) => words.test(plain))?.[0] ?? "unknown";
}
