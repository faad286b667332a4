/** Refusals in the formats of web frameworks and gateways, each as a server sends it. */
import { afterEach, expect, test } from "vitest";
import { callModel } from "../../../src/kernel/clients/inference.ts";
import { type Fault, type ScriptedModel, startScriptedModel } from "../../fakes/scripted-model.ts";

let model: ScriptedModel | undefined;
afterEach(async () => {
  await model?.stop();
  model = undefined;
});

async function outcomeOf(fault: Fault, sent: { refuses?: readonly string[] } = {}) {
  model = await startScriptedModel({ reply: () => ({ fault }) });
  const { signal } = new AbortController();
  const asked = { model: "m", messages: [], tools: [], sampling: {}, idempotency_key: "k", api_key: null };
  return await callModel({ ...asked, ...sent, base_url: model.url, signal });
}

const CONTEXT = "This model's maximum context length is 8192 tokens.";
const LINKED = `${CONTEXT} See https://docs.example/rate-limits. No credits were used.`;
const json = (status: number, body: unknown): Fault => ({ kind: "status", status, body });
const text = (status: number, said: string): Fault => ({ kind: "garbage", status, text: said });
const POLICY = { kind: "failed", retryable: false };

test.each<[server: string, fault: Fault]>([
  ["a text", text(400, CONTEXT)],
  ["a page about something else as well", json(400, { error: { message: LINKED } })],
  [
    "xAI, newer",
    json(400, {
      code: "invalid",
      error: "[input_too_large] Current message (1149677 tokens) exceeds budget (975424 tokens)",
    }),
  ],
  ["Spring: the status' name as the error", json(400, { status: 400, error: "Bad Request", message: CONTEXT })],
  ["a flag as the error", json(400, { error: true, message: CONTEXT })],
  ["an empty error", json(400, { error: {}, message: CONTEXT })],
  ["a code in addition to the error", json(400, { code: "context_length_exceeded", error: "Bad request" })],
  ["in a 200, without a status", json(200, { error: { message: CONTEXT } })],
  ["in a 200, as a text", json(200, { error: CONTEXT })],
  [
    "DashScope, in a 200",
    json(200, { code: "InvalidParameter", message: "Range of input length should be [1, 30720]" }),
  ],
  [
    "Ollama, in a stream",
    json(200, { error: { message: "prompt is longer than the context length", type: "api_error" } }),
  ],
  ["FastAPI, with all of the request", json(422, { detail: [{ msg: CONTEXT, input: "x".repeat(100_000) }] })],
])("a full context is recognised: %s", async (_server, fault) => {
  expect(await outcomeOf(fault)).toEqual({ kind: "prompt_too_long" });
});

test.each<[server: string, fault: Fault]>([
  ["NestJS", json(403, { statusCode: 403, error: "Forbidden", message: "Your prompt was flagged by moderation" })],
  ["a code in addition to the error", json(403, { code: "content_policy_violation", error: "Forbidden" })],
  ["a detail in addition to the error", json(403, { error: "forbidden", detail: "Prompt rejected by content filter" })],
  ["a code with 500", json(500, { error: { code: "content_policy_violation", message: "no" } })],
  ["a code with 429", json(429, { error: { code: "content_filter", message: "no" } })],
  [
    "OpenRouter: the provider's code in its text",
    json(502, {
      error: { code: 502, message: "x", metadata: { raw: '{"error":{"code":"content_filter","message":"no"}}' } },
    }),
  ],
  ["an error in a 200", json(200, { error: { code: 500, type: "content_filter", message: "no" } })],
])("a refusal by a policy is not retried, and is not about the key: %s", async (_server, fault) => {
  const outcome = await outcomeOf(fault);
  expect(outcome).toMatchObject(POLICY);
  expect(outcome).not.toMatchObject({ error: { name: expect.stringMatching(/Permission|Authentication/) } });
});

test.each<[server: string, fault: Fault]>([
  ["its words", json(400, { error: { code: "content_filter", message: "'please use the stream' was blocked" } })],
  ["its policy", json(400, { error: { message: "Our strict content policy refused: tools must be strict" } })],
  [
    "what it took",
    json(200, {
      error: { code: 400, message: "stream must be true" },
      usage: { prompt_tokens: 9, completion_tokens: 1 },
    }),
  ],
  ["what it may have taken", json(200, { error: { code: 501, message: "stream must be true" } })],
])("a call that was refused for %s is not repeated in another form", async (_what, fault) => {
  expect(await outcomeOf(fault)).not.toHaveProperty("refuses");
});
