/** Streams of chat completions as servers send them; their shapes are those that docs/endpoints.md names. */
import { describe, expect, test } from "vitest";
import type { ModelResponse } from "../../../src/contract/trajectory.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";
import { ReplyReader, readReplyText } from "../../../src/core/rollout/reply-text.ts";
import { type StreamStyle, streamOf } from "../../fakes/streamed-completion.ts";

type Members = Readonly<Record<string, unknown>>;

const USAGE = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };

function reply(message: Members, choice: Members = {}): Members {
  return { id: "r-1", model: "m", choices: [{ index: 0, finish_reason: "stop", message, ...choice }], usage: USAGE };
}

function read(text: string): ModelResponse {
  return readChatCompletion(readReplyText(text), 1);
}

describe("streams", () => {
  const body = reply(
    {
      content: null,
      reasoning_content: "two calls",
      tool_calls: [
        { id: "a", type: "function", function: { name: "sum", arguments: '{"a":1,"b":2}' } },
        { id: "b", type: "function", function: { name: "hour", arguments: "{}" } },
      ],
    },
    { finish_reason: "tool_calls" },
  );

  test.each<[server: string, style: StreamStyle]>([
    ["OpenRouter: comments between events", { comment: ": OPENROUTER PROCESSING" }],
    ["a proxy: no [DONE]", { done: false }],
    ["IIS: lines that end in CR and LF", { lineEnd: "\r\n" }],
    ["lines that end in CR", { lineEnd: "\r" }],
    ["Gemini: whole calls, all numbered 0", { wholeCalls: true }],
  ])("%s", (_server, style) => {
    expect(read(streamOf(body, style))).toEqual(read(JSON.stringify(body)));
  });

  test("whole calls without ids and with one number are calls of their own", () => {
    const piece = (name: string) =>
      `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"${name}","arguments":"{}"}}]}}]}\n\n`;
    const { tool_calls = [] } = read(`${piece("a")}${piece("b")}data: [DONE]\n\n`).message;
    expect(tool_calls.map(({ function: called }) => called.name)).toEqual(["a", "b"]);
  });

  test("DashScope: a name with every piece of one call is one call", () => {
    const piece = (args: string) =>
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, id: "", function: { name: "a", arguments: args } }] } }] })}\n\n`;
    const { tool_calls = [] } = read(`${piece("")}${piece('{"n":')}${piece("1}")}data: [DONE]\n\n`).message;
    expect(tool_calls.map(({ function: called }) => called)).toEqual([{ name: "a", arguments: '{"n":1}' }]);
  });

  test("Mistral: parts that think, then plain text", () => {
    const deltas = [
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "It " }] }] },
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "is." }] }] },
      { content: "Os" },
      { content: "lo" },
    ];
    const text = deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`).join("");
    expect(read(`${text}data: [DONE]\n\n`).message.content).toEqual([
      { type: "thinking", thinking: [{ type: "text", text: "It is." }] },
      { type: "text", text: "Oslo" },
    ]);
  });

  test("OpenRouter: pieces of one entry of reasoning details are put together", () => {
    const deltas = [
      { content: "", reasoning_details: [{ type: "reasoning.text", text: "It ", index: 0 }] },
      { content: "Oslo", reasoning_details: [{ type: "reasoning.text", text: "is.", signature: "s", index: 0 }] },
    ];
    const text = deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`).join("");
    const { message } = read(`${text}data: [DONE]\n\n`);
    expect(message.reasoning_content).toBe("It is.");
    expect(JSON.parse(message.provider_fields ?? "")).toEqual({
      reasoning_details: [{ type: "reasoning.text", text: "It is.", signature: "s", index: 0 }],
    });
  });

  test("vLLM: token ids, logprobs and usage of the pieces are those of the whole", () => {
    const events = [
      {
        prompt_token_ids: [1, 2],
        choices: [{ delta: { content: "Os" }, token_ids: [3], logprobs: { content: [{ logprob: -0.5 }] } }],
      },
      {
        choices: [
          {
            delta: { content: "lo" },
            token_ids: [4],
            logprobs: { content: [{ logprob: -0.25 }] },
            finish_reason: "stop",
          },
        ],
      },
      { choices: [], usage: USAGE, weight_version: 3 },
    ];
    expect(read(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""))).toMatchObject({
      message: { content: "Oslo" },
      ...{ prompt_ids: [1, 2], completion_ids: [3, 4], completion_logprobs: [-0.5, -0.25] },
      ...{ usage: USAGE, policy_version: "3", finish_reason: "stop" },
    });
  });

  test("a body may arrive in any pieces", () => {
    const text = streamOf(body, { lineEnd: "\r\n", comment: ": waiting" });
    const reader = new ReplyReader();
    for (const character of text) reader.take(character);
    expect(readChatCompletion(reader.end(), 1)).toEqual(read(JSON.stringify(body)));
  });

  test.each<[server: string, last: Members]>([
    ["Groq", { choices: [{ delta: {}, finish_reason: "stop" }], x_groq: { usage: USAGE } }],
    ["Moonshot", { choices: [{ delta: {}, finish_reason: "stop", usage: USAGE }] }],
    ["OpenAI", { choices: [{ delta: {}, finish_reason: "stop" }], usage: USAGE }],
  ])("%s: usage is found where it is sent", (_server, last) => {
    expect(read(`data: {"choices":[{"delta":{"content":"Oslo"}}]}\n\ndata: ${JSON.stringify(last)}\n\n`).usage).toEqual(
      USAGE,
    );
  });

  test.each([
    ["one piece and no end", 'data: {"choices":[{"delta":{"content":"Os"}}]}\n\n'],
    ["an end in the middle of an event", 'data: {"choices":[{"delta":{"content":"Os"}}]}\n\ndata: {"choices":[{"del'],
    ["comments alone", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"],
    ["nothing", ""],
  ])("%s is no answer", (_what, text) => {
    expect(() => read(text)).toThrow();
  });

  test("comment lines and blank ones before a whole reply are passed over", () => {
    expect(
      read(`\n: OPENROUTER PROCESSING\n\n  \n${JSON.stringify(reply({ content: "Oslo" }), null, 2)}`).message.content,
    ).toBe("Oslo");
  });
});
