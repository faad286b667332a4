/**
 * Recognises a refusal that means that the prompt does not fit the model's context: a truncation, not a failure.
 *
 * Invariants. Only the error's own text, codes and field names are read, never parts of the request that a server
 * repeats. A code decides, whatever the status is. Text decides with 400, 413 and 422, with an error inside a 200 that
 * has no other code, and with 500 if a server is known to answer so. These are not a full context: a limit on the
 * answer, a rate limit, a quota, the size of a picture or of the request in bytes, and the limit of another field.
 * Every text is cut before it is matched, and every gap in a pattern is bounded.
 */
import { wordsOfError } from "./error-words.ts";

export interface Refusal {
  readonly status: number;
  /** The parsed body; null if it is not JSON. */
  readonly body: unknown;
  readonly text: string;
}

interface Server {
  /** Patterns for the text in lower case, with single spaces and without backslashes. */
  readonly patterns: readonly RegExp[];
  /** `code` or `type` of the error. */
  readonly codes?: readonly string[];
  /** The server also answers with this status. */
  readonly also?: number;
}

/**
 * The texts of each server. The comment above a row names the server and the source. A text that several servers share
 * is in the row of the first one.
 */
const SERVERS: readonly Server[] = [
  // OpenAI, Azure OpenAI, DeepSeek, Perplexity, NVIDIA NIM: platform.openai.com/docs/guides/error-codes;
  // openai/openai-python#485; microsoft/kernel-memory#516
  {
    codes: ["context_length_exceeded"],
    patterns: [
      /maximum context length (?:is|of) \d/,
      /exceeds? the context window/,
      /input tokens exceed the configured limit/,
      /context[_ ]length[_ ]exceeded/,
    ],
  },
  // vLLM: vllm/entrypoints/openai/serving_engine.py (0.5 to 0.11), vllm/renderers/params.py, vllm/sampling_params.py
  {
    patterns: [
      /longer than the maximum model length of/,
      /resulting in a maximum input length of/,
      /parameter=input_tokens/,
      /too long to fit into the model/,
      /input tokens and requested \d+ output tokens/,
      // The server subtracted the prompt from the context. `got 0` means that the request itself asked for 0.
      /max_tokens must be at least 1, got -\d/,
      /'max_tokens' or 'max_completion_tokens' is too large/,
    ],
  },
  // SGLang, Together: sglang/srt/managers/tokenizer_manager.py; QwenLM/Qwen3#1321
  {
    patterns: [
      /is longer than the model's context length/,
      /requested token count exceeds/,
      /multimodal prompt is too long/,
      /exceeds the maximum allowed length \(\d+ tokens\)/,
      /more tokens than the [^.]{0,40}kv cache can hold/,
    ],
  },
  // Text Generation Inference, Hugging Face, Together, SageMaker: huggingface/text-generation-inference
  // router/src/validation.rs at db931fcf
  {
    patterns: [/`inputs` tokens \+ `max_new_tokens` must be <=/, /`inputs` must have less than \d+ tokens/],
  },
  // llama.cpp server, llama-cpp-python: ggml-org/llama.cpp#9544, #15780 and tools/server at 00dc8057;
  // ikawrakow/ik_llama.cpp#2420 (500)
  {
    codes: ["exceed_context_size_error"],
    patterns: [
      /exceeds? the available context size/,
      /larger than the max context size/,
      /too large to process\. either (?:enable|disable) context shift/,
      /requested tokens \(\d+\) exceed context window of/,
    ],
    also: 500,
  },
  // Ollama: ollama/ollama llm/llama_server.go and server/routes.go at fb307609
  {
    patterns: [
      /prompt is longer than the context length/,
      /exceeds maximum context length/,
      /exceeded (?:max )?context length by/,
    ],
    also: 500,
  },
  // LM Studio: lmstudio-ai/lmstudio-bug-tracker#546; anomalyco/opencode#11141; tinyhumansai/openhuman#3550
  {
    patterns: [
      /when context the overflows/,
      /initial prompt is greater than the context length/,
      /cannot truncate prompt with n_keep/,
    ],
  },
  // Groq, Cerebras: console.groq.com/docs/errors; cline/cline#5140
  {
    patterns: [
      /reduce the length of the (?:input )?(?:messages|prompt|input)/,
      /current length is [\d,]+ while limit is [\d,]+/,
    ],
  },
  // xAI: cline/cline#3120; UKGovernmentBEIS/inspect_ai#5208
  {
    codes: ["input_too_large"],
    patterns: [/maximum prompt length is \d/, /message \(\d+ tokens\) exceeds budget/],
  },
  // Anthropic's compatibility layer: docs.anthropic.com/en/api/errors; stackblitz/bolt.new#7422
  {
    codes: ["model_context_window_exceeded"],
    patterns: [/prompt is too long/, /prompt: length: 1\.\./, /exceed context limit/],
  },
  // Gemini, also on Vertex AI: google-gemini/gemini-cli#6678, #19727
  {
    patterns: [
      /input token count[^.]{0,40} exceeds the maximum number of tokens allowed/,
      /input token count is \d+ but (?:the )?model (?:only )?supports (?:only )?up to \d/,
    ],
  },
  // Bedrock: BerriAI/litellm exception_mapping_utils.py at 002b24d3; ryanadoty/Amazon-Bedrock-Amazon-RDS-POC#9
  {
    patterns: [
      /input is too long for (?:the )?requested model/,
      /expected maxlength: \d+, actual: \d+/,
      /too many input tokens/,
      /prompt tokens \(\d+\) exceed model maximum/,
    ],
  },
  // Cohere: cohere-ai/sandbox-topically#4. Its text begins in the same way if only `max_tokens` is too large.
  {
    patterns: [/too many tokens(?!: max tokens must be)/],
  },
  // Mistral: badlogic/pi-mono packages/ai/src/utils/overflow.ts at a2dbd625
  {
    patterns: [/too large for model with [\d,]+ maximum context length/],
  },
  // OpenRouter: openrouter.ai/docs/api-reference/errors (the provider's words are in metadata.raw)
  {
    patterns: [/endpoint's maximum context length is/],
  },
  // Fireworks: fw-ai/cookbook#134
  {
    patterns: [/model maximum context length: \d/],
  },
  // Moonshot: platform.moonshot.ai/docs/api/chat, error codes
  {
    patterns: [/exceeded model token limit/],
  },
  // Zhipu, Z.AI: docs.z.ai/api-reference/api-code; zeroclaw-labs/zeroclaw#4124; pi-mono's overflow.ts
  {
    codes: ["1261"],
    patterns: [/prompt exceeds max length/, /prompt ?超长/, /tokens in request more than max tokens allowed/],
  },
  // DashScope: help.aliyun.com/zh/model-studio/error-code, of 2025-12-26
  {
    patterns: [/range of input length should be/, /total message token length exceed/],
  },
  // MiniMax: badlogic/pi-mono packages/ai/src/utils/overflow.ts at a2dbd625
  {
    patterns: [/context window exceeds limit/],
  },
  // SambaNova: OpenHands/OpenHands#9252
  {
    patterns: [/maximum context length of \S{1,80} is \d/, /maximum supported sequence length is(?: just)? \d/],
  },
  // Cloudflare Workers AI: its errors 3010 and 5021, as opencode's list of overflow wordings has them
  {
    patterns: [/exceeded this model context window limit/],
  },
  // SiliconFlow: langgenius/dify#19394
  {
    patterns: [/length of prompt_tokens \(\d+\) must be less than max_seq_len/],
  },
  // Qianfan (Baidu): its table of error codes, as quoted by its users
  {
    codes: ["tokens_too_long"],
    patterns: [/prompt tokens too long/, /max input characters is \d/],
  },
  // TensorRT-LLM, where it deduces the answer's limit: NVIDIA/TensorRT-LLM#7239, its executor
  {
    patterns: [
      /default_max_tokens`? \(-?\d+\) (?:must|should) be greater than 0/,
      /deduced max_tokens -\d+ is less than 0/,
      /prompt_token_ids`? length \(\d+\) is greater than `?max_seq_len/,
    ],
  },
  // TensorRT-LLM, watsonx, GitHub Copilot, Databricks, Poolside: NVIDIA/TensorRT-LLM#9277; jjleng/copilot-more#35;
  // IBM/watsonx errors as quoted by its users
  {
    codes: ["model_max_prompt_tokens_exceeded"],
    patterns: [
      /should not exceed max_(?:seq_len|num_tokens|input_len)/,
      /number of input tokens \d+ cannot exceed/,
      /prompt token count (?:of )?\(?\d+\)? (?:cannot exceed|exceeds) (?:the limit of )?\d/,
      /maximum allowed input length of \d/,
    ],
  },
  // Volcengine, GitHub Models: volcengine.com/docs/82379, error codes; langgenius/dify#32221;
  // docs.github.com/en/rest/models
  {
    codes: ["tokens_limit_reached"],
    patterns: [/exceeds? (?:the )?max(?:imum)? message tokens/, /too large for \S{1,80} model\. max size: \d+ tokens/],
  },
  // Any server that adds the answer's limit to the prompt
  {
    patterns: [
      /\b(?:prompt|input) (?:tokens|length)[^.;]{0,15} (?:\+|plus|and) `?max_(?:new_)?tokens`?[^.;]{0,15} exceeds?\b/,
      /\b(?:prompt|input) and (?:output|completion) tokens exceeds? [^.;]{0,20}\bcontext\b/,
    ],
  },
  // The list of phrases of verifiers: PrimeIntellect-ai/verifiers. Its phrase `context length` is in LIKELY.
  {
    codes: ["prompt_too_long"],
    patterns: [
      /maximum model length/,
      /exceeded model/,
      /exceeds? the configured limit/,
      /prompt_too_long/,
      /prompt is too long/,
    ],
  },
];

const PROMPT = String.raw`\b(?:prompt|inputs?(?:_text)?|messages?|conversation|context|chat history)`;
const MORE = String.raw`exceed\w{0,3}|overflow\w{0,3}|(?:longer|larger|greater|more) than|over|above|beyond|not fit`;
const TOO_LONG_FOR = "too (?:long|large|big) for";
const PROMPT_LIMIT = [
  "context (?:length|window|size|limit|budget)",
  "maximum (?:prompt|input|sequence|token) (?:length|size|limit|count)",
  "max(?:imum)? (?:number of )?(?:prompt|input) tokens",
  "max_(?:seq_len|model_len|position_embeddings)|n_ctx",
  "(?:the|model's|model) context",
].join("|");
const COUNTED = [
  String.raw`(?:prompt|input) tokens?(?: count| limit)?(?: (?:\(|of )[\d,]+\)?)?(?: (?:is|are))?`,
  String.raw`(?:prompt|input) length(?: of)? \(?[\d,]+(?: tokens)?\)?(?: is)?`,
].join("|");

/** Likely texts of servers that have no row: the prompt, a verb for too much, and the context. */
const LIKELY: readonly RegExp[] = [
  /context length/,
  new RegExp(
    String.raw`${PROMPT}(?: (?:length|size|text|tokens?|token (?:count|length)))?(?: (?:is|are|was|were))? too long\b`,
  ),
  /\brequest too long: [\d,]+ (?:input )?tokens/,
  new RegExp(String.raw`\b(?:${MORE}|${TOO_LONG_FOR})\b[^.;]{0,60}\b(?:${PROMPT_LIMIT})\b`),
  new RegExp(String.raw`\b(?:${COUNTED}) (?:${MORE})\b`),
  /\bcontext (?:length|window|size|limit)(?: (?:is|was|has been))? (?:exceed\w{0,3}|overflow\w{0,3}|reached|full)\b/,
  /\bmaximum (?:context|sequence) (?:window|length|size)[^.;]{0,40} exceeded\b/,
  new RegExp(String.raw`\bsequence length (?:${MORE})\b`),
  /\b(?:n_ctx|kv cache(?: size)?)(?: is)? (?:exceeded|full|too small)\b/,
  new RegExp(`${PROMPT}(?: (?:is|was|are))? (?:longer|larger) than (?:the )?(?:max|limit|allowed)`),
  new RegExp(String.raw`${PROMPT} (?:has|have|is|contains?|of) [\d,]+ tokens[^.;]{0,30} (?:${MORE})\b`),
  /\b(?:request|prompt|inputs?|messages) exceed\w{0,3} (?:the )?max(?:imum)? (?:number of )?tokens\b/,
  /\bmessage (?:you (?:sent|submitted) )?(?:is|was) too long\b/,
  /\b(?:context|token) limit exceeded\b/,
  new RegExp(String.raw`${PROMPT}(?: tokens?)? exceed\w{0,3} (?:the |your |our )?(?:model's |model )?token limit\b`),
  /\bcontext limit is [\d,]+/,
  /\btokens?, but the (?:configured |available )?context (?:size|length|window) is\b/,
  /\b(?:too many|number of) (?:prompt|input) tokens\b[^.;]{0,60}\b(?:exceed\w{0,3}|than|maximum|limit)\b/,
  /上下文[^。]{0,20}(?:超|过长)/,
  /(?:超过|超出)[^。]{0,20}上下文/,
  /输入[^。]{0,20}(?:过长|超过|超出|超长)/,
];

const MEDIA = String.raw`\b(?:images?|pictures?|videos?|audio|attachments?|pdfs?)\b`;
const BYTES = String.raw`\b(?:bytes|[kmg]i?b|pixels)\b`;
const TOO_MUCH = String.raw`\b(?:exceed\w{0,3}|too (?:large|big|long|many)|larger than|maximum|limit of)\b`;

/** A rate limit, a quota or a limit in bytes, whatever else the text says. */
const NEVER: readonly RegExp[] = [
  /rate[ _-]?limit|tokens?(?: limit)? per (?:second|min|minute|hour|day|month)\b|\b(?:i?tp[mdh]|rp[mdh])\b/,
  /quota|throttl|too many requests/,
  /please wait|try again (?:in|later|after)\b|\b(?:daily|weekly|monthly|hourly)\b/,
  /\bcredit balance\b|\b(?:insufficient|not enough|out of|more|fewer|add|buy|purchase|requires?|remaining) credits?\b/,
  // Unless it counts the tokens of pictures together with those of the text.
  new RegExp(`${MEDIA}(?:(?!token|text)[^.]){0,60}${TOO_MUCH}`),
  new RegExp(`${TOO_MUCH}[^.]{0,60}${BYTES}`),
];

const SMALLER =
  "tools?|functions?|descriptions?|names?|stop|stop sequences?|schemas?|labels?|metadata|titles?|keys?|ids?";

/** A limit on the answer, on an account or on a part. Servers known to say this about a prompt have it in their row. */
const UNLIKELY: readonly RegExp[] = [
  /\bmax_?(?:completion_?|output_?|new_?)?tokens\b|\b(?:output|completion|generated|response) tokens?\b/,
  /\bmust be (?:a )?(?:positive|integer|number|at least|less)|\bcannot be set\b|\bunsupported parameter\b/,
  /\bfail(?:ed|s)? to load\b|\b\d+ ?[kmg]i?b\b|\bout of memory\b/,
  /\borgani[sz]ation\b|\bsubscription\b|\baccount\b|\b(?:your|free|current) (?:plan|tier)\b/,
  new RegExp(String.raw`\b(?:${SMALLER})\b[^.;]{0,40}\b(?:${MORE}|too long)\b`),
];

/** Fields that hold the prompt, or that limit prompt and answer together. Every other field has a limit of its own. */
const FIELDS_OF_THE_PROMPT: ReadonlySet<string> = new Set([
  ...["messages", "prompt", "input", "inputs", "contents", "content", "text", "parts", "query", "model", "body"],
  ...["input_tokens", "input_text", "prompt_token_ids", "context_length"],
  ...["max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens", "default_max_tokens"],
]);

/** Statuses of a request that cannot be processed as it is. */
const REFUSED = [400, 413, 422];

export function isContextFull({ status, body, text }: Refusal): boolean {
  const said = wordsOfError(body, text);
  if (said.codes.some((code) => CODES.has(code))) return true;
  // One text of the prompt has more characters than any context can hold.
  if (said.codes.some((code) => TOO_LONG_A_TEXT.has(code))) return said.fields.some(isTextOfPrompt);
  if (said.codes.some((code) => OTHER_CODES.has(code) || NEVER.some((never) => never.test(code)))) return false;
  const counted = status < 300 ? (said.status ?? 400) : status;
  if (said.fields.includes("input_tokens") && REFUSED.includes(counted)) return true;
  if (said.fields.some((field) => !isPrompt(field))) return false;
  return said.words.some((words) => meansFull(words, counted));
}

const CODES: ReadonlySet<string> = new Set([
  ...SERVERS.flatMap(({ codes = [] }) => codes),
  ...["context_window_exceeded", "context_limit_exceeded", "input_too_long"],
]);

/** OpenAI's code, which OpenRouter uses for any provider. */
const TOO_LONG_A_TEXT: ReadonlySet<string> = new Set(["string_above_max_length", "string_too_long"]);

/** OpenRouter's codes: a budget set by credits, and the limit of the answer. */
const OTHER_CODES: ReadonlySet<string> = new Set(["token_limit_exceeded", "max_tokens_exceeded"]);

function meansFull(said: string, status: number): boolean {
  const words = said.replaceAll(URL, " ");
  if (NEVER.some((never) => never.test(words)) || isAnswerTooLong(words)) return false;
  const known = SERVERS.some(
    ({ patterns, also }) =>
      (REFUSED.includes(status) || status === also) && patterns.some((pattern) => pattern.test(words)),
  );
  if (known) return true;
  return (
    REFUSED.includes(status) &&
    !UNLIKELY.some((pattern) => pattern.test(words)) &&
    LIKELY.some((pattern) => pattern.test(words))
  );
}

/** The answer alone is as long as the context: no prompt would fit, so the run's setting is wrong. */
function isAnswerTooLong(words: string): boolean {
  const context = /maximum context length is (\d+)/.exec(words)?.[1];
  const answer = (/too large: (\d+)/.exec(words) ?? /(\d+) (?:tokens )?(?:in|for) the completion/.exec(words))?.[1];
  return context !== undefined && answer !== undefined && Number(answer) >= Number(context);
}

/** The address of a page of documentation, which may contain misleading words. */
const URL = /https?:\/\/[^\s"'<>]+|www\.[^\s"'<>]+/g;

/** The name of a model is a text too, but not part of the prompt. */
function isTextOfPrompt(field: string): boolean {
  return isPrompt(field) && !/(?:^|\.)model$/.test(field);
}

/** `messages[3].content` belongs to the prompt; `messages[0].name` and `tools[0].function.description` do not. */
function isPrompt(field: string): boolean {
  const parts = field.split(/[^A-Za-z_]+/).filter((part) => part !== "");
  return [parts.at(0), parts.at(-1)].every((part) => FIELDS_OF_THE_PROMPT.has(part ?? "body"));
}
