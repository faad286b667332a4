import { expect, test } from "vitest";
import { isContextFull } from "../../src/clients/context-full.ts";

const isFull = (status: number, error: object) => isContextFull(status, error, JSON.stringify(error));
const said = (message: string, more: object = {}) => ({
  message,
  type: "invalid_request_error",
  param: null,
  code: null,
  ...more,
});

test.each<[server: string, status: number, error: object]>([
  [
    "OpenAI",
    400,
    said("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.", {
      param: "messages",
      code: "context_length_exceeded",
    }),
  ],
  [
    "OpenAI, Responses",
    400,
    said("Your input exceeds the context window of this model.", { param: "input", code: null }),
  ],
  ["OpenAI, by its code alone", 400, said("too much", { code: "context_length_exceeded" })],
  [
    "OpenAI, a text",
    400,
    said(
      "Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1500000 instead.",
      { param: "messages[0].content", code: "string_above_max_length" },
    ),
  ],
  [
    "Azure",
    400,
    said("This model's maximum context length is 16385 tokens, however you requested 17000 tokens", {
      code: "context_length_exceeded",
    }),
  ],
  [
    "Groq",
    400,
    said("Please reduce the length of the messages or completion.", {
      code: "context_length_exceeded",
      param: "messages",
    }),
  ],
  ["Groq, by its words", 413, said("Please reduce the length of the messages or completion.")],
  [
    "Cerebras",
    400,
    said("Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"),
  ],
  [
    "xAI",
    400,
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    },
  ],
  ["Anthropic", 400, said("prompt is too long: 210000 tokens > 200000 maximum")],
  ["Anthropic", 400, said("input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000")],
  [
    "Gemini",
    400,
    {
      code: 400,
      message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
      status: "INVALID_ARGUMENT",
    },
  ],
  [
    "Vertex",
    400,
    {
      code: 400,
      message:
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Input token count exceeds the limit.",
    },
  ],
  ["Bedrock", 400, { message: "Input is too long for requested model." }],
  ["Bedrock", 400, { message: "Too many input tokens. Max input tokens: 8192, request input token count: 9001" }],
  [
    "Bedrock",
    400,
    {
      message:
        "Malformed input request: expected maxLength: 51200, actual: 60000, please reformat your input and try again.",
    },
  ],
  [
    "Cohere",
    400,
    {
      message:
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt.",
    },
  ],
  ["Cohere", 400, { message: "too many tokens: size limit exceeded by 120 tokens." }],
  [
    "Mistral",
    400,
    {
      object: "error",
      message: "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      code: "3051",
    },
  ],
  [
    "DeepSeek",
    400,
    said(
      "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (62000 in the messages, 8000 in the completion).",
    ),
  ],
  [
    "OpenRouter",
    400,
    {
      code: 400,
      message: "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens",
    },
  ],
  [
    "OpenRouter, of its provider",
    400,
    {
      code: 400,
      message: "Provider returned error",
      metadata: { raw: '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}' },
    },
  ],
  [
    "Together",
    422,
    said(
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and 512 `max_new_tokens`",
    ),
  ],
  [
    "Fireworks",
    400,
    {
      object: "error",
      message: "The prompt is too long: 140000, model maximum context length: 131071",
      code: "INVALID_ARGUMENT",
    },
  ],
  [
    "llama.cpp",
    400,
    {
      code: 400,
      message: "request (5210 tokens) exceeds the available context size (4096 tokens), try increasing it",
      type: "exceed_context_size_error",
    },
  ],
  ["llama.cpp, by its type alone", 400, { code: 400, message: "no room", type: "exceed_context_size_error" }],
  [
    "llama.cpp, older",
    400,
    {
      code: 400,
      message:
        "the request exceeds the available context size. try increasing the context size or enable context shift",
    },
  ],
  ["Ollama", 400, said("the input length exceeds the context length")],
  ["Ollama", 400, said("input exceeds maximum context length")],
  [
    "LM Studio",
    400,
    {
      error:
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
    },
  ],
  [
    "LM Studio",
    400,
    { error: "The number of tokens to keep from the initial prompt is greater than the context length." },
  ],
  [
    "TGI",
    422,
    {
      error: "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500",
      error_type: "validation",
    },
  ],
  [
    "SGLang",
    400,
    {
      object: "error",
      message: "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
      code: 400,
    },
  ],
  [
    "SGLang",
    400,
    {
      object: "error",
      message: "Requested token count exceeds the model's maximum context length of 8192 tokens.",
      code: 400,
    },
  ],
  [
    "SGLang",
    400,
    { object: "error", message: "Input length (9000 tokens) exceeds the maximum allowed length (8186 tokens)." },
  ],
  ["vLLM", 400, { message: "too many tokens", type: "BadRequestError", param: "input_tokens", code: 400 }],
  [
    "vLLM",
    400,
    {
      object: "error",
      message: "max_tokens must be at least 1, got -904.",
      type: "BadRequestError",
      param: null,
      code: 400,
    },
  ],
  ["vLLM", 400, { message: "The decoder prompt (length 5000) is longer than the maximum model length of 4096." }],
  [
    "vLLM",
    400,
    {
      message:
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens",
      param: "max_tokens",
    },
  ],
  [
    "Moonshot",
    400,
    { message: "Invalid request: Your request exceeded model token limit: 8192", type: "invalid_request_error" },
  ],
  ["DashScope", 400, { code: "InvalidParameter", message: "Range of input length should be [1, 30720]" }],
  ["Zhipu", 400, { code: "1261", message: "Prompt exceeds max length" }],
  ["MiniMax", 400, { code: "2013", message: "invalid params, context window exceeds limit" }],
  [
    "Volcengine",
    400,
    { code: "InvalidParameter", message: "Total tokens of image and text exceed max message tokens." },
  ],
  [
    "GitHub Models",
    413,
    { code: "tokens_limit_reached", message: "Request body too large for gpt-4o model. Max size: 8000 tokens." },
  ],
  ["Databricks", 400, { error_code: "BAD_REQUEST", message: "Input is longer than the maximum context length 128000" }],
  [
    "NVIDIA NIM",
    400,
    {
      object: "error",
      message: "This model's maximum context length is 4096 tokens. However, you requested 4297 tokens",
      type: "BadRequestError",
    },
  ],
])("%s says with %i that the context is full: %j", (_server, status, error) => {
  expect(isFull(status, error)).toBe(true);
});

test.each<[what: string, status: number, error: object]>([
  [
    "more output than the model gives",
    400,
    said(
      "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
      { param: "max_tokens", code: "invalid_value" },
    ),
  ],
  ["a temperature", 400, said("temperature must be at most 2, got 9.")],
  ["an image", 400, said("The image exceeds the maximum size of 20 MB.", { param: "messages" })],
  [
    "tokens a minute",
    413,
    said(
      "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce the length of the messages",
      { code: "rate_limit_exceeded" },
    ),
  ],
  ["tokens a minute, of Cohere", 400, said("too many tokens per minute")],
  ["a quota", 400, said("You exceeded your quota of maximum context length units")],
  ["the rate of Bedrock", 429, said("Too many tokens, please wait before trying again.")],
  [
    "a name",
    400,
    said("Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.", {
      param: "tools[0].function.name",
      code: "string_above_max_length",
    }),
  ],
  [
    "a tool's description",
    400,
    said("description is too long: maximum 1024 characters", { param: "tools[0].function.description" }),
  ],
  ["a stop sequence", 400, said("stop: the sequence is too long", { param: "stop" })],
  [
    "the user",
    400,
    said("Expected a string with maximum length 64, but got one with length 90.", {
      param: "user",
      code: "string_above_max_length",
    }),
  ],
  ["too many messages", 400, said("messages: at most 2048 items are allowed", { param: "messages" })],
  ["a failing server", 500, said("This model's maximum context length is 8192 tokens.")],
  ["a key", 401, said("prompt is too long")],
])("%s is another limit", (_what, status, error) => {
  expect(isFull(status, error)).toBe(false);
});

test("refusals of any length are looked at in little time", () => {
  expect(isFull(400, said(`input token count${" decoder prompt".repeat(200_000)}`))).toBe(false);
});
