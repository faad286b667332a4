import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { Fault } from "../fakes/scripted-model.ts";
import { type Door, expectLaw, openPlatform, requestsOf, rolloutAt } from "./platform.ts";
import { down, GUESSES, questions, RIGHT } from "./rows.ts";
import { script } from "./script.ts";

let platform: Door;
beforeAll(async () => {
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

test("the model outside workerd says what its name scripts, one reply a turn", async () => {
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

test("a question that holds a word of the script gets the turns written for it", async () => {
  const model = script(["plain"], { hard: ["special"] });
  const hard = await (await ask(model, [{ role: "user", content: "a hard one" }])).text();
  expect(hard).toContain("special");
  expect(await (await ask(model, [QUESTION])).text()).toContain("plain");
});

const one = { environment: "gsm8k", dataset: questions(1) };

function failing(fault: Fault, times?: number): string {
  return script([{ fault, reply: "\\boxed{4}", ...(times === undefined ? {} : { times }) }]);
}

test("a 429 is tried again no sooner than Retry-After says, with the same idempotency key", async () => {
  const model = failing({ kind: "status", status: 429, headers: { "retry-after": "1" } }, 1);
  const run = await platform.finish({ ...one, model });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect(run.report).toMatchObject({ turns: 1, calls: 2 });
  const [first, second, ...more] = await requestsOf(model);
  expect(more).toEqual([]);
  expect(second?.idempotency_key).toBe(first?.idempotency_key);
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1000);
});

test("faults that pass are retried: a cut connection, garbage, no choices, a 503", async () => {
  const faults: Fault[] = [
    { kind: "reset" },
    { kind: "garbage" },
    { kind: "empty_choices" },
    { kind: "status", status: 503 },
  ];
  const runs = await Promise.all(
    faults.map((fault) => platform.finish({ ...one, model: failing(fault, 1) })),
  );
  for (const { status, report } of runs) {
    expect({ status, turns: report.turns, calls: report.calls }).toEqual({
      status: "completed",
      turns: 1,
      calls: 2,
    });
  }
});

test("a fault that stays fails its rollout as the provider's, after max_retries and never with a score", async () => {
  const faults: Fault[] = [down, { kind: "garbage" }, { kind: "empty_choices" }];
  const limits = { max_retries: 1 };
  const runs = await Promise.all(
    faults.map(async (fault) => {
      const model = failing(fault);
      const run = await platform.finish({ ...one, model, limits });
      return { run, sent: (await requestsOf(model)).length };
    }),
  );
  for (const { run, sent } of runs) {
    expect(run).toMatchObject({ status: "failed", error: { code: "too_few_scored" } });
    expect(run.counts).toMatchObject({ scored: 0, failed: { provider: 1 } });
    expect(run.report.reward).toMatchObject({ mean: null, n_error: 1 });
    expect({ sent, calls: run.report.calls }).toEqual({ sent: 2, calls: 2 });
    const [row] = await platform.results(run.id);
    expect(row).toMatchObject({ outcome: "failed", reward: null, stop_condition: "has_error" });
    expect(row?.error?.error).toMatch(/^(ModelError|.*ModelResponseError)$/);
  }
});

test("a fault no retry can help, such as a 404, is not retried", async () => {
  const model = failing({ kind: "status", status: 404 });
  const run = await platform.finish({ ...one, model });
  expect(run.counts.failed).toEqual({ provider: 1 });
  expect((await requestsOf(model)).length).toBe(1);
});

test("a redirect is not followed: neither key nor prompt goes where nobody checked", async () => {
  const headers = { location: "/v1/chat/completions" };
  const model = failing({ kind: "status", status: 307, headers });
  const run = await platform.finish({ ...one, model });
  const [row] = await platform.results(run.id);
  expect(row?.error?.message).toMatch(/^307: the endpoint leads elsewhere/);
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

test("a context overflow is a truncation that is scored as it stands, not a failure", async () => {
  const message = "This model's maximum context length is 4096 tokens.";
  const body = { error: { message, type: "BadRequestError", param: null, code: 400 } };
  const overflow = { fault: { kind: "status", status: 400, body } } as const;
  const options = { environment: "guess-number", environment_args: { max: 1000 }, num_examples: 1 };
  const model = script([{ tool_calls: [{ name: "guess", arguments: { number: 0 } }] }, overflow]);
  const run = await platform.finish({ ...options, model });
  expect(run).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect(run.report.reward).toMatchObject({ mean: 0, n_truncated: 1, n_error: 0 });
  const [row] = await platform.results(run.id);
  expect(row).toMatchObject({ stop_condition: "prompt_too_long", is_truncated: true, turns: 1 });
});

test("a reply cut at the token limit flags its rollout as truncated, which is scored", async () => {
  const model = script([{ content: "\\boxed{4", finish_reason: "length" }]);
  const run = await platform.finish({ ...one, model });
  expect(run.counts.scored).toBe(1);
  expect(await platform.results(run.id)).toMatchObject([{ is_truncated: true, error: null }]);
});

test("rollout_timeout_s ends a rollout whose call hangs, and what it has is scored", async () => {
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

test("a call past call_timeout_s is given up, tried again, and fails as a timeout in the end", async () => {
  const limits = { call_timeout_s: 2, max_retries: 1 };
  const [passing, staying] = await Promise.all([
    platform.finish({ ...one, model: failing({ kind: "hang" }, 1), limits }),
    platform.finish({ ...one, model: failing({ kind: "hang" }), limits }),
  ]);
  expect(passing).toMatchObject({ counts: { scored: 1 }, report: { calls: 2 } });
  expect(staying).toMatchObject({ counts: { scored: 0, failed: { timeout: 1 } } });
});

test("an endpoint nobody listens at fails its rollouts as the provider's", async () => {
  const endpoint = { base_url: "http://127.0.0.1:9/v1" };
  const model = script(RIGHT);
  const run = await platform.finish({ ...one, model, endpoint, limits: { max_retries: 0 } });
  expect(run.counts.failed).toEqual({ provider: 1 });
});

test("token ids, logprobs and the version label an engine sends are kept with the turn", async () => {
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
