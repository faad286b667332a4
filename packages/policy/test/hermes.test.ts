import { expect, test } from "vitest";
import { formatToolCall, parseToolCalls } from "../hermes.ts";

const ADD = '<tool_call>{"name": "add", "arguments": {"a": 3, "b": 4}}</tool_call>';
const add = { name: "add", arguments: '{"a": 3, "b": 4}' };

test("a call is read, and its arguments stay exact", () => {
  expect(parseToolCalls(ADD)).toEqual({ content: null, toolCalls: [add] });
  expect(formatToolCall(add)).toBe(ADD);
  const odd = '{ "a" : [1,"}, \\"x", {"arguments":2}],"b":1e3}';
  expect(parseToolCalls(`<tool_call>{"arguments":${odd} , "name":"f"}</tool_call>`)).toEqual({
    content: null,
    toolCalls: [{ name: "f", arguments: odd }],
  });
});

test("text before the first call is content, text around the calls is dropped", () => {
  expect(parseToolCalls(`I will.${ADD}\n${ADD} Done.`)).toEqual({
    content: "I will.",
    toolCalls: [add, add],
  });
});

test("the last call may lack its end tag", () => {
  expect(parseToolCalls(ADD.replace("</tool_call>", "")).toolCalls).toEqual([add]);
});

test.each([
  "no call at all",
  "<tool_call>{bad json}</tool_call>",
  '<tool_call>{"name": "add", "arguments": {"a": 3</tool_call>',
  '<tool_call>{"name": "add"}</tool_call>',
  '<tool_call>{"name": 1, "arguments": {}}</tool_call>',
  '<tool_call>{"name": "add", "arguments": [3, 4]}</tool_call>',
  '<tool_call>["add"]</tool_call>',
  `${ADD}<tool_call>{</tool_call>`,
])("%j is content as a whole", (text) => {
  expect(parseToolCalls(text)).toEqual({ content: text, toolCalls: [] });
});

test("an empty reply has neither content nor calls", () => {
  expect(parseToolCalls("")).toEqual({ content: null, toolCalls: [] });
});
