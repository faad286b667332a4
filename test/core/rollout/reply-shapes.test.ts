/** Content and tool calls in other shapes than OpenAI's, each read as a whole reply and as a stream. */
import { expect, test } from "vitest";
import { textOf } from "../../../src/contract/messages.ts";
import { streamOf } from "../../fakes/streamed-completion.ts";
import { FORMS, type Members, read, readBoth, reply } from "./replies.ts";

test.each<[what: string, content: unknown, text: string]>([
  [
    "one text cut into parts",
    [
      { type: "text", text: "Par" },
      { type: "text", text: "is" },
    ],
    "Paris",
  ],
  [
    "Mistral: a reference within a text",
    [
      { type: "text", text: "It is " },
      { type: "reference", reference_ids: [1] },
      { type: "text", text: "Paris." },
    ],
    "It is Paris.",
  ],
  [
    "texts around a thought",
    [
      { type: "text", text: "So:" },
      { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
      { type: "text", text: "Paris" },
    ],
    "So: Paris",
  ],
  ["texts as parts", ["Par", "is"], "Paris"],
  ["one part without its list", { type: "text", text: "Paris" }, "Paris"],
  ["a part without a type", [{ text: "Paris" }], "Paris"],
  ["a part of the Responses API", [{ type: "output_text", text: "Paris", annotations: [] }], "Paris"],
  ["a part of the Assistants API", [{ type: "text", text: { value: "Paris", annotations: [] } }], "Paris"],
  ["parts that say nothing", [null, { type: "text", text: null }, { type: "text", text: "Paris" }], "Paris"],
  ["JSON that the server has parsed", { city: "Paris" }, '{"city":"Paris"}'],
  ["a number that the server has parsed", 42, "42"],
])("content of another shape is read: %s", (_what, content, text) => {
  const body = reply({ content });
  expect(Object.values(FORMS).map((form) => textOf(read(form(body)).message))).toEqual([text, text]);
});

test.each([{}, [], "", false, null])("tool calls that are %j count as none", (tool_calls) => {
  expect(readBoth(reply({ content: "Oslo", tool_calls })).message).toEqual({ role: "assistant", content: "Oslo" });
});

test.each<[what: string, wrapped: (call: Members) => unknown]>([
  ["without its list", (call) => call],
  ["under its number", (call) => ({ 0: call })],
])("a tool call is read %s", (_what, wrapped) => {
  const call = { id: "a", type: "function", function: { name: "sum", arguments: "{}" } };
  const text = JSON.stringify(reply({ content: null, tool_calls: wrapped(call) }));
  expect(read(text).message.tool_calls).toEqual([call]);
});

test.each(["NaN", "-Infinity", "Infinity"])(
  "a member that is %s, as Python writes it, does not invalidate the answer",
  (word) => {
    const content = `It is "${word}": ok`;
    const body = reply({ content }, { logprobs: { content: [] }, score: "NOTHING" });
    const whole = JSON.stringify(body).replace('"NOTHING"', word);
    const streamed = streamOf(body).replace('"NOTHING"', word);
    expect([read(whole).message.content, read(streamed).message.content]).toEqual([content, content]);
  },
);

test("D22: the text parts of a reply are pieces of one text, those of other messages are joined with a space", () => {
  const content = ["one", "two"].map((text) => ({ type: "text", text }));
  expect(textOf({ role: "assistant", content })).toBe("onetwo");
  expect(textOf({ role: "user", content })).toBe("one two");
});
