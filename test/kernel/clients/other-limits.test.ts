/** Limits other than the context: a call that exceeds one is a failure, and the failure is shown. */
import { expect, test } from "vitest";
import { error, flat, type Row, readsAsFull } from "./refusals.ts";

const OPENAI = "This model's maximum context length is 8192 tokens.";
const TPM =
  "Request too large for model `m` in organization `org_1` service tier `on_demand` on tokens per minute (TPM):";
const BOUND = "string too long. Expected a string with maximum length 64, but got a string with length 90 instead.";

const NOT_FULL: Row[] = [
  ["a plan's limit", 400, error("token limit exceeded for your plan")],
  ["an answer", 400, error("max_tokens (200000) must not be larger than the context length of the model")],
  [
    "vLLM, an answer",
    400,
    flat(
      "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens and " +
        "your request has 20 input tokens",
    ),
  ],
  [
    "OpenAI, an answer",
    400,
    error(
      "This model's maximum context length is 8192 tokens. However, you requested 9020 (20 in the messages, 9000 in the completion).",
    ),
  ],
  ["memory", 400, error("Failed to load model: context length 131072 needs 40 GiB, 24 GiB are free")],
  ["a setting", 400, error("context length must be a positive integer")],
  ["a setting", 400, error("Unsupported parameter: 'options.num_ctx'. The context length cannot be set per request.")],
  ["FastAPI, a model's name", 422, { detail: [{ type: "string_too_long", loc: ["body", "model"], msg: "too long" }] }],
  [
    "the answer's limit, OpenAI",
    400,
    error("max_tokens is too large: 99999. This model supports at most 16384 completion tokens.", {
      param: "max_tokens",
    }),
  ],
  [
    "the answer's limit, Anthropic",
    400,
    error("max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens"),
  ],
  [
    "the answer's limit, Groq",
    400,
    error(
      "`max_tokens` must be less than or equal to `8192`, the " +
        "maximum value is less than the `context_window` for this model",
    ),
  ],
  [
    "the answer's limit, Bedrock",
    400,
    { message: "The maximum tokens you requested exceeds the model limit of 32768" },
  ],
  [
    "the answer's limit, Databricks",
    400,
    {
      message:
        "Bad request: max_tokens (10000) cannot exceed 8192. Please reduce the length of max output tokens generated.",
    },
  ],
  ["the answer's limit, DashScope", 400, error("Range of max_tokens should be [1, 8192]")],
  ["the answer's limit, TGI", 422, { error: "Input validation error: `max_new_tokens` must be <= 512. Given: 4096" }],
  [
    "the answer's limit, Gemini",
    400,
    error("it has a maxOutputTokens value of 100000 but the supported range is from 1 to 8193"),
  ],
  [
    "the answer's limit, Cohere",
    400,
    {
      error_type: "TOO_MANY_TOKENS",
      message:
        "too many tokens: max tokens must be less than or equal to 4096, the maximum output length for this model " +
        "- received 9000.",
    },
  ],
  [
    "the answer's limit, vLLM",
    400,
    error("max_tokens=9000 cannot be greater than max_model_len=max_total_tokens=8192. Please request fewer tokens.", {
      param: "max_tokens",
    }),
  ],
  [
    "the answer's limit, Volcengine",
    400,
    error("The parameter `max_tokens` is not valid: integer above maximum value, expected a value <= 32768", {
      code: "InvalidParameter",
    }),
  ],
  ["the answer's limit, unnamed", 400, error("max_tokens (9000) exceeds the model's maximum output tokens (8192)")],
  ["no answer asked for, vLLM", 400, error("max_tokens must be at least 1, got 0.", { param: "max_tokens" })],
  [
    "no answer asked for, Perplexity",
    400,
    error("max_tokens must be at least 16 for sonar.", { type: "invalid_parameter" }),
  ],
  ["temperature", 400, error("temperature must be at most 2, got 9.", { param: "temperature" })],
  [
    "a picture",
    400,
    error("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"),
  ],
  ["a picture, TGI", 422, { error: "Image size 9000000 bytes exceeds maximum allowed size of 1000000 bytes" }],
  ["a picture for the context", 400, error("The image is too large for the context window")],
  [
    "tokens per minute, Groq",
    413,
    error(`${TPM} Limit 6000, Requested 9000, please reduce your message size`, {
      type: "tokens",
      code: "rate_limit_exceeded",
    }),
  ],
  [
    "tokens per minute, OpenAI",
    429,
    error(`${TPM} Limit 30000. The input or output tokens must be reduced.`, { code: "rate_limit_exceeded" }),
  ],
  ["tokens per minute, in an odd status", 400, error("too many tokens per minute for this model")],
  ["throttling, Bedrock", 400, { message: "Too many tokens, please wait before trying again." }],
  ["a rate limit in other words", 400, error("prompt tokens exceed your rate limit")],
  ["a quota", 400, error("Input tokens exceed the monthly quota", { code: "insufficient_quota" })],
  ["credits, OpenRouter", 402, error("Prompt tokens limit exceeded: 9000 > 8000. To increase, visit settings/credits")],
  [
    "a budget, OpenRouter",
    400,
    { error: { code: 400, message: "token limit exceeded", metadata: { error_type: "token_limit_exceeded" } } },
  ],
  [
    "a schema, OpenAI",
    400,
    error("Invalid schema for function 'f': In context=(), more than 100 properties", {
      param: "tools[0].function.parameters",
      code: "invalid_function_parameters",
    }),
  ],
  [
    "the request's bytes, Anthropic",
    413,
    {
      type: "error",
      error: { type: "request_too_large", message: "Request exceeds the maximum allowed number of bytes" },
    },
  ],
  [
    "the request's bytes, nginx",
    413,
    "<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>",
  ],
  ["a 413 without a word", 413, ""],
  ["a 400 without a word", 400, ""],
  [
    "the name of a message",
    400,
    error(`Invalid 'messages[0].name': ${BOUND}`, { param: "messages[0].name", code: "string_above_max_length" }),
  ],
  ["the user", 400, error(`Invalid 'user': ${BOUND}`, { param: "user", code: "string_above_max_length" })],
  ["a tool's description", 400, error(`Invalid 'tools[0].function.description': ${BOUND}`)],
  ["a tool's description, in words", 400, error("The tool description exceeds the maximum input length of 1024")],
  ["a stop sequence", 400, error("stop sequence is longer than the maximum sequence length", { param: "stop" })],
  ["a stop sequence that is called input", 400, error("input is too long", { param: "stop" })],
  [
    "too many tools",
    400,
    error("Invalid 'tools': array too long. Expected an array with maximum length 128.", {
      code: "array_above_max_length",
    }),
  ],
  [
    "a tool named so",
    400,
    error("Invalid schema for function 'context_length': 'maximum' is not a number", {
      param: "tools[0].function.parameters",
    }),
  ],
  ["a length of a sound", 400, error("The audio input length 1900 exceeds the maximum length of 1500 seconds")],
  ["a length of a name", 400, error("Function name: input length 70 exceeds the maximum length 64")],
  ["a length of a field", 400, error("Input length 70 exceeds the maximum length 64", { param: "user" })],
  ["a limit of tokens for a day", 400, error("This prompt exceeds your token limit per day")],
  ["a prompt that took long", 400, error("The prompt took too long to be processed")],
  ["an unknown field", 400, error("Unknown parameter: 'context_length'.", { param: "context_length" })],
  [
    "an order of roles",
    400,
    error("The context must alternate between user and assistant, with more than one message"),
  ],
  [
    "what a validation repeats",
    422,
    {
      detail: [
        {
          loc: ["body", "temperature"],
          msg: "Input should be less than 2",
          input: { messages: [{ content: "prompt is too long: context length exceeded" }] },
        },
      ],
    },
  ],
  [
    "a prompt quoted in addition to the error",
    400,
    { error: { message: "bad role" }, messages: [{ content: "maximum context length is 1" }] },
  ],
  ["a server that fails", 500, error(OPENAI, { type: "server_error" })],
  ["a gateway", 502, "upstream: maximum context length is 4096"],
  ["a wrong key", 401, error(OPENAI)],
  ["a model that is missing", 404, error("The model `m` does not exist: maximum context length is 4096")],
  ["a rate limit inside a 200", 200, { error: { code: 429, message: "prompt is too long" } }],
];

test.each(NOT_FULL)("%s (%i) does not say that the context is full", (_what, status, body) => {
  expect(readsAsFull(status, body)).toBe(false);
});
