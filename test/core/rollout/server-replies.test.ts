/**
 * Replies of servers that call themselves OpenAI-compatible, each read whole and as a stream. The shapes are from their
 * documentation, their sources or reports of their users; docs/endpoints.md has the references.
 */
import { describe, expect, test } from "vitest";
import { ModelError } from "../../../src/contract/errors.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";
import { FORMS, type Members, read, readBoth, reply, USAGE } from "./replies.ts";

describe("fields besides an answer never make it unusable", () => {
  test.each<[server: string, body: Members]>([
    [
      "OpenRouter: usage of nulls",
      reply({ content: "Oslo" }, {}, { usage: { prompt_tokens: null, completion_tokens: null } }),
    ],
    [
      "Gemini: usage without completion tokens",
      reply({ content: "Oslo" }, {}, { usage: { prompt_tokens: 9, total_tokens: 9 } }),
    ],
    ["a proxy: usage as a text", reply({ content: "Oslo" }, {}, { usage: "n/a" })],
    [
      "llama.cpp: usage with counts of -1",
      reply({ content: "Oslo" }, {}, { usage: { prompt_tokens: -1, completion_tokens: -1 } }),
    ],
    [
      "Databricks: usage of fractions",
      reply({ content: "Oslo" }, {}, { usage: { prompt_tokens: 1.5, completion_tokens: 2 } }),
    ],
  ])("%s: the answer counts, its usage is unknown", (_server, body) => {
    expect(readBoth(body)).toMatchObject({ message: { content: "Oslo" }, usage: null });
  });

  test.each<[server: string, body: Members]>([
    ["MiniMax: a number as id", reply({ content: "Oslo" }, {}, { id: 20_250_101 })],
    ["Baidu: an object as id", reply({ content: "Oslo" }, {}, { id: { as: 1 } })],
    ["a proxy: no model", reply({ content: "Oslo" }, {}, { model: null })],
    [
      "Azure: filter results and an empty fingerprint",
      reply(
        { content: "Oslo" },
        { content_filter_results: { hate: { filtered: false } } },
        { prompt_filter_results: [{}], system_fingerprint: null },
      ),
    ],
    ["TGI: logprobs as null", reply({ content: "Oslo" }, { logprobs: null })],
    [
      "Together: logprobs of another shape",
      reply({ content: "Oslo" }, { logprobs: { tokens: ["Os"], token_logprobs: [-0.1] } }),
    ],
    [
      "Fireworks: logprobs with nulls",
      reply({ content: "Oslo" }, { logprobs: { content: [{ token: "Os", logprob: null }] } }),
    ],
    ["SGLang: matched_stop", reply({ content: "Oslo" }, { matched_stop: 151_645 })],
    [
      "Groq: timings in usage and x_groq",
      reply({ content: "Oslo" }, {}, { usage: { ...USAGE, queue_time: 0.02 }, x_groq: { id: "req" } }),
    ],
    [
      "a proxy: an empty error in addition to the answer",
      reply({ content: "Oslo" }, {}, { error: { code: 0, message: "ok" } }),
    ],
    ["a proxy: error as null", reply({ content: "Oslo" }, { error: null }, { error: null })],
  ])("%s: it is read", (_server, body) => {
    expect(readBoth(body)).toMatchObject({ message: { content: "Oslo" }, finish_reason: "stop" });
  });

  test.each<[server: string, message: Members]>([
    ["Zhipu: refusal false", { content: "Oslo", refusal: false }],
    [
      "OpenAI: nulls and empty lists",
      { content: "Oslo", refusal: null, annotations: [], audio: null, tool_calls: null },
    ],
    ["vLLM: an empty list of calls", { content: "Oslo", reasoning: null, reasoning_content: null, tool_calls: [] }],
  ])("%s: none of it is kept", (_server, message) => {
    const { provider_fields, ...kept } = readBoth(reply(message)).message;
    expect(kept).toEqual({ role: "assistant", content: "Oslo" });
    expect(provider_fields ?? '{"refusal":false}').toBe('{"refusal":false}');
  });

  test.each<[server: string, message: Members, text: string]>([
    ["a proxy: an object", { reasoning: { summary: "easy" } }, "easy"],
    ["a proxy: a list of texts", { reasoning: ["a", "b"] }, "ab"],
    [
      "OpenRouter: details",
      {
        reasoning_details: [
          { type: "reasoning.text", text: "so", index: 0 },
          { type: "reasoning.encrypted", data: "x" },
        ],
      },
      "so",
    ],
    ["xAI, DeepSeek: a text", { reasoning_content: "so it is" }, "so it is"],
    ["Ollama: a text by another name", { reasoning: "so it is" }, "so it is"],
  ])("%s: the model's thoughts are read", (_server, message, text) => {
    expect(readBoth(reply({ content: "Oslo", ...message })).message).toMatchObject({
      content: "Oslo",
      reasoning_content: text,
    });
  });
});

describe("how a reply ended", () => {
  test.each<[server: string, reason: unknown, message?: Members]>([
    ["OpenRouter", "error"],
    ["Mistral", "error"],
    ["DeepSeek", "insufficient_system_resource"],
    ["vLLM, SGLang", "abort"],
    ["Zhipu", "network_error"],
    ["Gemini", "MALFORMED_FUNCTION_CALL"],
    ["Gemini", "MISSING_THOUGHT_SIGNATURE"],
    ["Gemini's compatibility", "function_call_filter: MALFORMED_FUNCTION_CALL"],
    ["Cohere", "ERROR"],
    ["a proxy", { type: "error" }],
  ])("%s: a reply that ends with %j was broken off, and is retryable", (_server, finish_reason) => {
    for (const form of Object.values(FORMS)) {
      const thrown = caught(() => read(form(reply({ content: "Os" }, { finish_reason }))));
      expect(thrown).toBeInstanceOf(ModelError);
      expect(thrown).toMatchObject({ retryable: true, message: expect.stringContaining("broken off") });
    }
  });

  test("OpenRouter: a choice with an error was broken off, whatever its finish reason", () => {
    for (const form of Object.values(FORMS)) {
      const body = reply({ content: "Os" }, { error: { code: 502, message: "upstream reset" } });
      expect(() => read(form(body))).toThrow(/broken off.*upstream reset/);
    }
  });

  test.each([
    ["OpenAI, Azure", "content_filter"],
    ["Gemini", "SAFETY"],
    ["Gemini", "RECITATION"],
    ["Gemini", "PROHIBITED_CONTENT"],
    ["Vertex", "MODEL_ARMOR"],
    ["Vertex", "FINISH_REASON_BLOCKLIST"],
    ["a proxy", "ContentFilter"],
    ["Gemini", "LANGUAGE"],
    ["Gemini's compatibility", "content_filter: PROHIBITED_CONTENT"],
    ["Bedrock", "guardrail_intervened"],
    ["Anthropic", "refusal"],
    ["Zhipu", "sensitive"],
  ])("%s: a reply that ends with %s was refused by a policy, and is not retryable", (_server, finish_reason) => {
    for (const form of Object.values(FORMS)) {
      const thrown = caught(() => read(form(reply({ content: "Os" }, { finish_reason }))));
      expect(thrown).toMatchObject({ name: "PolicyRefusalError", retryable: false });
    }
  });

  test.each<[server: string, reason: unknown]>([
    ["OpenAI", "length"],
    ["Mistral", "model_length"],
    ["Gemini", "MAX_TOKENS"],
    ["Cohere", "ERROR_LIMIT"],
    ["Gemini's Python client", "FinishReason.MAX_TOKENS"],
    ["Anthropic, Bedrock", "max_tokens"],
    ["Anthropic", "model_context_window_exceeded"],
    ["a proxy", { type: "length" }],
  ])("%s: a reply that ends with %j was cut at a token limit", (_server, finish_reason) => {
    expect(readBoth(reply({ content: "Os" }, { finish_reason }))).toMatchObject({ finish_reason: "length" });
  });

  test("Gemini: a reply that was cut before its first word is an empty answer", () => {
    expect(readBoth(reply({}, { finish_reason: "length" }))).toMatchObject({
      message: { content: "" },
      finish_reason: "length",
    });
  });

  test.each<[server: string, reason: unknown, word: string | undefined]>([
    ["llama.cpp", null, undefined],
    ["a proxy", "", undefined],
    ["Anthropic", "pause_turn", "pause_turn"],
    ["Databricks", { type: "halted", token: 3 }, "halted"],
    ["a proxy", 7, "7"],
  ])("%s: a whole answer that ends with %j counts, and the word is kept", (_server, finish_reason, word) => {
    const { finish_word, ...response } = readBoth(reply({ content: "Oslo" }, { finish_reason }));
    expect(response).toMatchObject({ message: { content: "Oslo" }, finish_reason: null });
    expect(finish_word).toBe(word);
  });

  test.each<[server: string, reason: string, meant: string]>([
    ["Anthropic", "end_turn", "stop"],
    ["TGI", "eos_token", "stop"],
    ["Gemini", "STOP", "stop"],
    ["Anthropic", "tool_use", "tool_calls"],
    ["OpenAI before 2023-11", "function_call", "tool_calls"],
  ])("%s: %s means %s", (_server, finish_reason, meant) => {
    expect(readBoth(reply({ content: "Oslo" }, { finish_reason })).finish_reason).toBe(meant);
  });
});

describe("tool calls", () => {
  const call = (args: unknown, more: Members = {}): Members => ({
    id: "call_1",
    type: "function",
    function: { name: "sum", arguments: args },
    ...more,
  });
  const callsOf = (...calls: Members[]) =>
    readBoth(reply({ content: null, tool_calls: calls })).message.tool_calls ?? [];

  test.each<[server: string, args: unknown, text: string]>([
    ["Ollama: an object", { a: 2, b: [3] }, '{"a":2,"b":[3]}'],
    ["TGI: an object with an object", { a: { b: null } }, '{"a":{"b":null}}'],
    ["llama.cpp: an empty object", {}, "{}"],
    ["Claude behind a proxy: an empty text", "", "{}"],
    ["GLM: white space", " \n", "{}"],
    ["Gemini: null", null, "{}"],
    ["a proxy: null as a text", "null", "{}"],
    ["OpenAI: a text", '{"a": 2}', '{"a": 2}'],
  ])("%s as arguments", (_server, args, text) => {
    expect(callsOf(call(args)).map(({ function: called }) => called.arguments)).toEqual([text]);
  });

  test("D20: arguments that are an object are accepted, missing ones are empty, and each call has an id", () => {
    const calls = callsOf({ function: { name: "a", arguments: { n: 1 } } }, { id: "", function: { name: "b" } });
    expect(calls.map(({ function: called }) => called.arguments)).toEqual(['{"n":1}', "{}"]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  });

  test("missing arguments are empty", () => {
    expect(callsOf({ id: "a", type: "function", function: { name: "hour" } })).toEqual([
      { id: "a", type: "function", function: { name: "hour", arguments: "{}" } },
    ]);
  });

  test("whole numbers in arguments that are an object keep their digits", () => {
    const text =
      '{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n":9007199254740993,"m":[-12345678901234567890123]}}}]}}]}';
    expect(read(text).message.tool_calls?.[0]?.function.arguments).toBe(
      '{"n":9007199254740993,"m":[-12345678901234567890123]}',
    );
  });

  test.each<[server: string, ids: readonly unknown[]]>([
    ["Gemini: empty ids", ["", ""]],
    ["Ollama: none", [undefined, undefined]],
    ["a proxy: nulls", [null, null]],
    ["Kimi: the same twice", ["functions.sum:0", "functions.sum:0"]],
    ["a proxy: one of two", ["a", ""]],
    ["Mistral: null as a text", ["null", "null"]],
  ])("%s: each call gets its own id", (_server, ids) => {
    const wire = ids.map((id, at) => ({ ...call(`{"a":${at}}`), id }));
    const { tool_calls = [] } = read(JSON.stringify(reply({ content: null, tool_calls: wire }))).message;
    expect(tool_calls.map(({ function: called }) => called.arguments)).toEqual(['{"a":0}', '{"a":1}']);
    expect(new Set(tool_calls.map(({ id }) => id)).size).toBe(2);
    expect(tool_calls.every(({ id }) => id !== "")).toBe(true);
  });

  test("an id already used in an earlier turn is replaced by one that Mistral also accepts", () => {
    const body = JSON.parse(JSON.stringify(reply({ content: null, tool_calls: [call("{}")] })));
    const { tool_calls = [] } = readChatCompletion(body, 1, new Set(["call_1"])).message;
    expect(tool_calls.map(({ id }) => id)).toEqual([expect.stringMatching(/^[a-zA-Z0-9]{9}$/)]);
    expect(readChatCompletion(body, 1).message.tool_calls?.[0]?.id).toBe("call_1");
  });

  test("the function call of OpenAI's first API is a tool call", () => {
    const { tool_calls } = read(
      JSON.stringify(reply({ content: null, function_call: { name: "sum", arguments: "{}" } })),
    ).message;
    expect(tool_calls).toMatchObject([{ function: { name: "sum", arguments: "{}" } }]);
  });

  test("a flat call is a tool call", () => {
    expect(callsOf({ id: "a", name: "sum", arguments: { a: 1 } })).toMatchObject([
      { id: "a", function: { name: "sum", arguments: '{"a":1}' } },
    ]);
  });
});

describe("members that go back to the server are kept", () => {
  const fieldsOf = (message: Members) =>
    JSON.parse(readBoth(reply({ content: "Oslo", ...message })).message.provider_fields ?? "null");

  test.each<[server: string, message: Members]>([
    [
      "OpenRouter",
      { reasoning: "so", reasoning_details: [{ type: "reasoning.encrypted", data: "b64", id: "r", index: 0 }] },
    ],
    ["Anthropic", { thinking_blocks: [{ type: "thinking", thinking: "so", signature: "s" }] }],
    ["OpenAI", { annotations: [{ type: "url_citation", url_citation: { url: "https://a.example" } }] }],
    ["a proxy", { reasoning: { effort: "high", steps: [1, 2] }, cache: null, seen: true }],
  ])("%s: members of a message", (_server, message) => {
    expect(fieldsOf(message)).toEqual(message);
  });

  test.each<[server: string, more: Members]>([
    ["Gemini", { extra_content: { google: { thought_signature: "c2ln" } } }],
    ["a proxy", { index: 0, provider: { name: "x" } }],
  ])("%s: members of a tool call", (_server, more) => {
    const wire = { id: "a", type: "function", function: { name: "sum", arguments: "{}", parsed: { n: 1 } }, ...more };
    const [called] = readBoth(reply({ content: null, tool_calls: [wire] })).message.tool_calls ?? [];
    const { index: _, ...kept } = more;
    expect(JSON.parse(called?.provider_fields ?? "null")).toEqual({ ...kept, function: { parsed: { n: 1 } } });
  });

  test("a single text of thoughts is kept once, under its member's name", () => {
    const { message } = readBoth(reply({ content: "Oslo", reasoning: "so" }));
    expect(message).toEqual({
      role: "assistant",
      content: "Oslo",
      reasoning_content: "so",
      reasoning_name: "reasoning",
    });
  });

  test("whole numbers keep their digits", () => {
    const text = '{"choices":[{"message":{"content":"4","trace":{"n":12345678901234567890}}}]}';
    expect(read(text).message.provider_fields).toBe('{"trace":{"n":12345678901234567890}}');
    expect(read(`data: ${text.replace("message", "delta")}\n\ndata: [DONE]\n\n`).message.provider_fields).toBe(
      '{"trace":{"n":12345678901234567890}}',
    );
  });

  test("members that make a reply too long are left out, and arguments that do make it unusable", () => {
    const long = "x".repeat(3 * 1024 * 1024);
    const text = JSON.stringify(reply({ content: "4", a: long, b: long, c: 1 }));
    expect(read(text).message).toEqual({ role: "assistant", content: "4" });
    const call = { id: "a", function: { name: "f", arguments: long + long } };
    expect(() => read(JSON.stringify(reply({ content: null, tool_calls: [call] })))).toThrow("longer than");
  });

  test("a member that is too large, too deeply nested or has an invalid name is left out, and the answer counts", () => {
    const deep = `${"[".repeat(500)}${"]".repeat(500)}`;
    const text = `{"choices":[{"message":{"content":"4","deep":${deep},"many":[${"1,".repeat(20_000)}1],"__proto__":{"a":1},"kept":1}}]}`;
    expect(read(text).message).toEqual({ role: "assistant", content: "4", provider_fields: '{"kept":1}' });
  });
});

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("nothing was thrown");
}
