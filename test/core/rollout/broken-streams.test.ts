/**
 * Streams that break off or fail in the middle, and overlapping pieces of tool calls, in the shapes of known servers.
 */
import { describe, expect, test } from "vitest";
import { InvalidModelResponseError, PolicyRefusalError } from "../../../src/contract/errors.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";
import { errorIn } from "../../../src/core/rollout/reply-error.ts";
import { ReplyReader, readReplyText } from "../../../src/core/rollout/reply-text.ts";
import { type Members, read } from "./replies.ts";

const chunk = (choice: Members, more: Members = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }], ...more })}\n\n`;
const says = (content: string, more: Members = {}) => chunk({ delta: { content }, ...more });
const DONE = "data: [DONE]\n\n";

describe("a reply that was broken off is not an answer", () => {
  test.each<[server: string, text: string]>([
    [
      "SGLang 0.4: an empty reason with each piece",
      says("Os", { finish_reason: "" }) + says("lo", { finish_reason: "" }),
    ],
    ["a gateway: the word null as a reason", says("Oslo", { finish_reason: "null" })],
    [
      "a reason that a later one follows",
      says("Os", { finish_reason: "error" }) + chunk({ delta: {}, finish_reason: "stop" }),
    ],
    ["an error within a delta", says("Os") + chunk({ delta: { error: { message: "boom" } } }) + DONE],
    ["a reason in a list", says("Os", { finish_reason: ["error"] }) + DONE],
    ["a flag as the error of a choice", says("Os") + chunk({ delta: {}, finish_reason: "stop", error: true }) + DONE],
  ])("%s", (_server, text) => {
    expect(() => read(text)).toThrow(InvalidModelResponseError);
  });

  test.each<[server: string, text: string]>([
    ["an error event whose words are no JSON", `${says("Os")}event: error\ndata: upstream timed out\n\n${DONE}`],
    ["a line of JSON that is no event", `${says("Os")}{"error":{"message":"upstream failed","code":502}}\n\n${DONE}`],
    [
      "vLLM: an error object with choices",
      says("Os") + chunk({ delta: {} }, { object: "error", message: "boom" }) + DONE,
    ],
    ["an error in a list", says("Os") + chunk({ delta: {} }, { error: [{ message: "boom" }] }) + DONE],
  ])("%s", (_server, text) => {
    expect(errorIn(readReplyText(text))).not.toBeNull();
  });

  test.each(["upstream_error", "engine_error", "TIMED_OUT", "request_aborted", "overloaded", "killed", "incomplete"])(
    "a reason that is not listed: %s",
    (finish_reason) => {
      expect(() => read(says("Os", { finish_reason }) + DONE)).toThrow(InvalidModelResponseError);
    },
  );

  test.each(["blocked", "input_guardrail_triggered", "unsafe", "content_blocked"])(
    "a policy's reason that is not listed: %s",
    (finish_reason) => {
      expect(() => read(says("Os", { finish_reason }) + DONE)).toThrow(PolicyRefusalError);
    },
  );

  test("a policy's reason counts even if a later chunk reports that the reply is complete", () => {
    const text = says("Os", { finish_reason: "content_filter" }) + chunk({ delta: {}, finish_reason: "stop" }) + DONE;
    expect(() => read(text)).toThrow(PolicyRefusalError);
  });

  test("Gemini: a prompt refused with an empty list of choices is refused by policy", () => {
    const body = { choices: [], prompt_feedback: { block_reason: "SAFETY" } };
    expect(() => readChatCompletion(body, 1)).toThrow(PolicyRefusalError);
  });
});

describe("tool calls with overlapping pieces", () => {
  const piece = (args: unknown, more: Members = {}) =>
    chunk({ delta: { tool_calls: [{ index: 0, ...more, function: { name: "f", arguments: args } }] } });
  const argumentsOf = (text: string) =>
    (read(text + DONE).message.tool_calls ?? []).map(({ function: called }) => called.arguments);
  const id = { id: "a" };

  test.each<[server: string, text: string, args: string]>([
    ["a whole call that is sent twice", piece('{"a":1}', id) + piece('{"a":1}', id), '{"a":1}'],
    ["pieces, and the whole once more", piece('{"a"', id) + piece(":1}") + piece('{"a":1}', id), '{"a":1}'],
    ["all so far with each piece", piece('{"a":', id) + piece('{"a":1') + piece('{"a":1}'), '{"a":1}'],
    ["empty arguments before the first piece", piece("{}", id) + piece('{"a"') + piece(":1}"), '{"a":1}'],
    ["an object, and nothing more", piece({ a: 1 }, id) + piece(""), '{"a":1}'],
    ["pieces that look like each other", piece('{"a":', id) + piece('{"a":1}}'), '{"a":{"a":1}}'],
    ["what the model wrote wrong", piece('{"a":', id) + piece("{}"), '{"a":{}'],
  ])("%s", (_server, text, args) => {
    expect(argumentsOf(text)).toEqual([args]);
  });

  test("indexes that are texts distinguish calls", () => {
    const at = (index: string, args: string) =>
      chunk({ delta: { tool_calls: [{ index, id: `c${index}`, function: { name: "f", arguments: args } }] } });
    expect(argumentsOf(at("0", '{"a"') + at("1", '{"b"') + at("0", ":1}") + at("1", ":2}"))).toEqual([
      '{"a":1}',
      '{"b":2}',
    ]);
  });

  test("many complete calls after an incomplete one are read in time linear in their length", () => {
    const unnumbered = (args: string) =>
      chunk({ delta: { tool_calls: [{ function: { name: "f", arguments: args } }] } });
    const text = unnumbered("[") + unnumbered(`{"a":"${"x".repeat(80)}"}`).repeat(40_000);
    expect(argumentsOf(text)).toHaveLength(1);
  });
});

test("a stream whose last chunk reports success, with the usage and without choices, is an answer", () => {
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  const end = `data: ${JSON.stringify({ code: 0, message: "Success", sid: "1", choices: [], usage })}\n\n`;
  expect(errorIn(readReplyText(says("Oslo", { finish_reason: "stop" }) + end + DONE))).toBeNull();
  expect(read(says("Oslo", { finish_reason: "stop" }) + end + DONE)).toMatchObject({ usage });
});

test("the lines of an event that does not end count as kept", () => {
  const reader = new ReplyReader();
  for (let line = 0; line < 100; line += 1) reader.take(`data: ${"x".repeat(1000)}\n`);
  expect(reader.kept).toBeGreaterThan(100_000);
  reader.take("\n");
  expect(reader.kept).toBe(0);
});

test("a whole message after empty pieces is the answer", () => {
  const text = says("") + chunk({ delta: {}, message: { content: "Oslo" }, finish_reason: "stop" }) + DONE;
  expect(read(text).message.content).toBe("Oslo");
});

test("a chunk sent as the whole reply is read", () => {
  const body = { choices: [{ index: 0, delta: { content: "Oslo" }, finish_reason: "stop" }] };
  expect(read(JSON.stringify(body)).message.content).toBe("Oslo");
});

test("a reply with NaN that was cut inside a text is refused in little time", () => {
  const body = JSON.stringify({ choices: [{ message: { content: 'x = "NaN"; print("a", "b")\n'.repeat(100_000) } }] });
  expect(() => readReplyText(body.slice(0, -20))).toThrow(SyntaxError);
  expect(() => readReplyText(`${body.slice(0, -20)}}`)).toThrow(SyntaxError);
});

test.each([
  ['{"answer":12345678901234567891}', '{"answer":12345678901234567891}'],
  ["12345678901234567891", "12345678901234567891"],
])("content that the server parsed keeps its digits: %s", (content, text) => {
  expect(read(`{"choices":[{"message":{"content":${content}},"finish_reason":"stop"}]}`).message.content).toBe(text);
});
