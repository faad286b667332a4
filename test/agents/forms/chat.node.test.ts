import { expect, test } from "vitest";
import { chat } from "../../../src/agents/forms/chat.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { replyOf } from "./replies.ts";
import { refusalOf } from "./requests.ts";

const USER = { role: "user", content: "Add." };
const REQUEST = { model: "m", messages: [USER] };

const parse = (fields: object) => chat.parse({ ...REQUEST, ...fields });
const messagesOf = (...messages: object[]) => parse({ messages }).call.messages;
const refusal = (fields: object) => refusalOf(chat, { ...REQUEST, ...fields });

test("sampling arguments get their names, all other fields of a server go into extra_body", () => {
  const { call, stream, model, echo } = parse({
    ...{ temperature: 0.5, max_completion_tokens: 9, stop: "x", seed: 1, reasoning_effort: "low", top_k: 5 },
    ...{ tool_choice: "auto", response_format: { type: "json_object" }, verbosity: "low" },
    ...{ chat_template_kwargs: { enable_thinking: false }, logprobs: true, presence_penalty: null },
    ...{ store: true, metadata: { a: "b" }, user: "u", service_tier: "flex", prediction: null, n: 1 },
    ...{ stream: true, stream_options: { include_usage: true }, modalities: ["text"] },
  });
  expect(call.sampling).toEqual({
    ...{ temperature: 0.5, max_completion_tokens: 9, stop: "x", seed: 1, reasoning_effort: "low", top_k: 5 },
    logprobs: true,
    extra_body: {
      ...{ tool_choice: "auto", response_format: { type: "json_object" }, verbosity: "low" },
      chat_template_kwargs: { enable_thinking: false },
    },
  });
  expect({ stream, model, echo }).toEqual({ stream: true, model: "m", echo: { include_usage: true } });
});

test("one text part is the same message as a text", () => {
  const parts = (...texts: string[]) => texts.map((text) => ({ type: "text", text }));
  const [user, developer, assistant, tool] = messagesOf(
    { role: "user", content: parts("a") },
    { role: "developer", content: parts("a") },
    { role: "assistant", content: parts("a", "b"), refusal: null, annotations: [], audio: null, parsed: null },
    { role: "tool", tool_call_id: "c1", content: parts("a") },
  );
  expect(user).toEqual({ role: "user", content: "a" });
  expect(developer).toEqual({ role: "system", content: "a" });
  expect(assistant).toEqual({ role: "assistant", content: "ab" });
  expect(tool).toEqual({ role: "tool", content: "a", tool_call_id: "c1" });
});

test("images, other parts and names are kept", () => {
  const content = [
    { type: "text", text: "a" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
    { type: "video_url", video_url: { url: "https://a.example/v" } },
  ];
  expect(messagesOf({ role: "user", name: "Ann", content })).toEqual([{ role: "user", content, name: "Ann" }]);
});

test("members that a server needs back stay in the assistant's message", () => {
  const tool_calls = [{ id: "c1", type: "function", function: { name: "add", arguments: "{}" }, extra: { a: 1 } }];
  const [message] = messagesOf({ role: "assistant", content: null, reasoning: "Hm.", tool_calls, signature: "s" });
  expect(message).toEqual({
    role: "assistant",
    content: null,
    reasoning_content: "Hm.",
    reasoning_name: "reasoning",
    provider_fields: '{"signature":"s"}',
    tool_calls: [
      { id: "c1", type: "function", function: { name: "add", arguments: "{}" }, provider_fields: '{"extra":{"a":1}}' },
    ],
  });
});

test("a tool without a description or parameters is a function that takes none", () => {
  const { call } = parse({ tools: [{ type: "function", function: { name: "now", strict: true } }] });
  const parameters = { type: "object", properties: {} };
  expect(call.tools).toEqual([
    { type: "function", function: { name: "now", description: "", parameters, strict: true } },
  ]);
});

test("what is not supported is refused by its name", () => {
  expect(refusal({ n: 2 })).toBe("n: must be 1: send one request for each answer");
  expect(refusal({ modalities: ["text", "audio"] })).toBe("modalities[1]: only text is answered");
  expect(refusal({ functions: [] })).toBe("functions: is deprecated: use tools");
  expect(refusal({ tools: [{ type: "custom", custom: { name: "x" } }] })).toBe(
    "tools[0].type: only tools of the type function are supported",
  );
  expect(refusal({ extra_body: { top_k: 1 } })).toContain("extra_body: is not a field of the request");
  expect(refusal({ messages: [{ role: "function", name: "f", content: "1" }] })).toContain(
    'messages[0].role: unknown role "function"',
  );
});

test("each wrong field is named", () => {
  expect(refusalOf(chat, null)).toMatch(/object/);
  expect(refusalOf(chat, { model: "m" })).toBe("messages: is required");
  expect(refusal({ model: 1 })).toMatch(/^model: /);
  expect(refusal({ temperature: "hot" })).toMatch(/^temperature: /);
  expect(refusal({ Model: "other" })).toMatch(/^Model: is not a sampling option/);
  expect(refusal({ messages: [USER, { role: "user" }] })).toBe("messages[1].content: is required in a user message");
  expect(refusal({ messages: [{ role: "user", content: [{ type: "text" }] }] })).toMatch(
    /^messages\[0\]\.content\[0\]\.text: /,
  );
  expect(refusal({ messages: [{ role: "tool", content: "7" }] })).toMatch(/^messages\[0\]\.tool_call_id: is required/);
  const called = { role: "assistant", tool_calls: [{ id: "c1", function: { name: "add", arguments: {} } }] };
  expect(refusal({ messages: [called] })).toMatch(/^messages\[0\]\.tool_calls\[0\]\.function\.arguments: /);
});

test("the numbers of messages, tools and parts are limited", () => {
  const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
  expect(refusal({ messages: many(LIMITS.callMessages + 1, USER) })).toMatch(
    /^messages: has \d+ items, the maximum is /,
  );
  expect(refusal({ tools: many(LIMITS.callTools + 1, {}) })).toMatch(/^tools: has \d+ items, the maximum is /);
  const content = many(LIMITS.callParts + 1, { type: "text", text: "a" });
  for (const role of ["user", "assistant"]) {
    expect(refusal({ messages: [{ role, content }] })).toMatch(
      /^messages\[0\]\.content: has \d+ items, the maximum is /,
    );
  }
});

test("the usage of a stream is sent if the request asks for it", () => {
  const reply = replyOf({ role: "assistant", content: "7" });
  const texts = (include_usage: boolean) => [...chat.events(reply, { include_usage })];
  expect(texts(false).some((text) => text.includes('"usage"'))).toBe(false);
  expect(texts(true).at(-2)).toContain('"choices":[],"usage":{"prompt_tokens":9');
  expect(texts(true).at(-1)).toBe("data: [DONE]\n\n");
});
