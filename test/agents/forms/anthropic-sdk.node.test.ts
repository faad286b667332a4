/** Anthropic's SDK as an agent uses it: what it returns is sent back as the history of the next request. */
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Message } from "../../../src/contract/messages.ts";
import { MESSAGES, replyOf } from "./replies.ts";
import { type ModelAddress, serveForms } from "./serve-forms.ts";

let address: ModelAddress;
let client: Anthropic;

beforeAll(async () => {
  address = await serveForms();
  client = new Anthropic({ baseURL: address.url, apiKey: "k", maxRetries: 0 });
});
afterAll(() => address.stop());

const USER = { role: "user", content: "Add." } as const;
const TOOLS: Anthropic.Tool[] = [{ name: "add", input_schema: { type: "object" } }];
const ASKED = { model: "m", max_tokens: 100, tools: TOOLS, messages: [USER] };

function history({ content }: Anthropic.Message, { tool_calls = [] }: Message): Anthropic.MessageParam[] {
  const results = tool_calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "7" }) as const);
  const answer = { role: "assistant", content } as const;
  return [USER, answer, ...(results.length > 0 ? [{ role: "user", content: results } as const] : [])];
}

function expectHistory(message: Message): void {
  const messages = address.requests.at(-1)?.call.messages ?? [];
  expect(JSON.stringify(messages[1])).toBe(JSON.stringify(message));
  const results = (message.tool_calls ?? []).map(({ id }) => ({ role: "tool", content: "7", tool_call_id: id }));
  expect(messages.slice(2)).toEqual(results);
}

describe.each(Object.entries(MESSAGES))("%s", (_, message) => {
  test("comes back from a message", async () => {
    address.answer(replyOf(message));
    const answer = await client.messages.create(ASKED);
    expect(answer.usage).toMatchObject({ input_tokens: 7, cache_read_input_tokens: 2, output_tokens: 4 });
    await client.messages.create({ ...ASKED, messages: history(answer, message) });
    expectHistory(message);
  });

  test("comes back from a stream", async () => {
    address.answer(replyOf(message));
    const answer = await client.messages.stream(ASKED).finalMessage();
    expect(answer.usage).toMatchObject({ input_tokens: 7, cache_read_input_tokens: 2, output_tokens: 4 });
    expect(answer.stop_reason).toBe(message.tool_calls === undefined ? "end_turn" : "tool_use");
    await client.messages.create({ ...ASKED, messages: history(answer, message) });
    expectHistory(message);
  });
});

test("a call has its arguments as an object", async () => {
  const called = (args: string) =>
    ({ id: "c1", type: "function", function: { name: "add", arguments: args } }) as const;
  const inputOf = async (args: string) => {
    address.answer(replyOf({ role: "assistant", content: "", tool_calls: [called(args)] }));
    const { content } = await client.messages.stream(ASKED).finalMessage();
    return content.map((block) => (block.type === "tool_use" ? block.input : block.type));
  };
  expect(await inputOf('{"a": [1, {"b": null}]}')).toEqual([{ a: [1, { b: null }] }]);
  expect(await inputOf('{"a": 1')).toEqual([{ INVALID_JSON: '{"a": 1' }]);
});

test("an answer that was cut at its token limit says so", async () => {
  address.answer(replyOf({ role: "assistant", content: "It is" }, { finish_reason: "length" }));
  expect(await client.messages.create(ASKED)).toMatchObject({ stop_reason: "max_tokens" });
});

test("the SDK throws the platform's error, whole or in a stream", async () => {
  address.answer({ status: 429, code: "rate_limited", message: "too many calls", param: null });
  await expect(client.messages.create(ASKED)).rejects.toMatchObject({ status: 429, type: "rate_limit_error" });
  await expect(client.messages.stream(ASKED).finalMessage()).rejects.toThrow("too many calls");
  const search = { type: "web_search_20250305", name: "web_search" } as const;
  const refused = client.messages.create({ ...ASKED, tools: [search] });
  await expect(refused).rejects.toMatchObject({ status: 400, type: "invalid_request_error" });
  await expect(refused).rejects.toThrow("tools[0].type: ");
});

test("a tool runner of the SDK that asks for a stored conversation sends the whole one with each request", async () => {
  const called = { id: "c1", type: "function", function: { name: "add", arguments: "{}" } } as const;
  const message: Message = { role: "assistant", content: "", tool_calls: [called] };
  const from = address.requests.length;
  address.answer(replyOf(message));
  const run = () => {
    address.answer(replyOf({ role: "assistant", content: "7" }));
    return "7";
  };
  const parse = (input: unknown) => input;
  const tools = [{ name: "add", input_schema: { type: "object" }, run, parse } as const];
  const answer = await client.beta.messages.toolRunner({ ...ASKED, tools });
  expect(answer.content).toMatchObject([{ type: "text", text: "7" }]);
  expect(address.requests.slice(from).map(({ call }) => call.messages)).toEqual([
    [USER],
    [USER, message, { role: "tool", content: "7", tool_call_id: "c1" }],
  ]);
});
