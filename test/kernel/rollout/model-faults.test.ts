import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { openEndpoint } from "../../../src/kernel/endpoint/call.ts";
import type { Fault } from "../../fakes/scripted-model.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerTestEnvironments } from "../registered.ts";
import { down, GUESSES, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerTestEnvironments();
  platform = await openPlatform();
});

const QUESTION = { role: "user", content: "Guess." };

function ask(model: string, messages: object[], key = "k"): Promise<Response> {
  return fetch(`${env.MODEL_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify({ model, messages }),
  });
}

test("the model outside workerd replies what its name scripts, one reply per turn", async () => {
  const model = script([{ tool_calls: [{ name: "guess", arguments: { number: 4 } }] }, "It is 4."]);
  expect(await (await ask(model, [QUESTION])).json()).toMatchObject({
    choices: [{ finish_reason: "tool_calls", message: { tool_calls: [{ type: "function" }] } }],
  });
  const later = [QUESTION, { role: "assistant", content: "…" }];
  expect(await (await ask(model, later)).json()).toMatchObject({
    choices: [{ finish_reason: "stop", message: { content: "It is 4." } }],
  });
});

test("a scripted fault hits the first tries of every idempotency key, and both are counted", async () => {
  const fault = { kind: "status" as const, status: 503 };
  const model = script([{ fault, times: 1, reply: "yes" }]);
  const statuses = [];
  for (const key of ["a", "b", "a", "b"]) statuses.push((await ask(model, [QUESTION], key)).status);
  expect(statuses).toEqual([503, 503, 200, 200]);
  const seen = await requestsOf(model);
  expect(seen.map(({ idempotency_key }) => idempotency_key)).toEqual(["a", "b", "a", "b"]);
});

test("a question that contains a word of the script gets the turns written for it", async () => {
  const model = script(["plain"], { hard: ["special"] });
  const hard = await (await ask(model, [{ role: "user", content: "a hard one" }])).text();
  expect(hard).toContain("special");
  expect(await (await ask(model, [QUESTION])).text()).toContain("plain");
});

/** Milliseconds, for a machine that may be busy. */
const PATIENCE = 30_000;
const one = { environment: "gsm8k", dataset: questions(1) };

function failing(fault: Fault, times?: number): string {
  return script([{ fault, reply: "\\boxed{4}", ...(times === undefined ? {} : { times }) }]);
}

test("a 429 is retried no earlier than Retry-After says, with the same idempotency key", async () => {
  const model = failing({ kind: "status", status: 429, headers: { "retry-after": "1" } }, 1);
  const run = await platform.finish({ ...one, model });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect(run.report).toMatchObject({ turns: 1, calls: 2 });
  expect((await platform.rollout(rolloutAt(run.id))).failed_calls).toMatchObject([{ status: 429 }]);
  const [first, second, ...more] = await requestsOf(model);
  expect(more).toEqual([]);
  expect(second?.idempotency_key).toBe(first?.idempotency_key);
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1000);
});

test("a call that Cloudflare's proxy ended is a timeout, and is tried once more, whatever the run allows", async () => {
  const model = failing({ kind: "status", status: 524 });
  const run = await platform.finish({ ...one, model, limits: { max_retries: 5 }, min_scored: 0 });
  expect(run.counts).toMatchObject({ scored: 0, failed: { timeout: 1 } });
  expect(await requestsOf(model)).toHaveLength(2);
  const { failed_calls } = await platform.rollout(rolloutAt(run.id));
  expect(failed_calls.map(({ status }) => status)).toEqual([524, 524]);
});

test("a model that sends nothing for its endpoint's limit is a timeout, and the error names the limit", async () => {
  const endpoint = { base_url: env.MODEL_URL, silence_limit_s: 1 };
  const model = failing({ kind: "hang" });
  const run = await platform.finish({ ...one, model, endpoint, limits: { max_retries: 0 }, min_scored: 0 });
  expect(run.counts).toMatchObject({ scored: 0, failed: { timeout: 1 } });
  const { error } = await platform.rollout(rolloutAt(run.id));
  expect(error?.message).toContain("sent nothing for 1 s, its limit (silence_limit_s)");
});

test("arguments that are not JSON are the model's mistake: it gets the error, and the call is not repeated", async () => {
  const wrong = { tool_calls: [{ name: "add", arguments: '{"a": 1, "b": ' }] };
  const model = script([wrong, "It is 3."]);
  const dataset = [{ question: "What is 1 + 2?", answer: "3" }];
  const run = await platform.finish({ environment: "calculator", dataset, model });
  expect(run).toMatchObject({ counts: { scored: 1 }, report: { turns: 2, calls: 2 } });
  const rollout = await platform.rollout(rolloutAt(run.id));
  expect(rollout.failed_calls).toEqual([]);
  expect(rollout.turns[1]?.prompt.append).toMatchObject([{ role: "tool", content: expect.stringMatching(/JSON/) }]);
});

test("a restart does not reset the budget: earlier tries count", async () => {
  const model = failing(down);
  const run = await platform.start({ ...one, model, limits: { max_retries: 2 } });
  const id = rolloutAt(run.id);
  for (const sent of [1, 2]) {
    await requestsOf(model, sent);
    await evictDurableObject(await platform.rolloutStub(id));
  }
  expect((await platform.ended(run.id)).counts.failed).toEqual({ provider: 1 });
  expect((await requestsOf(model)).length).toBe(3);
  const { failed_calls } = await platform.rollout(id);
  expect(failed_calls.map(({ call }) => call)).toEqual([1, 2, 3]);
});

test("a fault that no retry can fix, such as a 404, is not retried", async () => {
  const model = failing({ kind: "status", status: 404 });
  const run = await platform.finish({ ...one, model });
  expect(run.counts.failed).toEqual({ provider: 1 });
  expect((await requestsOf(model)).length).toBe(1);
});

test("a redirect is not followed: neither key nor prompt is sent to an unchecked address", async () => {
  const headers = { location: "/v1/chat/completions" };
  const model = failing({ kind: "status", status: 307, headers });
  const run = await platform.finish({ ...one, model });
  const [row] = await platform.results(run.id);
  expect(row?.error?.message).toMatch(/^307: the endpoint redirects/);
  expect((await requestsOf(model)).length).toBe(1);
});

test("an endpoint that refuses the key fails the run at once and leaves the rest pending", async () => {
  const model = failing({ kind: "status", status: 401 });
  const run = await platform.finish({ ...one, dataset: questions(20), model, max_concurrent: 2 });
  expect(run).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  expectLaw(run.counts);
  expect(run.counts.failed).toEqual({ provider: run.counts.dispatched });
  expect(run.counts.dispatched).toBeLessThanOrEqual(4);
  expect((await requestsOf(model)).length).toBe(run.counts.dispatched);
});

test.each([
  [401, "AuthenticationError"],
  [403, "PermissionDeniedError"],
])(
  "a key that was replaced since this isolate opened it is no failed try: after a %d the call goes out under the new one",
  async (status, error) => {
    const given = { name: `keyed-${crypto.randomUUID()}`, base_url: env.MODEL_URL, probe: false };
    const made = await platform.post("/v1/endpoints", { ...given, api_key: "old-key-0123456789" });
    const { id } = await made.json<{ id: string }>();
    const keep = () => env.DB.prepare("select sealed_key from endpoints where id = ?").bind(id).first("sealed_key");
    const put = (key: unknown) =>
      env.DB.prepare("update endpoints set sealed_key = ? where id = ?").bind(key, id).run();
    const old = await keep();
    const patched = await platform.ask(`/v1/endpoints/${id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ api_key: "new-key-0123456789" }),
    });
    expect(patched.status).toBe(200);
    const replaced = await keep();
    // The cache of an isolate that was not notified of the change.
    await put(old);
    await openEndpoint(env, platform.scope, id, Date.now());
    await put(replaced);
    const model = failing({ kind: "status", status }, 1);
    const run = await platform.finish({ ...one, model, endpoint: id, limits: { max_retries: 0 } });
    expect(run).toMatchObject({ status: "completed", counts: { scored: 1 } });
    const sent = (await requestsOf(model)).map(({ authorization }) => authorization);
    expect(sent).toEqual(["Bearer old-key-0123456789", "Bearer new-key-0123456789"]);
    const { failed_calls } = await platform.rollout(rolloutAt(run.id));
    expect(failed_calls).toMatchObject([{ error, call: 1, status }]);
  },
);

test("an overflow in the middle keeps the earlier turns, and they are scored", async () => {
  const first = { tool_calls: [{ name: "guess", arguments: { number: 0 } }] };
  const message = "This model's maximum context length is 4096 tokens.";
  const body = { error: { message, param: null, code: 400 } };
  const model = script([first, { fault: { kind: "status", status: 400, body } }]);
  const request = { environment: "guess-number", environment_args: { max: 1000 }, num_examples: 1 };
  const run = await platform.finish({ ...request, model });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1 } });
  const [row] = await platform.results(run.id);
  expect(row).toMatchObject({ stop_condition: "prompt_too_long", is_truncated: true, turns: 1 });
});

test("another refusal of the request is not a truncation", async () => {
  const refusal = { error: { message: "temperature must be at most 2", param: "temperature" } };
  const model = failing({ kind: "status", status: 400, body: refusal });
  const run = await platform.finish({ ...one, model });
  expect(run.counts).toMatchObject({ scored: 0, failed: { provider: 1 } });
  expect((await requestsOf(model)).length).toBe(1);
});

test("a reply cut at the token limit flags its rollout as truncated, which is scored", async () => {
  const model = script([{ content: "\\boxed{4", finish_reason: "length" }]);
  const run = await platform.finish({ ...one, model });
  expect(run.counts.scored).toBe(1);
  expect(await platform.results(run.id)).toMatchObject([{ is_truncated: true, error: null }]);
});

test("rollout_timeout_s ends a rollout whose call hangs, and its turns so far are scored", async () => {
  const model = script([...GUESSES.slice(0, 1), { fault: { kind: "hang" } }]);
  const run = await platform.finish({
    environment: "guess-number",
    environment_args: { max: 1_000_000 },
    num_examples: 1,
    model,
    limits: { rollout_timeout_s: 1.5 },
  });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1, failed: {} } });
  const [row] = await platform.results(run.id);
  expect(row).toMatchObject({ stop_condition: "timeout_reached", turns: 1, error: null });
});

test("rollout_timeout_s also ends a rollout that waits for its next try", async () => {
  const model = failing({ kind: "status", status: 429, headers: { "retry-after": "3600" } });
  const run = await platform.finish({ ...one, model, limits: { rollout_timeout_s: 0.5 } });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect(await platform.results(run.id)).toMatchObject([{ stop_condition: "timeout_reached" }]);
});

test(
  "a call past call_timeout_s is aborted, retried, and finally fails as a timeout",
  async () => {
    const limits = { call_timeout_s: 2, max_retries: 1 };
    const [passing, staying] = await Promise.all([
      platform.finish({ ...one, model: failing({ kind: "hang" }, 1), limits }),
      platform.finish({ ...one, model: failing({ kind: "hang" }), limits }),
    ]);
    expect(passing).toMatchObject({ counts: { scored: 1 }, report: { calls: 2 } });
    expect(staying).toMatchObject({ counts: { scored: 0, failed: { timeout: 1 } } });
    const late = { reason: "timeout", message: "the model did not answer within 2 s" };
    const listed = [
      { call: 1, ...late },
      { call: 2, ...late },
    ];
    const { failed_calls } = await platform.rollout(rolloutAt(staying.id));
    expect(failed_calls).toMatchObject(listed);
  },
  PATIENCE,
);

test("an endpoint without a server fails its rollouts as provider failures", async () => {
  const endpoint = { base_url: "http://127.0.0.1:9/v1" };
  const model = script(RIGHT);
  const run = await platform.finish({ ...one, model, endpoint, limits: { max_retries: 0 } });
  expect(run.counts.failed).toEqual({ provider: 1 });
});

test("token ids, logprobs and the version label that an engine sends are stored with the turn", async () => {
  const model = script([
    {
      content: "\\boxed{4}",
      prompt_token_ids: [1, 2, 3],
      token_ids: [4, 5],
      logprobs: [-0.5, -0.25],
      extra: { weight_version: "step_7" },
    },
  ]);
  const run = await platform.finish({ ...one, model });
  const rollout = await platform.rollout(rolloutAt(run.id));
  expect(rollout.turns).toMatchObject([{ policy_version: "step_7" }]);
  expect(rollout.usage).toEqual({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
});

test("an environment's maxSeqLen cuts the ids of a turn, which counts as truncated and is scored", async () => {
  const model = script([{ content: "any", prompt_token_ids: [1, 2, 3], token_ids: [4, 5] }]);
  const run = await platform.finish({ environment: "short", model, num_examples: 1 });
  const { turns, is_truncated, reward } = await platform.rollout(rolloutAt(run.id));
  expect(turns).toMatchObject([{ is_truncated: true, completion: { content: "any" } }]);
  expect({ is_truncated, reward }).toEqual({ is_truncated: true, reward: 1 });
});
