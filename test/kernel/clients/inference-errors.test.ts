/** Errors of a call have the texts of the `openai` SDK, which makes the same calls here. */
import OpenAI from "openai";
import { afterEach, expect, test } from "vitest";
import { callModel } from "../../../src/kernel/clients/inference.ts";
import { type Fault, type ScriptedModel, startScriptedModel } from "../../fakes/scripted-model.ts";

let model: ScriptedModel | undefined;
afterEach(async () => {
  await model?.stop();
  model = undefined;
});

async function both(fault: Fault) {
  model = await startScriptedModel({ reply: () => ({ fault }) });
  return await askBoth(model.url);
}

async function askBoth(base_url: string) {
  const client = new OpenAI({ baseURL: base_url, apiKey: "none", maxRetries: 0 });
  const said = await client.chat.completions.create({ model: "m", messages: [] }).catch((thrown: Error) => thrown);
  const { signal } = new AbortController();
  const asked = { model: "m", messages: [], tools: [], sampling: {}, idempotency_key: "k", api_key: null };
  const outcome = await callModel({ ...asked, base_url, signal });
  if (outcome.kind !== "failed" || !(said instanceof Error)) throw new Error("neither was to be answered");
  const { error, retryable, status, retry_after_ms } = outcome;
  return {
    outcome: { name: error.name, retryable, status, retry_after_ms },
    ours: error.message,
    theirs: said.message,
  };
}

const error = { message: "no more than 4 at once", type: "rate_limit", code: "slow_down" };
const HTML = "<html><body>Bad gateway</body></html>";

test.each<[what: string, status: number, body: unknown, retryable: boolean]>([
  ["the message of an error", 400, { error }, false],
  ["an error without a message", 422, { error: { code: "bad" } }, false],
  ["a text as the error", 500, { error: "out of memory" }, true],
  ["JSON without an error", 404, { detail: "no such model" }, false],
  ["a message that is no text", 409, { error: { message: { why: "busy" } } }, true],
  ["a list", 503, [{ error }], true],
  ["a text in JSON", 503, "out of memory", true],
  ["null", 503, null, true],
  ["a number", 408, 7, true],
])("a refusal whose body is %s", async (_what, status, body, retryable) => {
  const { outcome, ours, theirs } = await both({ kind: "status", status, body });
  expect(ours).toBe(theirs);
  expect(ours).toMatch(new RegExp(`^${status} `));
  expect(outcome).toEqual({ name: "ModelError", retryable, status, retry_after_ms: null });
});

test.each([HTML, ""])("a refusal that is not JSON: %j", async (text) => {
  const { outcome, ours, theirs } = await both({ kind: "garbage", status: 502, text });
  expect(ours).toBe(theirs);
  expect(outcome).toEqual({ name: "ModelError", retryable: true, status: 502, retry_after_ms: null });
});

test("a refused key gives the server's text", async () => {
  const { outcome, ours, theirs } = await both({ kind: "status", status: 401, body: { error } });
  expect(ours).toBe(theirs);
  expect(outcome).toMatchObject({ name: "AuthenticationError", retryable: false });
});

test("how long to wait is read from the refusal", async () => {
  const { outcome } = await both({ kind: "status", status: 429, headers: { "retry-after": "7" } });
  expect(outcome).toEqual({ name: "ModelError", retryable: true, status: 429, retry_after_ms: 7000 });
});

test("a connection that breaks, or that is refused", async () => {
  const reset = await both({ kind: "reset" });
  const nobody = await askBoth("http://127.0.0.1:9/v1");
  for (const { outcome, ours, theirs } of [reset, nobody]) {
    expect([ours, theirs]).toEqual(["Connection error.", "Connection error."]);
    expect(outcome).toEqual({ name: "ModelError", retryable: true, status: undefined, retry_after_ms: null });
  }
});

const inside = (error: object, more: object = {}) =>
  callWith({ kind: "status", status: 200, body: { error, ...more } });

async function callWith(fault: Fault) {
  model = await startScriptedModel({ reply: () => ({ fault }) });
  const { signal } = new AbortController();
  const asked = { model: "m", messages: [], tools: [], sampling: {}, idempotency_key: "k", api_key: null };
  return await callModel({ ...asked, base_url: model.url, signal });
}

test("an error inside a reply of status 200 is classified by the status it names, with the server's text", async () => {
  const limited = await inside({ code: 429, message: "slow down please" });
  expect(limited).toMatchObject({ kind: "failed", retryable: true, status: 429 });
  expect(limited).toMatchObject({ error: { message: expect.stringContaining("slow down please") } });
});

test.each<[what: string, error: object, outcome: object]>([
  ["for good", { code: 400, message: "flagged by zebra-guard" }, { kind: "failed", retryable: false, status: 400 }],
  ["of the key", { code: 401, message: "no such key" }, { kind: "failed", error: { name: "AuthenticationError" } }],
  ["of the server", { code: 503, message: "busy" }, { kind: "failed", retryable: true, status: 503 }],
  [
    "of a policy",
    { code: "data_inspection_failed", message: "may contain inappropriate content" },
    { kind: "failed", retryable: false, error: { name: "PolicyRefusalError" } },
  ],
  ["of an unknown kind", { code: "E17", message: "odd" }, { kind: "failed", retryable: true, lost: true }],
  [
    "of a full context",
    { code: 400, message: "This model's maximum context length is 9 tokens." },
    { kind: "prompt_too_long" },
  ],
])("an error %s inside a reply of status 200", async (_what, error, outcome) => {
  expect(await inside(error)).toMatchObject(outcome);
});

test("an error of another provider inside one of Databricks gives that provider's text", async () => {
  const around = (external_model_message: object) => ({ error: "Received error from openai", external_model_message });
  const words = { message: "This model's maximum context length is 9 tokens.", code: "context_length_exceeded" };
  const full = await callWith({ kind: "status", status: 400, body: around({ error: words }) });
  expect(full).toEqual({ kind: "prompt_too_long" });
  await model?.stop();
  const other = await callWith({ kind: "status", status: 400, body: around({ message: "no such voice" }) });
  expect(other).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("no such voice") } });
});

test("the usage of a reply that could not be used is reported, and the call does not count as lost", async () => {
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
  const half = { choices: [{ message: { content: "Os" }, finish_reason: "error" }], usage };
  const outcome = await callWith({ kind: "status", status: 200, body: half });
  expect(outcome).toMatchObject({ kind: "failed", retryable: true, usage });
  expect(outcome).not.toHaveProperty("lost");
  await model?.stop();
  const unknown = await callWith({ kind: "status", status: 200, body: { ...half, usage: null } });
  expect(unknown).toMatchObject({ kind: "failed", lost: true });
  expect(unknown).not.toHaveProperty("usage");
});

test("a stream that ends with an error is not an answer", async () => {
  const text =
    'data: {"choices":[{"delta":{"content":"Os"}}]}\n\ndata: {"error":{"message":"upstream reset","code":502}}\n\n';
  expect(await callWith({ kind: "stream", text })).toMatchObject({
    kind: "failed",
    retryable: true,
    status: 502,
    lost: true,
  });
});

test("a key that a server splits over two parts of its reasoning is in nothing that is stored", async () => {
  const api_key = "sk-0123456789abcdef";
  const details = [api_key.slice(0, 9), api_key.slice(9)].map((text, index) => ({
    type: "reasoning.text",
    index,
    text,
  }));
  const message = { content: "4", reasoning_details: details };
  model = await startScriptedModel({
    reply: () => ({ fault: { kind: "status", status: 200, body: { choices: [{ message, finish_reason: "stop" }] } } }),
  });
  const { signal } = new AbortController();
  const asked = { model: "m", messages: [], tools: [], sampling: {}, idempotency_key: "k", api_key };
  const outcome = await callModel({ ...asked, base_url: model.url, signal });
  expect(outcome.kind).toBe("answered");
  expect(JSON.stringify(outcome)).not.toContain(api_key);
});

test("an event that is not JSON is reported by the size of the reply, never with a part of it: it may be a piece of the key", async () => {
  const outcome = await callWith({ kind: "stream", text: 'data: {"a":#k=sk-or-v1-secret\n\n' });
  expect(outcome).toMatchObject({
    error: { message: expect.stringMatching(/^the reply is not JSON: status 200, text.event-stream, \d+ characters$/) },
  });
});

test("a prompt that a refusal repeats does not affect the classification", async () => {
  const detail = [
    {
      type: "string_type",
      loc: ["body", "messages"],
      msg: "bad",
      input: "Invalid API key provided; context length exceeded",
    },
  ];
  expect(await callWith({ kind: "status", status: 400, body: { detail } })).toMatchObject({
    kind: "failed",
    error: { name: "ModelError" },
  });
});
