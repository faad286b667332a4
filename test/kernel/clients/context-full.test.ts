/** Which refusals mean that the prompt does not fit. The texts are from the sources in context-full.ts. */
import { expect, test } from "vitest";
import { isContextFull } from "../../../src/kernel/clients/context-full.ts";
import { error, flat, type Row, readsAsFull } from "./refusals.ts";

const HELD_IN = "However, your messages resulted in 9,210 tokens. Please reduce the length of the messages.";
const OPENAI = `This model's maximum context length is 8192 tokens. ${HELD_IN}`;
const TGI = "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens";
const SGLANG = "The input (70100 tokens) is longer than the model's context length (65536 tokens).";
const KEPT = "Trying to keep the first 7001 tokens when context the overflows. However, the model is loaded with";
const ESTIMATED = "AiError: The estimated number of input and maximum output tokens (9100) exceeded this model";
const STILL = "Received Model Group=mine\nAvailable Model Group Fallbacks=None";
const NESTED = `{"error":{"message":"${SGLANG}","code":400}}`;

const FULL: Row[] = [
  ["OpenAI", 400, error(OPENAI, { param: "messages", code: "context_length_exceeded" })],
  ["OpenAI, by its code", 400, error("That is more than I take.", { code: "context_length_exceeded" })],
  ["OpenAI's newer models", 400, error("Your input exceeds the context window of this model. Please adjust it.")],
  [
    "OpenAI, one text over its bound",
    400,
    error("…", { code: "string_above_max_length", param: "messages[2].content" }),
  ],
  ["Azure OpenAI", 400, error("Input tokens exceed the configured limit of 272000 tokens.", { param: "messages" })],
  ["Azure OpenAI, without its code", 400, { error: { code: "400", message: OPENAI } }],
  ["Groq", 400, error("Please reduce the length of the messages or completion.", { param: "messages" })],
  ["Groq, with 413", 413, error("Please reduce the length of the messages or completion.")],
  ["xAI", 400, { code: "Client specified an invalid argument", error: "This model's maximum prompt length is 131072" }],
  [
    "Anthropic",
    400,
    { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 210001" } },
  ],
  [
    "Anthropic, with its answer",
    400,
    error("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
  ],
  ["Anthropic, in text", 413, "prompt is too long: 1000201 tokens > 1000000 maximum"],
  [
    "Gemini",
    400,
    [
      {
        error: {
          code: 400,
          message: "The input token count (1200) exceeds the maximum number of tokens allowed (1000).",
          status: "INVALID_ARGUMENT",
        },
      },
    ],
  ],
  ["Gemini, uncounted", 400, error("The input token count exceeds the maximum number of tokens allowed (1048576).")],
  ["Bedrock", 400, { message: "Input is too long for requested model." }],
  [
    "Bedrock, of Titan",
    400,
    {
      __type: "ValidationException",
      message:
        "Malformed input request: expected maxLength: 42000, actual: 46001, please reformat your input and try again.",
    },
  ],
  ["Bedrock, of Claude", 400, { Message: "Too many input tokens" }],
  [
    "Bedrock, OpenAI's models",
    400,
    error("prompt tokens (140000) exceed model maximum (131072)", { type: "validation_error" }),
  ],
  [
    "Cohere",
    400,
    { id: "7", message: "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5200" },
  ],
  [
    "Mistral",
    400,
    flat("Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length", {
      type: "invalid_request_prompt",
      code: "3051",
    }),
  ],
  [
    "DeepSeek",
    400,
    error(
      "This model's maximum context length is 131072 tokens. " +
        "However, you requested 150002 tokens (150000 in the messages, 2 in the completion).",
      { code: "invalid_request_error" },
    ),
  ],
  [
    "OpenRouter",
    400,
    {
      error: {
        code: 400,
        message: "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens.",
      },
    },
  ],
  [
    "OpenRouter, of a provider",
    400,
    { error: { code: 400, message: "Provider returned error", metadata: { provider_name: "Together", raw: NESTED } } },
  ],
  [
    "OpenRouter, inside a 200",
    200,
    { id: "gen-1", error: { code: 400, message: "Provider returned error", metadata: { raw: OPENAI } } },
  ],
  ["Together, by TGI", 422, error(TGI)],
  ["Together", 400, error(SGLANG)],
  [
    "Fireworks",
    400,
    {
      error: {
        object: "error",
        type: "invalid_request_error",
        message: "The prompt is too long: 40200, model maximum context length: 32767",
      },
    },
  ],
  [
    "llama.cpp",
    400,
    error("request (9002 tokens) exceeds the available context size (8192 tokens), try increasing it", {
      code: 400,
      type: "exceed_context_size_error",
      n_ctx: 8192,
    }),
  ],
  ["llama.cpp, by its type", 500, { error: { code: 500, message: "no", type: "exceed_context_size_error" } }],
  [
    "llama.cpp before its type",
    500,
    error("the request exceeds the available context size. try increasing the context size or enable context shift", {
      type: "server_error",
      code: 500,
    }),
  ],
  [
    "llama.cpp of 2024",
    500,
    error("Input is too large to process. Either enable context shift or increase context length."),
  ],
  [
    "llama.cpp, inside a 200",
    200,
    { error: { code: 400, message: "the request exceeds the available context size", type: "invalid_request_error" } },
  ],
  [
    "llama-cpp-python",
    500,
    error("Requested tokens (2285) exceed context window of 2048", { type: "internal_server_error" }),
  ],
  [
    "Ollama",
    400,
    error("the prompt is longer than the context length currently available to the model; shorten the prompt"),
  ],
  ["Ollama's cloud", 400, { error: "prompt too long; exceeded max context length by 1918 tokens" }],
  ["LM Studio", 400, { error: `${KEPT} context length of only 4096 tokens, which is not enough.` }],
  [
    "LM Studio, newer",
    400,
    {
      error:
        "The number of tokens to keep from the initial prompt is " +
        "greater than the context length (n_keep: 9001>= n_ctx: 8192).",
    },
  ],
  ["TGI", 422, { error: TGI, error_type: "validation" }],
  [
    "TGI, of the prompt alone",
    422,
    {
      error: "Input validation error: `inputs` must have less than 1024 tokens. Given: 1300",
      error_type: "validation",
    },
  ],
  ["TGI, in a stream", 200, { error: { message: TGI, http_status_code: 422 } }],
  ["SGLang", 400, flat(SGLANG)],
  [
    "SGLang, with its answer",
    400,
    flat(
      "Requested token count exceeds the model's maximum context " +
        "length of 64000 tokens. You requested a total of 71897 tokens",
    ),
  ],
  [
    "vLLM",
    400,
    error(
      "You passed 5001 input tokens and requested 0 output tokens. " +
        "However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096 tokens.",
      { param: "input_tokens", code: 400 },
    ),
  ],
  ["vLLM, by its field", 400, error("no room", { param: "input_tokens", code: 400 })],
  [
    "vLLM behind LiteLLM",
    400,
    error(`litellm.BadRequestError: {"message":"You passed 9 (parameter=input_tokens, value=9)"}. ${STILL}`, {
      type: null,
    }),
  ],
  [
    "vLLM of 2024",
    400,
    flat(
      "This model's maximum context length is 4096 tokens. " +
        "However, you requested 4500 tokens (4000 in the messages, 500 in the completion).",
    ),
  ],
  [
    "vLLM, of its processor",
    400,
    flat(
      "The decoder prompt (length 5951) is longer than the maximum " +
        "model length of 4096. For image inputs, the number of image tokens depends on the number of images.",
    ),
  ],
  [
    "vLLM, with no room left",
    400,
    error("max_tokens must be at least 1, got -71. (parameter=max_tokens, value=-71)", { param: "max_tokens" }),
  ],
  [
    "vLLM, with its answer",
    400,
    flat(
      "'max_tokens' or 'max_completion_tokens' is too large: 512. " +
        "This model's maximum context length is 4096 tokens and your request has 4000 input tokens",
    ),
  ],
  ["Perplexity", 400, error(OPENAI, { code: 400, type: "invalid_message" })],
  [
    "Cerebras",
    400,
    {
      message: "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    },
  ],
  [
    "Databricks",
    400,
    {
      error_code: "BAD_REQUEST",
      message: "Bad request: prompt token count (9000) cannot exceed 8192. Please reduce it.",
    },
  ],
  ["Moonshot", 400, error("Invalid request: Your request exceeded model token limit: 8192 (requested: 9001)")],
  ["Zhipu", 400, { error: { code: "1261", message: "Prompt exceeds max length" } }],
  ["Zhipu, in Chinese", 400, { error: { code: "1210", message: "Prompt 超长" } }],
  [
    "DashScope",
    400,
    error("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", {
      code: "invalid_parameter_error",
    }),
  ],
  [
    "MiniMax, inside a 200",
    200,
    { base_resp: { status_code: 2013, status_msg: "invalid params, context window exceeds limit" } },
  ],
  ["Novita", 400, { code: 400, reason: "INVALID_REQUEST_BODY", message: OPENAI, metadata: {} }],
  [
    "SambaNova",
    400,
    error(
      "The maximum context length of DeepSeek-V3 is 32768. However, answering your request will take 39732 tokens.",
    ),
  ],
  [
    "NVIDIA NIM, by TensorRT-LLM",
    400,
    flat("The sum of prompt length (4000) and query length (0) max_tokens (2048) should not exceed max_seq_len (4096)"),
  ],
  [
    "watsonx",
    400,
    {
      errors: [
        {
          code: "invalid_input_argument",
          message: "the number of input tokens 4098 cannot exceed the total tokens limit 4096 for this model",
        },
      ],
      status_code: 400,
    },
  ],
  [
    "Copilot",
    400,
    error("prompt token count of 93854 exceeds the limit of 90000", { code: "model_max_prompt_tokens_exceeded" }),
  ],
  ["FastAPI's detail", 422, { detail: "The prompt exceeds the maximum sequence length of this deployment" }],
  [
    "a list of details",
    422,
    { detail: [{ loc: ["body", "messages"], msg: "Value error, the conversation is too long", input: [] }] },
  ],
  ["SGLang, newer", 400, flat("Input length (9001 tokens) exceeds the maximum allowed length (8186 tokens).")],
  ["Volcengine", 400, error("Total tokens of image and text exceed max message tokens.", { code: "InvalidParameter" })],
  ["GitHub Models", 413, error("Request body too large for gpt-4o model. Max size: 8000 tokens.")],
  [
    "OpenRouter, by its own code",
    400,
    { error: { code: 400, message: "No.", metadata: { error_type: "context_length_exceeded" } } },
  ],
  [
    "Gemini on Vertex AI",
    400,
    error("Unable to submit request because the input token count is 40100 but model only supports up to 32768."),
  ],
  [
    "vLLM, of the prompt's characters",
    400,
    error("You passed 90001 input characters, resulting in a maximum input length of 4096 tokens.", {
      param: "input_text",
    }),
  ],
  ["Workers AI", 413, { errors: [{ code: 5021, message: `${ESTIMATED} context window limit (8192).` }] }],
  [
    "SiliconFlow",
    400,
    { code: 20015, message: "length of prompt_tokens (40100) must be less than max_seq_len (32768)." },
  ],
  [
    "TensorRT-LLM, with no room left",
    400,
    flat("`default_max_tokens` (-12) must be greater than 0, `default_max_tokens` (-12) = max_seq_len (4096) - 4108"),
  ],
  ["TensorRT-LLM, older", 400, flat("Deduced max_tokens -12 is less than 0, because prompt length 4108 is too much")],
  [
    "TensorRT-LLM, of the prompt alone",
    400,
    flat("`prompt_token_ids` length (4108) is greater than `max_seq_len` (4096)"),
  ],
  ["LM Studio 0.4", 400, { error: "Cannot truncate prompt with n_keep (9001) >= n_ctx (8192)" }],
  ["Moonshot, uncounted", 400, error("Input token length too long")],
  [
    "Volcengine, counted",
    400,
    error("Input length 140001 exceeds the maximum length 131072", { code: "InvalidParameter" }),
  ],
  [
    "Databricks, of another provider",
    400,
    { external_model_provider: "openai", external_model_message: { error: { message: OPENAI, code: null } } },
  ],
  ["Qianfan, by its code", 400, error("No.", { code: "tokens_too_long" })],
  ["Cohere, newer", 400, { message: "too many tokens: size limit exceeded by 1201 tokens. Try using fewer inputs." }],
  ["Z.AI, in other words", 400, { error: { code: "1210", message: "tokens in request more than max tokens allowed" } }],
  ["a prompt and its answer, added", 400, { error: "prompt tokens (9001) + max_tokens (500) exceeds cache size" }],
  ["an unknown server's limit of tokens", 422, { detail: "Prompt exceeds token limit: it has 9001, and takes 8192" }],
  ["an unknown server that counts", 400, { detail: "Prompt length 9001 is greater than max_seq_len 8192" }],
  ["a desktop server", 400, { message: "Prompt has 32769 tokens, but the configured context size is 32768 tokens" }],
  [
    "escaped signs",
    400,
    '{"error":"The model\\u0027s context window is 8k: the input does not fit the model\\u0027s context',
  ],
  ["a server that nobody knows", 400, error("Input tokens (9001) exceed what this model takes")],
  ["Qianfan, in characters", 400, flat("the max input characters is 10000")],
  [
    "SambaNova",
    400,
    error("The provided prompt is 4097 tokens long, the maximum supported sequence length is just 4096!"),
  ],
  ["both counts", 400, error("The length of the input and output tokens exceeds the model's context limit.")],
  ["a local server", 400, { detail: "Maximum context window of 32768 tokens exceeded" }],
  ["a chat service", 413, error("The message you submitted was too long, please submit something shorter.")],
  ["a server that compares", 400, error("Your prompt has 5000 tokens, which is more than the 4096 supported")],
  ["a server that counts the request", 400, error("Request exceeded the maximum number of tokens")],
  ["an unknown server, in Chinese", 400, error("输入内容超出模型上下文长度限制")],
];

test.each(FULL)("%s (%i) says that the context is full", (_server, status, body) => {
  expect(readsAsFull(status, body)).toBe(true);
});

test("an error of a million characters, or nested without end, is read in bounded time", () => {
  let deep: unknown = "prompt is too long";
  for (let at = 0; at < 5000; at += 1) deep = { error: deep };
  const wide = { errors: Array.from({ length: 100_000 }, () => ({ message: "exceeds ".repeat(1000) })) };
  const quoted = `Invalid ${"'".repeat(1_000_000)}`;
  const late = `${"I have no place for more of this. ".repeat(30_000)} prompt is too long`;
  for (const body of [deep, wide, { error: quoted }, { error: " ".repeat(1_000_000) }]) {
    expect(isContextFull({ status: 400, body, text: "" })).toBe(false);
  }
  expect(isContextFull({ status: 400, body: { error: late }, text: late })).toBe(false);
});
