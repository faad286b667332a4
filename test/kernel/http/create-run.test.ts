import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { Services } from "../../../src/kernel/service/services.ts";
import { RUN, RUN_REQUEST } from "./examples.ts";
import { openTestApi } from "./test-api.ts";

type Accepted = Parameters<Services["acceptRun"]>;

async function apiThatAccepts(replayed = false) {
  const calls: Accepted[] = [];
  const api = await openTestApi({
    acceptRun: async (...call) => {
      calls.push(call);
      return { ok: true, value: { run: RUN, replayed } };
    },
  });
  return { ...api, calls };
}

test("a run is accepted with 202, its location and its defaults filled in", async () => {
  const { post, calls, clock } = await apiThatAccepts();
  const reply = await post("/v1/runs", RUN_REQUEST);
  expect(reply.status).toBe(202);
  expect(reply.headers.get("location")).toBe(`/v1/runs/${RUN.id}`);
  expect(reply.headers.get("idempotent-replayed")).toBeNull();
  expect(await reply.json()).toEqual(RUN);
  const [, , request, options] = calls[0] ?? [];
  expect(request).toMatchObject({ num_examples: -1, limits: { max_retries: 2 }, seed: 7 });
  expect(options).toMatchObject({ idempotencyKey: null, now: clock.now });
});

test("a replay is marked as one", async () => {
  const { post } = await apiThatAccepts(true);
  const reply = await post("/v1/runs", RUN_REQUEST, { "idempotency-key": "k" });
  expect(reply.headers.get("idempotent-replayed")).toBe("true");
});

test("the hash of a request does not depend on the order of its fields, but on their values", async () => {
  const { post, calls } = await apiThatAccepts();
  const reversed = Object.fromEntries(Object.entries(RUN_REQUEST).reverse());
  for (const body of [RUN_REQUEST, reversed, { ...RUN_REQUEST, seed: 8 }]) {
    await post("/v1/runs", body, { "idempotency-key": "k" });
  }
  const [first, second, third] = calls.map(([, , , options]) => options.requestHash);
  expect(first).toMatch(/^[0-9a-f]{64}$/);
  expect(second).toBe(first);
  expect(third).not.toBe(first);
  expect(calls.map(([, , , options]) => options.idempotencyKey)).toEqual(["k", "k", "k"]);
});

test("an idempotency key of 255 characters is accepted, and the error for a longer one names its header", async () => {
  const { post } = await apiThatAccepts();
  const key = (length: number) => ({ "idempotency-key": "k".repeat(length) });
  expect((await post("/v1/runs", RUN_REQUEST, key(255))).status).toBe(202);
  const reply = await post("/v1/runs", RUN_REQUEST, key(256));
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { param: "Idempotency-Key" } });
});

const without = (name: string) => Object.fromEntries(Object.entries(RUN_REQUEST).filter(([key]) => key !== name));

test.each([
  ["a missing field", without("model"), "invalid_request", "model"],
  ["a field of the wrong type", { ...RUN_REQUEST, model: 3 }, "invalid_request", "model"],
  ["a negative count", { ...RUN_REQUEST, num_examples: -2 }, "invalid_request", "num_examples"],
  ["no rollouts", { ...RUN_REQUEST, rollouts_per_example: 0 }, "invalid_request", "rollouts_per_example"],
  ["an unknown field", { ...RUN_REQUEST, modell: "m" }, "unknown_field", "modell"],
  ["an unknown field inside", { ...RUN_REQUEST, sampling: { temprature: 1 } }, "unknown_field", "sampling.temprature"],
  ["a misspelt required field", { ...without("model"), modell: "m" }, "unknown_field", "modell"],
  ["a row that is no object", { ...RUN_REQUEST, dataset: [{}, 7] }, "invalid_request", "dataset[1]"],
  ["an endpoint that is neither a name nor an address", { ...RUN_REQUEST, endpoint: 5 }, "invalid_request", "endpoint"],
  [
    "a misspelt field of the endpoint",
    { ...RUN_REQUEST, endpoint: { base_url: "https://gpu.example/v1", apikey: "k" } },
    "unknown_field",
    "endpoint.apikey",
  ],
  [
    "a judge without a model",
    { ...RUN_REQUEST, judges: { default: { endpoint: "openai" } } },
    "invalid_request",
    "judges.default.model",
  ],
  [
    "an address that is none",
    { ...RUN_REQUEST, endpoint: { base_url: "gpu" } },
    "invalid_request",
    "endpoint.base_url",
  ],
  [
    "an address that is no web address",
    { ...RUN_REQUEST, endpoint: { base_url: "file:///etc" } },
    "invalid_request",
    "endpoint.base_url",
  ],
  ["metadata that is not text", { ...RUN_REQUEST, metadata: { sha: 1 } }, "invalid_request", "metadata.sha"],
  ["a body that is a list", [], "invalid_request", null],
])("%s is refused by name and nothing is accepted", async (_what, body, code, param) => {
  const { post, calls, reported } = await apiThatAccepts();
  const reply = await post("/v1/runs", body);
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { code, param } });
  expect(calls).toEqual([]);
  expect(reported).toEqual([]);
});

test("the error for a value that fits no branch of a field says what the field accepts", async () => {
  const { post } = await apiThatAccepts();
  const reply = await post("/v1/runs", { ...RUN_REQUEST, endpoint: 5 });
  expect(await reply.json()).toMatchObject({
    error: { message: "endpoint: must be one of: string, object" },
  });
});

test("the error for a missing field says that it is required", async () => {
  const { post } = await apiThatAccepts();
  const reply = await post("/v1/runs", without("model"));
  expect(await reply.json()).toMatchObject({ error: { message: "model: is required" } });
});

test("malformed JSON is refused with the position of the fault", async () => {
  const { post } = await apiThatAccepts();
  const reply = await post("/v1/runs", '{\n  "model": "m"\n  "seed": 1\n}');
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({
    error: {
      code: "invalid_request",
      param: null,
      message: expect.stringContaining("line 3 column 3"),
    },
  });
});

test("bytes that are not UTF-8 are refused instead of being read as something else", async () => {
  const { ask, calls } = await apiThatAccepts();
  const reply = await ask("/v1/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: new Uint8Array([0x22, 0xff, 0x22]),
  });
  expect(reply.status).toBe(400);
  expect(calls).toEqual([]);
});

test("a body with another content type, or none, is 415", async () => {
  const { post, ask } = await apiThatAccepts();
  const form = await post("/v1/runs", RUN_REQUEST, { "content-type": "text/plain" });
  expect(form.status).toBe(415);
  expect((await ask("/v1/runs", { method: "POST" })).status).toBe(415);
  const charset = { "content-type": "application/json; charset=utf-8" };
  expect((await post("/v1/runs", RUN_REQUEST, charset)).status).toBe(202);
});

test("a body over the limit is 413, with or without a stated length", async () => {
  const { post, ask, calls } = await apiThatAccepts();
  const big = JSON.stringify({ ...RUN_REQUEST, name: "x".repeat(LIMITS.requestBodyBytes) });
  expect((await post("/v1/runs", big)).status).toBe(413);
  const chunk = new TextEncoder().encode(" ".repeat(64 * 1024));
  let sent = 0;
  // Like the bodies of the runtime: a byte stream whose chunks are handed over for good.
  const endless = new ReadableStream({
    type: "bytes",
    pull(controller) {
      sent += chunk.byteLength;
      controller.enqueue(chunk.slice());
    },
  });
  const reply = await ask("/v1/runs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: endless,
  });
  expect(reply.status).toBe(413);
  expect(await reply.json()).toMatchObject({ error: { code: "too_large", param: null } });
  expect(sent).toBeLessThan(2 * LIMITS.requestBodyBytes);
  expect(calls).toEqual([]);
});

test("a body of exactly the limit is read", async () => {
  const { post } = await apiThatAccepts();
  const text = JSON.stringify(RUN_REQUEST);
  const padding = LIMITS.requestBodyBytes - new TextEncoder().encode(text).byteLength;
  expect((await post("/v1/runs", text + " ".repeat(padding))).status).toBe(202);
});

test("cancelling needs no body and returns the run", async () => {
  const { ask } = await openTestApi({ cancelRun: async () => ({ ok: true, value: RUN }) });
  const reply = await ask(`/v1/runs/${RUN.id}/cancel`, { method: "POST" });
  expect(reply.status).toBe(200);
  expect(await reply.json()).toEqual(RUN);
});
