import { expect, test, vi } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Messages } from "../../../src/contract/messages.ts";
import { callEmbeddings, callModel } from "../../../src/kernel/clients/inference.ts";
import { type ModelRequest, startScriptedModel } from "../../fakes/scripted-model.ts";

test("R-loop-12: content is sent unchanged, the role text as user, and null or empty members are left out", async () => {
  const asked: ModelRequest[] = [];
  const model = await startScriptedModel({
    reply: (request) => {
      asked.push(request);
      return "ok";
    },
  });
  const parts = [
    { type: "text", text: "look" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0K" } },
  ];
  const messages: Messages = [
    { role: "user", content: parts },
    { role: "text", content: "go on" },
    { role: "tool", content: [], tool_call_id: "a" },
  ];
  const call = { api_key: null, model: "m", tools: [], idempotency_key: "k", messages };
  const sampling = { temperature: null, top_p: 0.5, extra_body: { min_tokens: 1, guided: null } };
  const { signal } = new AbortController();
  try {
    const outcome = await callModel({ ...call, base_url: model.url, sampling, signal });
    expect(outcome.kind).toBe("answered");
  } finally {
    await model.stop();
  }
  expect(asked[0]?.body).toEqual({
    model: "m",
    messages: [
      { role: "user", content: parts },
      { role: "user", content: "go on" },
      { role: "tool", content: "", tool_call_id: "a" },
    ],
    top_p: 0.5,
    min_tokens: 1,
    guided: null,
    stream: true,
    stream_options: { include_usage: true },
  });
});

const KEY = "rk_abc1234567890-wxyz";

test.each([
  ["<html>\n  <title>Just a moment...</title>", ": <html> <title>Just a moment...</title>"],
  [`you sent Bearer ${KEY}`, ": you sent Bearer [key]"],
  [`{"a": ${KEY}`, ': {"a": [key]'],
  // The key's base64 shares its first and last characters with its neighbours.
  [`<${btoa(`Bearer ${KEY}`)}>`, ": <QmVhcmVyIH[key]g==>"],
  [`<${btoa(`Bearer ${KEY}`)}>`.slice(0, 30), ": <QmVhcmVyIH[key]"],
  [KEY.slice(0, 12), ": [key]"],
  [`${"x".repeat(195)} ${KEY}`, `: ${"x".repeat(195)} [key`],
  [`${"x ".repeat(480)}${"y".repeat(30)}${KEY}`, `: ${"x ".repeat(100)}`],
  [`${btoa(KEY).slice(0, 16)}\n${btoa(KEY).slice(16)}`, ""],
  ["<p>\\u0072k_abc1234567890-wxyz</p>", ""],
  ["<p>rk_abc1234567890&#45;wxyz</p>", ""],
  ["<p>rk_abc1234567890&dash;wxyz</p>", ""],
  [[...KEY].join("\0"), ""],
  ["", ""],
])("a body that is not JSON is quoted without the key, or not at all: %j", async (text, quote) => {
  const model = await startScriptedModel({ reply: () => ({ fault: { kind: "garbage", text } }) });
  const { signal } = new AbortController();
  const call = { model: "m", messages: [], tools: [], sampling: {}, idempotency_key: "k" };
  try {
    const outcome = await callModel({ ...call, base_url: model.url, api_key: KEY, signal });
    const message = `the reply is not JSON: status 200, application/json, ${text.length} characters${quote}`;
    expect(outcome).toMatchObject({
      kind: "failed",
      retryable: true,
      error: { name: "InvalidModelResponseError", message },
    });
  } finally {
    await model.stop();
  }
});

test("extra_body cannot change the model or the messages of a call, in any spelling", async () => {
  const asked: string[] = [];
  const send = async (_: URL, { body }: RequestInit) => {
    asked.push(String(body));
    return new Response("{}", { status: 400 });
  };
  const { signal } = new AbortController();
  const where = { base_url: "https://m.example/v1", api_key: null, idempotency_key: "k", signal, send };
  const extra_body = { model: "dear", Model: "dear", messages: [], input: "x", stream: true, dimensions: 2 };
  await callModel({ ...where, model: "cheap", messages: [], tools: [], sampling: { extra_body } });
  await callEmbeddings({ ...where, model: "cheap", texts: ["a", "b"], extra_body });
  expect(asked.map((body) => JSON.parse(body))).toEqual([
    { model: "cheap", messages: [], dimensions: 2, stream: true, stream_options: { include_usage: true } },
    { model: "cheap", input: ["a", "b"], dimensions: 2, encoding_format: "float" },
  ]);
});

const CHUNK = {
  ...{ id: "c", object: "chat.completion.chunk", created: 0, model: "m" },
  choices: [{ index: 0, delta: { role: "assistant", content: "4" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

test.each([
  [6000, 1000, true],
  [6000, 7000, false],
  [4000, 1000, false],
])(
  "a stream with headers after %i ms and its end %i ms later counts as a whole reply: %s",
  async (waits, lasts, whole) => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);
    try {
      const send = async () => {
        pass(waits);
        const [first, rest] = ["data: ", `${JSON.stringify(CHUNK)}\n\ndata: [DONE]\n\n`];
        const body = new ReadableStream(
          {
            start: (to) => to.enqueue(new TextEncoder().encode(first)),
            pull: (to) => {
              pass(lasts);
              to.enqueue(new TextEncoder().encode(rest));
              to.close();
            },
          },
          { highWaterMark: 0 },
        );
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      };
      const { signal } = new AbortController();
      const where = { base_url: "https://m.example/v1", api_key: null, idempotency_key: "k", signal, send };
      const outcome = await callModel({ ...where, model: "m", messages: [], tools: [], sampling: {} });
      expect(outcome).toMatchObject({ kind: "answered" });
      expect("whole" in outcome).toBe(whole);
    } finally {
      vi.useRealTimers();
    }
  },
);

test("a whole reply is parsed only when its turn comes, and the turn is requested with its length", async () => {
  const model = await startScriptedModel({ reply: () => "x".repeat(100_000) });
  const { signal } = new AbortController();
  const call = { api_key: null, model: "m", messages: [], tools: [], sampling: {}, idempotency_key: "k", signal };
  const refuses = ["streams"];
  const asked = Promise.withResolvers<number>();
  const turn = Promise.withResolvers<void>();
  let left = 0;
  const openReservation = () => ({
    grow: () => null,
    turn: (characters: number) => {
      asked.resolve(characters);
      return turn.promise;
    },
    isWaiting: () => false,
    most: LIMITS.streamedCharacters,
    leave: () => {
      left += 1;
    },
  });
  try {
    let answered = false;
    const calling = callModel({ ...call, refuses, base_url: model.url, openReservation }).finally(() => {
      answered = true;
    });
    expect(await asked.promise).toBeGreaterThan(100_000);
    expect([answered, left]).toEqual([false, 0]);
    turn.resolve();
    expect((await calling).kind).toBe("answered");
    expect(left).toBe(1);
  } finally {
    await model.stop();
  }
});

/** The outcome of a call whose server sends this with status 200. */
async function outcomeOf(text: string, type: string) {
  const send = async () => new Response(text, { headers: { "content-type": type } });
  const where = { base_url: "https://m.example/v1", api_key: null, idempotency_key: "k", send };
  const { signal } = new AbortController();
  return await callModel({ ...where, model: "m", messages: [], tools: [], sampling: {}, signal });
}
const chunk = (choice: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, ...choice }] })}\n\n`;
const STOP = chunk({ finish_reason: "stop" });

test("the limit of a stream holds for streams, and that of whole replies for others, whatever the content type is", async () => {
  const word = `data: ${JSON.stringify({ id: "x".repeat(1000), choices: [{ index: 0, delta: { content: "word " } }] })}\n\n`;
  const stream = word.repeat(LIMITS.completionBytes / 1000 + 1) + STOP;
  expect(stream.length).toBeGreaterThan(LIMITS.completionBytes);
  expect((await outcomeOf(stream, "application/json")).kind).toBe("answered");
  const whole = JSON.stringify({ choices: [{ message: { content: "x".repeat(LIMITS.completionBytes) } }] });
  const error = { message: `the reply is more than ${LIMITS.completionBytes} bytes` };
  expect(await outcomeOf(whole, "text/event-stream")).toMatchObject({ kind: "failed", error });
});

test("a stream of millions of small values is refused before they fill the memory", async () => {
  const values = chunk({ logprobs: { content: Array.from({ length: 100_000 }, () => ({})) } });
  const outcome = await outcomeOf(values.repeat(40) + STOP, "text/event-stream");
  expect(outcome).toMatchObject({ kind: "failed", error: { message: "the reply needs too much memory" } });
});
