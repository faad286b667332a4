/** Streamed and silent replies, with a clock that the tests advance, and with Cloudflare's proxy on the way. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type CallOutcome, callModel } from "../../../src/kernel/clients/inference.ts";
import type { Send } from "../../../src/kernel/clients/outgoing.ts";
import { silenceLimitOf } from "../../../src/kernel/endpoint/outgoing.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Cloudflare's proxy answers 524 if a server sent no headers for this long, and closes a body without bytes. */
const PROXY_MS = 125_000;
const SECOND_MS = 1000;

const chunk = (delta: object, more: object = {}) => {
  const choice = { index: 0, delta, finish_reason: null, ...more };
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [choice] })}\n\n`;
};
const END = `${chunk({}, { finish_reason: "stop" })}data: [DONE]\n\n`;

/** What a server sends, and after how many seconds each: first its headers (""), then pieces of its body. */
type Script = readonly (readonly [afterS: number, piece: string])[];

/** A server behind Cloudflare's proxy. */
function behindProxy(script: Script): Send {
  return (_, { signal }) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    let proxy = setTimeout(() => resolve(new Response("error code: 524", { status: 524 })), PROXY_MS);
    signal.addEventListener("abort", () => reject(signal.reason));
    const play = async () => {
      for (const [afterS, piece] of script) {
        await new Promise((wake) => setTimeout(wake, afterS * SECOND_MS));
        clearTimeout(proxy);
        proxy = setTimeout(() => void writer.abort(new Error("the proxy closed it")), PROXY_MS);
        if (piece === "") resolve(new Response(readable, { headers: { "content-type": "text/event-stream" } }));
        else writer.write(new TextEncoder().encode(piece)).catch(() => undefined);
      }
      clearTimeout(proxy);
    };
    void play();
    return promise;
  };
}

/** The outcome of a call after so many seconds; "waiting" if there is none yet. */
async function outcomeAfter(script: Script, seconds: number, silenceS = 100): Promise<CallOutcome | "waiting"> {
  const { signal } = new AbortController();
  const where = { base_url: "https://m.example/v1", api_key: null, idempotency_key: "k", signal };
  const call = { ...where, model: "m", messages: [], tools: [], sampling: {}, send: behindProxy(script) };
  let outcome: CallOutcome | "waiting" = "waiting";
  void callModel({ ...call, silence_ms: silenceS * SECOND_MS }).then((came) => {
    outcome = came;
  });
  await vi.advanceTimersByTimeAsync(seconds * SECOND_MS);
  return outcome;
}

test("a model that streams for 300 s is answered, with all that it sent", async () => {
  const pieces = Array.from({ length: 30 }, (_, at): [number, string] => [10, chunk({ content: `${at} ` })]);
  const outcome = await outcomeAfter([[1, ""], ...pieces, [1, END]], 310);
  const content = pieces.map((_, at) => `${at} `).join("");
  expect(outcome).toMatchObject({ kind: "answered", response: { message: { content }, finish_reason: "stop" } });
});

test("a model that is silent for 90 s before and within its reply is answered", async () => {
  const outcome = await outcomeAfter(
    [
      [90, ""],
      [90, chunk({ content: "4" })],
      [90, chunk({ content: "2" })],
      [90, END],
    ],
    361,
  );
  expect(outcome).toMatchObject({ kind: "answered", response: { message: { content: "42" } } });
});

test.each<[when: string, script: Script]>([
  ["before its headers", [[150, ""]]],
  ["before its first token", [[1, ""]]],
  [
    "within its reply",
    [
      [1, ""],
      [1, chunk({ content: "4" })],
    ],
  ],
])(
  "a model that is silent for longer than the limit %s is a lost call, and the error names the limit",
  async (_, script) => {
    expect(await outcomeAfter(script, 99)).toBe("waiting");
    vi.clearAllTimers();
    const outcome = await outcomeAfter(script, 110);
    expect(outcome).toMatchObject({ kind: "failed", lost: true, late: true, retryable: true });
    const { error } = outcome as Extract<CallOutcome, { kind: "failed" }>;
    expect(error.message).toBe("the endpoint sent nothing for 100 s, its limit (silence_limit_s)");
  },
);

test("a limit above the proxy's ends as the proxy ends it: with 524, or a broken stream, and never with an answer", async () => {
  const refused = await outcomeAfter([[300, ""]], 126, 600);
  expect(refused).toMatchObject({ kind: "failed", status: 524, lost: true, late: true });
  const begun: Script = [
    [1, ""],
    [1, chunk({ content: "4" })],
    [300, END],
  ];
  const broken = await outcomeAfter(begun, 130, 600);
  expect(broken).toMatchObject({ kind: "failed", lost: true, retryable: true });
});

test("a reply is complete at its end mark, even if the server leaves the connection open", async () => {
  const outcome = await outcomeAfter(
    [
      [1, ""],
      [1, chunk({ content: "4" })],
      [1, END],
      [60, ": keep-alive\n\n"],
    ],
    4,
  );
  expect(outcome).toMatchObject({ kind: "answered", response: { message: { content: "4" } } });
});

test("a refusal whose body does not come is lost after the same time", async () => {
  const { signal } = new AbortController();
  const send: Send = async () => new Response(new ReadableStream(), { status: 500 });
  const where = { base_url: "https://m.example/v1", api_key: null, idempotency_key: "k", signal, send };
  const calling = callModel({
    ...where,
    model: "m",
    messages: [],
    tools: [],
    sampling: {},
    silence_ms: 100 * SECOND_MS,
  });
  await vi.advanceTimersByTimeAsync(101 * SECOND_MS);
  expect(await calling).toMatchObject({ kind: "failed", lost: true, late: true });
});

test.each([
  [100, 100],
  ["600", 600],
  [undefined, 100],
  ["", 100],
  [0, 100],
  ["off", 100],
  [1e9, 3600],
])("with SILENCE_LIMIT_S %j the limit is %i s", (SILENCE_LIMIT_S, seconds) => {
  expect(silenceLimitOf({ SILENCE_LIMIT_S })).toBe(seconds * SECOND_MS);
});
