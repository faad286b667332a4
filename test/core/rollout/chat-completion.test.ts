import { expect, test } from "vitest";
import {
  EmptyModelResponseError,
  InvalidModelResponseError,
  PolicyRefusalError,
} from "../../../src/contract/errors.ts";
import { readChatCompletion } from "../../../src/core/rollout/chat-completion.ts";

function completion(message: object, more: { choice?: object; top?: object } = {}): unknown {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    model: "m",
    choices: [{ index: 0, finish_reason: "stop", message, ...more.choice }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    ...more.top,
  };
}
const read = (body: unknown) => readChatCompletion(body, 7);

test("an OpenAI completion is read with its usage, and without ids", () => {
  expect(read(completion({ role: "assistant", content: "hi" }))).toEqual({
    id: "chatcmpl-1",
    model: "m",
    message: { role: "assistant", content: "hi" },
    finish_reason: "stop",
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    prompt_ids: null,
    completion_ids: null,
    completion_logprobs: null,
    policy_version: null,
    latency_ms: 7,
  });
});

test("vLLM's token ids, logprobs and weight version are kept as they were sent", () => {
  const body = completion(
    { content: "hi" },
    {
      choice: { token_ids: [5, 6], logprobs: { content: [{ logprob: -0.5 }, { logprob: -9999 }] } },
      top: { prompt_token_ids: [1, 2, 3], weight_version: 12 },
    },
  );
  expect(read(body)).toMatchObject({
    prompt_ids: [1, 2, 3],
    completion_ids: [5, 6],
    completion_logprobs: [-0.5, -9999],
    policy_version: "12",
  });
});

test("R-oai: reasoning, refusals and tool calls alone are replies", () => {
  expect(read(completion({ content: null, reasoning: "so" })).message).toEqual({
    role: "assistant",
    content: null,
    reasoning_content: "so",
    reasoning_name: "reasoning",
  });
  expect(read(completion({ content: null, refusal: "no" })).message.content).toBe("no");
  const call = { id: "b", function: { name: "add", arguments: "{}" } };
  expect(read(completion({ content: null, tool_calls: [call] })).message.tool_calls).toEqual([
    { id: "b", type: "function", function: { name: "add", arguments: "{}" } },
  ]);
});

test("R-oai: a reply whose only call is of another kind of tool is not empty, though the call is dropped", () => {
  const call = { id: "a", type: "custom", custom: { name: "add", input: "1" } };
  expect(read(completion({ content: null, tool_calls: [call] })).message).toEqual({
    role: "assistant",
    content: null,
  });
  const good = { id: "b", function: { name: "add", arguments: "{}" } };
  const both = read(completion({ content: null, tool_calls: [call, good] })).message;
  expect(both.tool_calls?.map(({ id }) => id)).toEqual(["b"]);
});

test("R-oai: white space is a reply; an empty reply is an error, unless reasoning tokens were billed", () => {
  expect(read(completion({ content: " " })).message.content).toBe(" ");
  expect(() => read(completion({ content: "" }))).toThrow(EmptyModelResponseError);
  const billed = { usage: { completion_tokens_details: { reasoning_tokens: 9 } } };
  expect(read(completion({ content: "" }, { top: billed })).message.content).toBe("");
});

test("a reply of only an end token counts if the engine lists its tokens", () => {
  const ended = (content: "" | null, ids: readonly number[]) => completion({ content }, { choice: { token_ids: ids } });
  expect(read(ended("", [3]))).toMatchObject({ message: { content: "" }, completion_ids: [3] });
  expect(read(ended(null, [3])).message.content).toBe("");
  expect(() => read(ended("", []))).toThrow(EmptyModelResponseError);
});

test.for([
  ["no choices", { choices: [] }, EmptyModelResponseError],
  ["choices missing", {}, EmptyModelResponseError],
  ["two choices", { choices: [{ message: { content: "a" } }, { message: { content: "b" } }] }],
  ["a text", "garbage"],
  ["a message that is none", { choices: [{ message: 5 }] }],
] as const)("R-oai: %s is an unusable reply, and retryable", ([, body, error]) => {
  const thrown = caught(() => read(body));
  expect(thrown).toBeInstanceOf(error ?? InvalidModelResponseError);
  expect(thrown).toMatchObject({ retryable: true });
});

test("a reply stopped by a content policy is a failure that is not retryable, and missing usage is null", () => {
  const filtered = completion({ content: "x" }, { choice: { finish_reason: "content_filter" } });
  const thrown = caught(() => read(filtered));
  expect(thrown).toBeInstanceOf(PolicyRefusalError);
  expect(thrown).toMatchObject({ retryable: false });
  expect(read(completion({ content: "x" }, { top: { usage: null } })).usage).toBeNull();
});

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("nothing was thrown");
}

test("R-oai: the first reasoning field with a value counts", () => {
  const reasoningOf = (message: object) => read(completion({ content: "x", ...message })).message.reasoning_content;
  const details = [{ type: "reasoning.text", text: "so" }, { summary: " it is" }, { data: "…" }];
  expect(reasoningOf({ reasoning: "a", reasoning_content: "b" })).toBe("a");
  expect(reasoningOf({ reasoning: "", reasoning_content: "b" })).toBe("b");
  expect(reasoningOf({ reasoning: null, reasoning_details: details })).toBe("so it is");
  expect(reasoningOf({ reasoning_details: "so" })).toBe("so");
  expect(reasoningOf({ reasoning_details: [] })).toBeUndefined();
});

test("R-usage: usage is read in both spellings; a missing total is computed, and it is null without both counts", () => {
  const usageOf = (usage: object) => read(completion({ content: "x" }, { top: { usage } })).usage;
  const counted = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  expect(usageOf({ input_tokens: 3, output_tokens: 2 })).toEqual(counted);
  expect(usageOf({ prompt_tokens: 3, completion_tokens: 2 })).toEqual(counted);
  for (const half of [{}, { total_tokens: 5000 }, { prompt_tokens: 3 }, { output_tokens: 2 }]) {
    expect(usageOf(half)).toBeNull();
  }
  expect(usageOf({ prompt_tokens: -1, completion_tokens: 2 })).toBeNull();
});

test("a reply in parts is kept as it is, and empty parts are an empty reply", () => {
  const content = [
    { type: "thinking", thinking: "so" },
    { type: "text", text: "hi" },
  ];
  expect(read(completion({ content })).message).toEqual({ role: "assistant", content });
  expect(() => read(completion({ content: [] }))).toThrow(EmptyModelResponseError);
  expect(() => read(completion({ content: [{ type: "text" }] }))).toThrow(InvalidModelResponseError);
});

const MANY = 300_000;

/** Replies of about 1 MB: each once took seconds, and hundreds of MB for the issues of its items. */
const CROWDED: Record<string, readonly [reply: (items: unknown[]) => object, error: RegExp | null]> = {
  choices: [(choices) => ({ choices }), /choices: is not a list of at most 128/],
  "tool calls": [
    (tool_calls) => ({ choices: [{ message: { content: null, tool_calls } }] }),
    /tool_calls: is not a list of at most 128/,
  ],
  parts: [(content) => ({ choices: [{ message: { content } }] }), /content: holds more than 10000 values/],
  "parts within parts": [
    (item) => ({ choices: [{ message: { content: [{ type: "x", item }] } }] }),
    /content: holds more than 10000 values/,
  ],
  "reasoning details": [(reasoning_details) => ({ choices: [{ message: { content: "4", reasoning_details } }] }), null],
  "token ids": [(token_ids) => ({ choices: [{ message: { content: "4" }, token_ids }] }), null],
  logprobs: [(content) => ({ choices: [{ message: { content: "4" }, logprobs: { content } }] }), null],
};

for (const [what, [reply, error]] of Object.entries(CROWDED)) {
  const then = error === null ? "read without them" : "refused for their number";
  test(`a reply crowded with ${what} is ${then}, and only few of its items are examined`, () => {
    let looks = 0;
    const item = new Proxy(
      {},
      {
        get: () => {
          looks += 1;
          return undefined;
        },
      },
    );
    const body = reply(Array.from({ length: MANY }, () => item));
    if (error !== null) expect(() => readChatCompletion(body, 1)).toThrow(error);
    else expect(readChatCompletion(body, 1).message).toEqual({ role: "assistant", content: "4" });
    expect(looks).toBeLessThan(100_000);
  });
}

test.each([
  ["token_ids", [5, 2 ** 40 + 5]],
  ["token_ids", [-1]],
  ["prompt_token_ids", [2 ** 31]],
  ["prompt_token_ids", [1.5]],
])("impossible token ids are dropped, since 32 bits would turn them into other ids: %s %j", (name, ids) => {
  const body = { choices: [{ message: { content: "4" }, [name]: ids }] };
  expect(readChatCompletion(body, 1)).toMatchObject({
    message: { content: "4" },
    prompt_ids: null,
    completion_ids: null,
  });
});

test("the largest 32-bit id is kept", () => {
  const ids = [0, 2 ** 31 - 1];
  const { completion_ids } = readChatCompletion({ choices: [{ message: { content: "4" }, token_ids: ids }] }, 1);
  expect(completion_ids).toEqual(ids);
});

test("content that is nested too deeply is not content", () => {
  const nested = JSON.parse(`${"[".repeat(5000)}${"]".repeat(5000)}`);
  const body = { choices: [{ message: { content: [{ type: "x", nested }] } }] };
  expect(() => readChatCompletion(body, 1)).toThrow(/content: is nested too deeply/);
});

test("an impossible number of tokens is not a usage", () => {
  const usage = { prompt_tokens: Number.MAX_SAFE_INTEGER, completion_tokens: 1 };
  const body = { choices: [{ message: { content: "4" } }], usage };
  expect(readChatCompletion(body, 1).usage).toBeNull();
});
