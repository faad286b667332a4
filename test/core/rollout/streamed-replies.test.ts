/** Streams of chat completions as servers send them; docs/endpoints.md has the sources of their shapes. */
import { describe, expect, test } from "vitest";
import type { ModelResponse } from "../../../src/contract/trajectory.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";
import { errorIn } from "../../../src/core/rollout/reply-error.ts";
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

  test("complete calls without ids and with the same number are separate calls", () => {
    const piece = (name: string) =>
      `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"${name}","arguments":"{}"}}]}}]}\n\n`;
    const { tool_calls = [] } = read(`${piece("a")}${piece("b")}data: [DONE]\n\n`).message;
    expect(tool_calls.map(({ function: called }) => called.name)).toEqual(["a", "b"]);
  });

  test("DashScope: pieces of one call that all have its name are one call", () => {
    const piece = (args: string) =>
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, id: "", function: { name: "a", arguments: args } }] } }] })}\n\n`;
    const { tool_calls = [] } = read(`${piece("")}${piece('{"n":')}${piece("1}")}data: [DONE]\n\n`).message;
    expect(tool_calls.map(({ function: called }) => called)).toEqual([{ name: "a", arguments: '{"n":1}' }]);
  });

  test("GLM: pieces of one call that all have different ids are one call, with the first id", () => {
    const piece = (id: string, called: object) =>
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, id, function: called }] } }] })}\n\n`;
    const text = `${piece("call_DfU2", { name: "sum", arguments: "" })}${piece("call_LEN0", { name: null, arguments: '{"a"' })}`;
    const { tool_calls = [] } = read(`${text}${piece("call_x", { arguments: ":1}" })}data: [DONE]\n\n`).message;
    expect(tool_calls).toEqual([
      { id: "call_DfU2", type: "function", function: { name: "sum", arguments: '{"a":1}' } },
    ]);
  });

  test("the function call of OpenAI's first API may also be streamed", () => {
    const pieces = [{ name: "sum", arguments: "" }, { arguments: '{"a":' }, { arguments: "1}" }];
    const text = pieces.map(
      (called) => `data: ${JSON.stringify({ choices: [{ delta: { function_call: called } }] })}\n\n`,
    );
    const { tool_calls } = read(`${text.join("")}data: [DONE]\n\n`).message;
    expect(tool_calls).toMatchObject([{ function: { name: "sum", arguments: '{"a":1}' } }]);
  });

  test("Unicode's line separators in a text do not end a line", () => {
    const text = streamOf(reply({ content: "a\u2028b\u2029c" }));
    expect(text).toContain("\u2028");
    expect(read(text).message.content).toBe("a\u2028b\u2029c");
  });

  test.each<[server: string, event: string]>([
    ["vLLM before 0.10", '{"object":"error","message":"CUDA out of memory","code":500}'],
    ["FastAPI", '{"detail":"engine died"}'],
    ["a proxy", '{"error":true,"message":"boom"}'],
    ["OpenAI", '{"error":{"message":"boom","type":"server_error"}}'],
    ["TGI", '{"error":"boom","error_type":"generation"}'],
  ])("%s: an error in the middle of a stream makes the reply unusable", (_server, event) => {
    for (const field of ["data", "error"]) {
      const half = 'data: {"choices":[{"delta":{"content":"Half"}}]}';
      const body = readReplyText(`${half}\n\n${field}: ${event}\n\ndata: [DONE]\n\n`);
      expect(errorIn(body)).not.toBeNull();
    }
  });

  test("parts besides the text stay separate: citations, pictures, encrypted thoughts", () => {
    const cite = (url: string) => ({ type: "url_citation", url_citation: { url } });
    const secret = (id: string) => ({ type: "reasoning.encrypted", id, data: "AAA=", index: 0 });
    const body = reply({
      content: "x",
      annotations: [cite("a"), cite("b")],
      reasoning_details: [secret("rs_1"), secret("rs_2")],
    });
    expect(read(streamOf(body))).toEqual(read(JSON.stringify(body)));
  });

  test("events that end with one line feed, and keep-alive words, are accepted", () => {
    const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n`;
    expect(read(`data: keep-alive\n\n${chunk("Os")}${chunk("lo")}data: [DONE]\n`).message.content).toBe("Oslo");
  });

  test("an empty usage does not replace an earlier one", () => {
    const text = `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":${JSON.stringify(USAGE)}}\n\n`;
    expect(read(`${text}data: {"choices":[],"usage":{}}\n\n`).usage).toEqual(USAGE);
  });

  test("a long tool call in small pieces, and parts with many members, are read in linear time", () => {
    const piece = (called: object) =>
      `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, function: called }] } }] })}\n\n`;
    const args = `{"text":"${"abcd".repeat(100_000)}"}`;
    const pieces = args.match(/.{1,4}/g)?.map((text) => piece({ arguments: text })) ?? [];
    const { tool_calls } = read(`${piece({ name: "write" })}${pieces.join("")}data: [DONE]\n\n`).message;
    expect(tool_calls?.[0]?.function.arguments).toBe(args);
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`m${at}`, 1]));
    const part = `data: ${JSON.stringify({ choices: [{ delta: { content: [{ type: "text", text: "a", ...many }] } }] })}\n\n`;
    const more = 'data: {"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}\n\n'.repeat(20_000);
    expect(() => read(`${part}${more}data: [DONE]\n\n`)).toThrow("more than 10000 values");
  });

  test("Mistral: parts with thoughts, then plain text", () => {
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

  test("OpenRouter: pieces of one entry of reasoning details are merged", () => {
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

  test("vLLM: token ids, logprobs and usage of the pieces equal those of the whole reply", () => {
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
  ])("%s is not an answer", (_what, text) => {
    expect(() => read(text)).toThrow();
  });

  test("comment lines and blank lines before a whole reply are skipped", () => {
    expect(
      read(`\n: OPENROUTER PROCESSING\n\n  \n${JSON.stringify(reply({ content: "Oslo" }), null, 2)}`).message.content,
    ).toBe("Oslo");
  });
});
