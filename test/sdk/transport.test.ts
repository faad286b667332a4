import { expect, test } from "vitest";
import { ApiRequestError } from "../../src/sdk/client.ts";
import { type Answer, recorded, refusal } from "./recording-fetch.ts";

const REQUEST = { environment: "e", model: "m", endpoint: "qwen" };
const broken = () => {
  throw new TypeError("fetch failed");
};
const run = () => Response.json({ id: "run_1" });
/** The first attempts have the listed outcomes, every later one succeeds. */
const first =
  (...answers: Answer[]): Answer =>
  (asked, index) =>
    (answers[index] ?? run)(asked, index);

test.each<[string, Answer]>([
  ["a connection that breaks", broken],
  ["429", () => refusal(429, "rate_limited")],
  ["502 from a proxy", () => new Response("<h1>bad gateway</h1>", { status: 502 })],
  ["503", () => new Response(null, { status: 503 })],
  ["504", () => new Response(null, { status: 504 })],
  ["something under way", () => refusal(409, "in_progress")],
  [
    "a body that is cut short",
    () => new Response(new ReadableStream({ pull: (to) => to.error(new TypeError("terminated")) })),
  ],
])("after %s a call is sent again", async (_what, answer) => {
  const { client, asked, waits } = recorded(first(answer));
  expect(await client.runs.get("run_1")).toEqual({ id: "run_1" });
  expect(asked.length).toBe(2);
  expect(waits).toEqual([250]);
});

test.each([
  [400, "invalid_request"],
  [401, "unauthorized"],
  [404, "not_found"],
  [409, "conflict"],
  [422, "idempotency_conflict"],
  [500, "internal"],
])("after %i %s it is not", async (status, code) => {
  const { client, asked } = recorded(() => refusal(status, code));
  await expect(client.runs.get("run_1")).rejects.toMatchObject({ status, code });
  expect(asked.length).toBe(1);
});

test.each(["<h1>hello</h1>\n", ""])("a reply that is not JSON (%j) is unreadable", async (text) => {
  const { client, asked } = recorded(() => new Response(text));
  await expect(client.runs.get("run_1")).rejects.toMatchObject({ status: 200, code: "unreadable" });
  expect(asked.length).toBe(1);
});

test("a line of results that is not JSON is unreadable", async () => {
  const { client } = recorded(() => new Response("<h1>hello</h1>\n"));
  await expect(client.runs.results("run_1").next()).rejects.toMatchObject({ code: "unreadable" });
});

test("waits double, have a random part, and end with the error of the last attempt", async () => {
  const options = { maxRetries: 6, random: () => 0.5 };
  const { client, asked, waits } = recorded(() => refusal(503, "internal"), options);
  await expect(client.runs.get("run_1")).rejects.toMatchObject({ status: 503 });
  expect(waits).toEqual([375, 750, 1500, 3000, 6000, 6000]);
  expect(asked.length).toBe(7);
});

test("a client without retries does not retry", async () => {
  const { client, asked } = recorded(broken, { maxRetries: 0 });
  await expect(client.runs.get("run_1")).rejects.toThrow("fetch failed");
  expect(asked.length).toBe(1);
});

test("the server's requested wait is used, in seconds or as a date", async () => {
  const inTwoMinutes = new Date(Date.now() + 120_000).toUTCString();
  const soon = recorded(first(() => refusal(429, "rate_limited", { "retry-after": "7" })));
  await soon.client.runs.get("run_1");
  expect(soon.waits).toEqual([7000]);
  const past = recorded(first(() => refusal(503, "internal", { "retry-after": new Date(0).toUTCString() })));
  await past.client.runs.get("run_1");
  expect(past.waits).toEqual([0]);
  const late = recorded(() => refusal(429, "rate_limited", { "retry-after": inTwoMinutes }));
  const thrown: unknown = await late.client.runs.get("run_1").catch((error: unknown) => error);
  expect(late.waits).toEqual([]);
  if (!(thrown instanceof ApiRequestError)) throw thrown;
  expect(thrown.retryAfterMs).toBeGreaterThan(60_000);
});

test("a POST is sent again with the same key and the same body", async () => {
  const { client, asked } = recorded(first(broken, () => refusal(503, "internal")));
  await client.runs.create(REQUEST);
  const keys = asked.map(({ headers }) => headers.get("idempotency-key"));
  expect(keys).toEqual(Array(3).fill(expect.stringMatching(/^[\w-]{36}$/)));
  expect(new Set(keys).size).toBe(1);
  expect(new Set(asked.map(({ body }) => body))).toEqual(new Set([JSON.stringify(REQUEST)]));
});

test("a small upload is sent again, also from a stream", async () => {
  async function* rows() {
    yield { question: "?" };
  }
  for (const source of [rows(), '{"question":"?"}\n']) {
    const { client, asked } = recorded(first(broken));
    await client.datasets.upload(source);
    const sent = await Promise.all(asked.map(({ body }) => new Response(body).text()));
    expect(sent).toEqual(Array(2).fill('{"question":"?"}\n'));
  }
});

test("a silent platform ends the call with a TimeoutError, after retries", async () => {
  const silent: Answer = ({ signal }) =>
    new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  const { client, asked } = recorded(silent, { maxRetries: 1 });
  const call = client.runs.get("run_1", { timeoutMs: 1 });
  await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
  expect(asked.length).toBe(2);
});

test("the caller's signal ends a running call, and the wait before the next attempt", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const open = recorded(({ signal: given }) => {
    controller.abort(new Error("enough"));
    given?.throwIfAborted();
    return run();
  });
  await expect(open.client.runs.get("run_1", { signal })).rejects.toThrow("enough");
  expect(open.asked.length).toBe(1);
  const later = new AbortController();
  const waiting = recorded(broken, {
    pause: async (_ms, given) => {
      later.abort(new Error("no more"));
      given?.throwIfAborted();
    },
  });
  await expect(waiting.client.runs.get("r", { signal: later.signal })).rejects.toThrow("no more");
  expect(waiting.asked.length).toBe(1);
});

test("an error has the request's id, for questions to the operator", async () => {
  const { client } = recorded(() => refusal(404, "not_found", { "x-request-id": "ci-42" }));
  await expect(client.runs.get("run_1")).rejects.toMatchObject({ requestId: "ci-42" });
});
