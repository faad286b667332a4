/**
 * Whether a refusal says that the prompt does not fit the model's context. Each row is a server family: how it says so, and
 * where that stands. A refusal is recognised by status (400, 413 or 422) and by code, type, param or wording; other limits,
 * such as those of a reply's length, of a rate or of another field, are none.
 */
import { isRecord } from "../contract/json.ts";

/** `words` are lower-cased. Patterns take time linear in the text, which is cut before. */
const WORDINGS: readonly (readonly [servers: string, words: RegExp, source: string])[] = [
  [
    "verifiers' list",
    /context length|maximum model length|exceeded model|exceeds? the configured limit/,
    "verifiers, openai client",
  ],
  [
    "verifiers' list",
    /prompt_too_long|prompt is too long|'max_tokens' or 'max_completion_tokens' is too large/,
    "the same",
  ],
  [
    "OpenAI, Azure",
    /exceeds? the (model's )?context window|context window (of this model|exceeded|is full)/,
    "OpenAI error codes",
  ],
  ["OpenAI", /expected a string with maximum length/, "OpenAI error code string_above_max_length"],
  ["Groq, Cerebras, OpenAI", /reduce the length of (the|your) (messages|prompt|input)/, "console.groq.com/docs/errors"],
  ["xAI", /maximum prompt length is/, "docs.x.ai, errors"],
  ["Anthropic", /exceed(s|ed)? (the )?context limit|prompt (is|was) too long/, "docs.anthropic.com, errors"],
  [
    "Gemini, Vertex",
    /input token count.{0,40}exceeds|exceeds the maximum number of tokens allowed/,
    "ai.google.dev, troubleshooting",
  ],
  [
    "Bedrock",
    /input is too long for (the )?requested model|too many input tokens/,
    "AWS re:Post; Bedrock validation errors",
  ],
  ["Bedrock", /expected maxlength: \d+, actual: \d+/, "Bedrock validation errors"],
  ["Cohere", /too many tokens(?! per|, please)/, "docs.cohere.com, errors"],
  ["Mistral", /too large for model with \d+ maximum context/, "docs.mistral.ai"],
  [
    "Fireworks, Zhipu",
    /prompt (is|are) too long|prompt exceeds (the )?max(imum)? length/,
    "docs.fireworks.ai; open.bigmodel.cn error 1261",
  ],
  [
    "llama.cpp",
    /exceeds? the available context size|context size (has been )?exceeded/,
    "ggml-org/llama.cpp, tools/server",
  ],
  ["Ollama", /(input|prompt)( length)? exceeds (the )?(maximum )?context/, "ollama/ollama, server"],
  [
    "LM Studio",
    /context the overflows|tokens to keep from the initial prompt|context overflow|reached context length/,
    "lmstudio-ai bug tracker",
  ],
  [
    "TGI, Together",
    /`?inputs`? (tokens \+ `?max_new_tokens`? must be|must have less than \d+ tokens)/,
    "huggingface/text-generation-inference, validation.rs",
  ],
  [
    "SGLang",
    /longer than the model's context|input length \(\d+ tokens\) exceeds the maximum allowed/,
    "sgl-project/sglang, tokenizer_manager.py",
  ],
  ["SGLang", /requested token count exceeds/, "the same"],
  ["vLLM", /max_(completion_)?tokens must be at least 1, got -\d+/, "vllm-project/vllm, sampling_params.py"],
  ["vLLM", /decoder prompt.{0,60}longer than|reduce the length of the input/, "vllm-project/vllm, entrypoints"],
  ["Moonshot", /exceeded model token limit/, "platform.moonshot.ai, errors"],
  ["DashScope", /range of input length should be|input length (should|must) be/, "Alibaba Model Studio error codes"],
  ["MiniMax", /context window exceeds limit/, "MiniMax error 2013"],
  [
    "Volcengine",
    /exceeds? (the )?max(imum)? message tokens|input length \d+ exceeds/,
    "volcengine.com/docs, error codes",
  ],
  [
    "GitHub Models",
    /(request body|prompt) too large for .{1,60}max size: \d+ tokens|prompt token count of \d+ exceeds/,
    "docs.github.com, models",
  ],
  ["Baidu", /prompt tokens too long|max input characters/, "Baidu Qianfan error codes 336003, 336007"],
  [
    "Replicate, AI21, SambaNova",
    /prompt (length|tokens?)( \d+)? exceeds? (the )?(max(imum)?|limit)/,
    "their API references",
  ],
  [
    "DeepSeek, OpenRouter, NVIDIA NIM, Novita, Databricks, Perplexity",
    /maximum context (length|size|window)/,
    "their API references",
  ],
];

const CODES: ReadonlySet<string> = new Set([
  // OpenAI, Azure, Groq, Cerebras, OpenRouter; llama.cpp; GitHub; Anthropic's and others' spellings.
  ...[
    "context_length_exceeded",
    "exceed_context_size_error",
    "tokens_limit_reached",
    "model_max_prompt_tokens_exceeded",
  ],
  ...[
    "context_window_exceeded",
    "context_too_long",
    "prompt_too_long",
    "input_too_long",
    "request_too_large_for_context",
  ],
]);
/** The fields that a prompt may be refused by; any other field has a limit of its own. */
const FIELDS: ReadonlySet<unknown> = new Set([
  ...[undefined, null, "", "messages", "input", "inputs", "prompt", "contents", "input_tokens", "input_text"],
  ...["max_tokens", "max_completion_tokens"],
]);
/** OpenAI names a message and its text. */
const PARTS = /^(messages|input)\[\d+\](\.content(\[\d+\](\.text)?)?)?$/;
/** A limit on what is used in some time, whatever else the words say. */
const RATE = /per (minute|hour|day|second)|\b[rt]p[md]\b|rate limit|quota/;
/** Of a refusal: it may quote the prompt. */
const LONGEST_WORDS = 8000;

/** `error`: as it was parsed, if it was; `words`: all of its text. */
export function isContextFull(status: number, error: unknown, words: string): boolean {
  if (status !== 400 && status !== 413 && status !== 422) return false;
  const { code, type, param } = isRecord(error) ? error : {};
  // vLLM's mark where the words differ.
  if (param === "input_tokens" || CODES.has(String(code)) || CODES.has(String(type))) return true;
  if (!FIELDS.has(param) && !PARTS.test(String(param))) return false;
  const said = words.slice(0, LONGEST_WORDS).toLowerCase();
  return !RATE.test(said) && WORDINGS.some(([, wording]) => wording.test(said));
}
