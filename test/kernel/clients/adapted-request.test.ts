import { expect, test } from "vitest";
import { refusedIn as refusedBy, withoutRefused } from "../../../src/kernel/clients/adapted-request.ts";
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
    "DashScope",
    "This model only support stream mode, please enable the stream parameter to access the model.",
    "whole_replies",
  ],
  ["DashScope", "parameter.enable_thinking must be set to false for non-streaming calls", "whole_replies"],
  ["DashScope", "'audio' output only support with stream=true", "whole_replies"],
  ["Fireworks", "Requests with max_tokens > 4096 must have stream=true", "whole_replies"],
  ["a proxy", "only streaming is supported", "whole_replies"],
  ["a proxy", "stream must be set to true", "whole_replies"],
  ["a proxy", "Streaming is required for this model", "whole_replies"],
  ["a proxy", "Non-streaming responses are not implemented.", "whole_replies"],
  ["a proxy", `{"error":{"message":"bad request","code":"stream_required"}}`, "whole_replies"],
  ["DashScope", "当前模型仅支持流式输出，请设置stream参数", "whole_replies"],
  ["Anthropic", "Streaming is required for operations that may take longer than 10 minutes", "whole_replies"],
  ["a proxy", "stream=false is not supported", "whole_replies"],
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
  expect(refusedIn(BODY, 400, words)).toBe(refused);
  expect(refusedIn(BODY, 422, words)).toBe(refused);
  expect(refusedIn(BODY, 501, words)).toBe(refused);
  expect(refusedIn(BODY, 500, words)).toBeNull();
  const { body, changes } = withoutRefused(BODY, [refused]);
  expect(changes).toEqual([refused]);
  // Once it is left out, the same text means something else.
  expect(refusedIn(body, 400, words)).not.toBe(refused);
});

test("a stream is requested with its usage, and without options if they are refused", () => {
  const words = "Unrecognized request argument supplied: stream_options";
  expect(refusedIn(STREAMED, 400, words)).toBe("stream_options");
  const member = `{"detail":[{"loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted"}]}`;
  expect(refusedIn(STREAMED, 422, member)).toBe("stream_options");
  const { body } = withoutRefused(BODY, ["stream_options", "whole_replies"]);
  expect(body).toEqual({ ...BODY, stream: true });
  expect(withoutRefused(BODY, ["stream_options"]).changes).toEqual([]);
});

test.each([
  "temperature must be at most 2, got 9.",
  "This model does not support reasoning effort",
  "reasoning_effort is not supported with this model",
  "Missing `reasoning_content` field in the assistant message at message index 1",
  "The `reasoning_content` in the thinking mode must be passed back to the API. Invalid request.",
  "Invalid schema for function 'f': strictly one property is allowed",
  "The server streams from upstream and failed",
  "messages: content is invalid",
  "Invalid value for reasoning_content: encrypted content could not be verified",
  "Invalid `extra_content` in `thinking` block",
  'unsupported image; the request was {"input": ["reasoning_content"]}',
  "",
])("%j refuses no part that could be left out", (words) => {
  expect(refusedIn(BODY, 400, words)).toBeNull();
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
