import { textOf } from "rollcall";
import { expect, test } from "vitest";
import { commonPrefix, Message, normalizeMessages } from "../../src/contract/messages.ts";

const image = { type: "image_url", image_url: { url: "https://host.test/a.png", detail: "low" } };
const audio = { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } };

test("the text of a message is its string, or its text parts with a space between", () => {
  const parts = [{ type: "text", text: " one" }, image, { type: "text", text: "two " }];
  expect(textOf({ content: parts })).toBe("one two");
  expect(textOf({ content: " as it is " })).toBe(" as it is ");
  for (const message of [undefined, { content: null }, { content: [] }, { content: [audio] }]) {
    expect(textOf(message)).toBe("");
  }
});

test("parts in OpenAI's shape keep additional members, and parts of other types are kept", () => {
  const content = [
    { type: "text", text: "look", cache_control: { type: "ephemeral" } },
    image,
    audio,
    { type: "video_url", video_url: { url: "https://host.test/a.mp4" } },
  ];
  expect(normalizeMessages([{ role: "user", content }])).toEqual([{ role: "user", content }]);
});

test.each([
  [{ type: "text" }, "0.content"],
  [{ type: "image_url", image_url: "https://host.test/a.png" }, "0.content"],
  [{ type: "input_audio", input_audio: { data: "UklGRg==" } }, "0.content"],
  [{ text: "no type" }, "0.content"],
  [{ type: "text", text: "x", at: new Date(0) }, "0.content"],
])("a part without the members of its type is refused: %j", (part, path) => {
  const messages = [{ role: "user", content: [part] }];
  expect(() => normalizeMessages(messages)).toThrow(`not a list of messages: ${path}`);
});

test("tool calls are read flat or as OpenAI's: a missing id becomes the name, objects become JSON, null becomes {}", () => {
  const calls = [
    { id: "a", name: "f", arguments: '{"x":1}' },
    { id: 7, function: { name: "g", arguments: { x: [1] } } },
    { id: "c", type: "function", function: { name: "h", arguments: null } },
  ];
  const [message] = normalizeMessages([{ role: "assistant", tool_calls: calls }]);
  expect(message).toEqual({
    role: "assistant",
    content: null,
    tool_calls: [
      { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
      { id: "g", type: "function", function: { name: "g", arguments: '{"x":[1]}' } },
      { id: "c", type: "function", function: { name: "h", arguments: "{}" } },
    ],
  });
});

test.each([
  [{ role: "tool", content: "4" }, "0.tool_call_id"],
  [{ role: "tool", tool_call_id: "a" }, "0.content"],
  [{ role: "user" }, "0.content"],
  [{ role: "system", content: null }, "0.content"],
  [{ role: "text", content: [{ type: "text", text: "hi" }] }, "0.content"],
  [{ role: "text" }, "0.content"],
  [{ role: "assistant", tool_calls: [{ name: "f", arguments: "{}" }] }, "0.tool_calls.0.id"],
  [
    { role: "assistant", tool_calls: [{ id: "a", name: "f", arguments: { x: 1 } }] },
    "0.tool_calls.0.function.arguments",
  ],
])("what verifiers refuses is refused with the field: %j", (message, path) => {
  expect(() => normalizeMessages([message])).toThrow(`not a list of messages: ${path}: `);
});

test("a name and thinking blocks are kept, and an assistant message needs no content", () => {
  const thinking_blocks = [{ type: "thinking", thinking: "so", signature: "s" }];
  const messages = [
    { role: "user", content: "hi", name: "ann" },
    { role: "assistant", content: null, thinking_blocks },
  ];
  expect(normalizeMessages(messages)).toEqual(messages);
});

test("a bare text is one message of role text; developer is read as system", () => {
  expect(normalizeMessages("hi")).toEqual([{ role: "text", content: "hi" }]);
  const [message] = normalizeMessages([{ role: "developer", content: "be brief" }]);
  expect(message).toEqual({ role: "system", content: "be brief" });
});

test("an unknown role is refused by name, and so is a missing one", () => {
  const refused = (message: object) => () => normalizeMessages([message]);
  expect(refused({ role: "king", content: "x" })).toThrow(/0.role: unknown role "king": use one of/);
  expect(refused({ content: "x" })).toThrow(/0.role: /);
  expect(refused({ role: "assistant", tool_calls: [{ id: "a" }] })).toThrow(/function.name/);
  expect(() => normalizeMessages(7)).toThrow(/not a list of messages/);
});

test("fields that are null are left out, and missing content is null", () => {
  const raw = { role: "tool", content: null, tool_calls: null, tool_call_id: null, name: "x" };
  expect(Object.entries(Message.parse(raw))).toEqual([
    ["role", "tool"],
    ["content", null],
    ["name", "x"],
  ]);
});

test("A12: a message keeps the fields of OpenAI's shape and the model's thoughts, and drops all others", () => {
  const thought = {
    reasoning_content: "hm",
    thinking_blocks: [{ type: "thinking", thinking: "hm" }],
  };
  const call = { id: "1", type: "function", function: { name: "f", arguments: "{}" } };
  const parts = [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }];
  const kept = [
    { role: "user", content: parts, name: "bob" },
    { role: "assistant", content: "x", ...thought, tool_calls: [call] },
    { role: "tool", content: "y", tool_call_id: "1" },
  ];
  const raw = kept.map((message) => ({ ...message, refusal: "no", annotations: [1], mine: true }));
  expect(normalizeMessages(raw)).toEqual(kept);
});

test("two histories share the equal messages from the start, at most the length of the shorter", () => {
  const [a, b] = [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
  ] as const;
  expect(commonPrefix([a, b], [{ ...a }, { ...b }])).toBe(2);
  expect(commonPrefix([a, b], [a])).toBe(1);
  expect(commonPrefix([a, b], [b, a])).toBe(0);
});
