import { expect, test } from "vitest";
import {
  isRefusedBesides,
  refusedIn as refusedBy,
  withoutRefused,
} from "../../../src/kernel/clients/adapted-request.ts";
import { wordsOfError } from "../../../src/kernel/clients/error-words.ts";

/** `words`: a message, or a whole body as JSON. */
function refusedIn(body: Parameters<typeof refusedBy>[0], status: number, words: string): string | null {
  return refusedBy(body, status, wordsOfError(words.startsWith("{") ? JSON.parse(words) : null, words));
}

const CALL = { id: "a", type: "function", function: { name: "f", arguments: "{}" }, extra_content: { google: 1 } };
const BODY = {
  model: "m",
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", content: "a", reasoning: "so", reasoning_content: "so", tool_calls: [CALL] },
    { role: "tool", content: "1", tool_call_id: "a" },
  ],
  tools: [{ type: "function", function: { name: "f", description: "", parameters: {}, strict: true } }],
};
const STREAMED = { ...BODY, stream: true, stream_options: { include_usage: true } };

test.each<[server: string, words: string, refused: string]>([
  [
    "Groq",
    `'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]`,
    "messages.reasoning_content",
  ],
  ["Groq", `property 'reasoning' is unsupported, did you mean 'role'?`, "messages.reasoning"],
  [
    "DeepSeek R1",
    "The reasoning_content is an intermediate result for display purposes only and will not be included in the context for inference. Please remove the reasoning_content from your message to reduce network traffic.",
    "messages.reasoning_content",
  ],
  [
    "Mistral",
    `{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}]}`,
    "messages.reasoning_content",
  ],
  ["OpenAI", "Additional properties are not allowed ('reasoning' was unexpected) - 'messages.1'", "messages.reasoning"],
  [
    "Cerebras",
    "body.messages.1.assistant.extra_content: property 'body.messages.1.assistant.extra_content' is unsupported",
    "messages.extra_content",
  ],
  [
    "Gemini",
    `Invalid JSON payload received. Unknown name "strict" at 'tools[0].function': Cannot find field.`,
    "tools.strict",
  ],
  [
    "Mistral",
    `{"detail":[{"type":"extra_forbidden","loc":["body","tools",0,"function","strict"],"msg":"Extra inputs are not permitted"}]}`,
    "tools.strict",
  ],
  [
    "Upstage",
    `{"error":{"message":"Invalid value: 'true'. The value 'true' isn't supported yet.","param":"tools[0].function.strict"}}`,
    "tools.strict",
  ],
  ["Cohere", "unknown field: parameter 'strict' is not a valid field", "tools.strict"],
  [
    "OpenAI",
    `{"error":{"message":"Your organization must be verified to stream this model. Please go to the settings and click on Verify Organization.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}`,
    "streams",
  ],
  [
    "OpenAI",
    `{"error":{"message":"Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.","param":"stream","code":"unsupported_value"}}`,
    "streams",
  ],
  ["FastAPI", `{"detail":[{"type":"literal_error","loc":["body","stream"],"msg":"Input should be False"}]}`, "streams"],
  ["llama.cpp", "Cannot use tools with stream", "streams"],
  ["Ollama", "streaming is not supported with tools", "streams"],
  ["AWS Bedrock", "The model is unsupported for streaming", "streams"],
  ["a proxy", "stream=true is not supported", "streams"],
  ["a proxy", "Streaming responses are not implemented.", "streams"],
  ["a proxy", "Only non-streaming requests are accepted", "streams"],
  ["a proxy", `{"error":{"message":"bad request","code":"stream_unsupported"}}`, "streams"],
  ["a proxy", "当前模型不支持流式输出", "streams"],
  [
    "OpenAI",
    `{"error":{"message":"Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.","type":"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}`,
    "tools.strict",
  ],
  [
    "Azure",
    "Invalid schema for function 'f': In context=('properties', 'a'), 'format' is not permitted.",
    "tools.strict",
  ],
  ["DeepSeek", "All tools must be strict, or none of them.", "tools.strict"],
  ["a proxy", "Strict mode for tools is not available", "tools.strict"],
])("%s: %s", (_server, words, refused) => {
  expect(refusedIn(STREAMED, 400, words)).toBe(refused);
  expect(refusedIn(STREAMED, 422, words)).toBe(refused);
  expect(refusedIn(STREAMED, 501, words)).toBe(refused);
  expect(refusedIn(STREAMED, 500, words)).toBeNull();
  const { body, changes } = withoutRefused(STREAMED, [refused]);
  expect(changes).toEqual([refused]);
  // Once it is left out, the same text means something else.
  expect(refusedIn(body, 400, words)).not.toBe(refused);
});

test("a stream is requested without its options or not at all if the server refuses them", () => {
  const words = "Unrecognized request argument supplied: stream_options";
  expect(refusedIn(STREAMED, 400, words)).toBe("stream_options");
  const member = `{"detail":[{"loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted"}]}`;
  expect(refusedIn(STREAMED, 422, member)).toBe("stream_options");
  expect(withoutRefused(STREAMED, ["stream_options"]).body).toEqual({ ...BODY, stream: true });
  expect(withoutRefused(STREAMED, ["streams"])).toEqual({ body: BODY, changes: ["streams"] });
  expect(withoutRefused(BODY, ["stream_options", "streams"]).changes).toEqual([]);
});

test("streams that are refused only beside another part of the request are not refused for every request", () => {
  const words = wordsOfError({ error: { message: "`prompt_logprobs` are not available when `stream=True`." } }, "");
  const asking = { ...STREAMED, prompt_logprobs: 1 };
  expect([refusedBy(asking, 400, words), isRefusedBesides(asking, "streams", words)]).toEqual(["streams", true]);
  expect(isRefusedBesides(STREAMED, "streams", words)).toBe(false);
  expect(isRefusedBesides(asking, "streams", wordsOfError(null, "stream=true is not supported"))).toBe(false);
});

test("a name that versions before 0.3 stored for servers that only stream changes nothing", () => {
  expect(withoutRefused(STREAMED, ["whole_replies"])).toEqual({ body: STREAMED, changes: [] });
});

test.each([
  "temperature must be at most 2, got 9.",
  "This model does not support reasoning effort",
  "reasoning_effort is not supported with this model",
  "Missing `reasoning_content` field in the assistant message at message index 1",
  "The `reasoning_content` in the thinking mode must be passed back to the API. Invalid request.",
  "Invalid schema for function 'f': strictly one property is allowed",
  "The server streams from upstream and failed",
  "The stream was interrupted and cannot be resumed: try again",
  "messages: content is invalid",
  "Invalid value for reasoning_content: encrypted content could not be verified",
  "Invalid `extra_content` in `thinking` block",
  'unsupported image; the request was {"input": ["reasoning_content"]}',
  "",
])("%j refuses no part that could be left out", (words) => {
  expect(refusedIn(STREAMED, 400, words)).toBeNull();
});

test("a setting of the run with the name of a member is not treated as the member", () => {
  const body = { ...BODY, reasoning: { effort: "high" } };
  expect(refusedIn(body, 400, "Unknown parameter: 'reasoning'.")).toBeNull();
  expect(refusedIn(body, 400, "Unknown parameter: 'messages[1].reasoning'.")).toBe("messages.reasoning");
});

test("a member is left out of messages, tool calls and their functions, and nothing else changes", () => {
  const { body } = withoutRefused(BODY, ["messages.extra_content", "messages.reasoning", "messages.unheard_of"]);
  const { extra_content: _, ...call } = CALL;
  const [user, { reasoning: __, ...assistant }, result] = BODY.messages as [object, Record<string, unknown>, object];
  expect(body).toEqual({ ...BODY, messages: [user, { ...assistant, tool_calls: [call] }, result] });
});

test("refusals of any length are read in little time", () => {
  const words = `'messages.1' ${"strict reasoning_content ".repeat(200_000)}`;
  expect(refusedIn({ ...BODY, tools: [] }, 400, words)).toBeNull();
});
