/** Answers at temperature 0 that are used again, in runs that ask for it. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { ModelResponse } from "../../../src/contract/trajectory.ts";
import type { OpenEndpoint } from "../../../src/kernel/endpoint/call.ts";
import { answersFolder } from "../../../src/kernel/kit/names.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import type { TurnCall } from "../../../src/kernel/messages/endpoint-wire.ts";
import { AnswerCache, dropAnswers, hasAnswers } from "../../../src/kernel/rollout/answer-cache.ts";
import { keysUnder } from "../deleting.ts";
import { expectLaw, openPlatform, type RunOptions, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const PERIOD_MS = LIMITS.answersKeptMs / 2;
const USAGE = { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 };
const ANSWER = { content: "\\boxed{4}", usage: USAGE };
const PRICES = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 1_000_000 };

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  const bench = { name: "bench", base_url: env.MODEL_URL, probe: false, prices: PRICES };
  expect((await platform.post("/v1/endpoints", bench)).status).toBe(201);
});

function cached(model: string, more: Partial<RunOptions> = {}): RunOptions {
  return {
    ...{ environment: "gsm8k", dataset: questions(2), endpoint: "bench", model },
    ...{ sampling: { temperature: 0 }, answer_cache: true },
    ...more,
  };
}

test("a call that was answered before is answered from the cache, and the run and its turns say so", async () => {
  const model = script([ANSWER]);
  const first = await platform.finish(cached(model));
  expect(first.report).toMatchObject({ turns: 2, calls: 2, usage: { ...scaled(2), cost_micros: 70 } });
  expect(first.report.usage.reused).toBeUndefined();
  const again = await platform.finish(cached(model));
  expectLaw(again.counts);
  expect(await requestsOf(model)).toHaveLength(2);
  expect(again.answer_cache).toBe(true);
  expect(again.report).toMatchObject({ turns: 2, calls: 0, reward: { mean: first.report.reward.mean } });
  expect(again.report.usage).toMatchObject({ ...scaled(0), cost_micros: 0, reused: { turns: 2, tokens: 70 } });
  const [one, other] = [await platform.rollout(rolloutAt(first.id)), await platform.rollout(rolloutAt(again.id))];
  expect(other.turns).toMatchObject([{ from_cache: true, calls: 0, latency_ms: 0, usage: USAGE }]);
  expect(one.turns[0]?.from_cache).toBeUndefined();
  expect(other.completion).toEqual(one.completion);
  expect(other.usage).toMatchObject({ total_tokens: 0, reused: { turns: 1, tokens: 35 } });
  const audit = await (await platform.ask(`/v1/runs/${again.id}/audit`)).json();
  expect(audit).toMatchObject({ violations: [] });
});

function scaled(times: number) {
  return { prompt_tokens: 30 * times, completion_tokens: 5 * times, total_tokens: 35 * times };
}

test("a rollout of several turns takes every turn from the cache", async () => {
  const model = script(["<guess>crane</guess>", "I pass.", "<guess>slate</guess>", "<guess>pride</guess>"]);
  const request = { environment: "wordle", num_examples: 3, model, sampling: { temperature: 0 }, answer_cache: true };
  const first = await platform.finish(request);
  const again = await platform.finish(request);
  expect(first.report.calls).toBeGreaterThan(6);
  expect(again.report).toMatchObject({ calls: 0, turns: first.report.turns });
  expect(again.report.usage.reused?.turns).toBe(first.report.turns);
  expect(again.report.reward).toEqual(first.report.reward);
});

test("a run that does not ask for the cache, another model, body, address or project calls the model", async () => {
  const model = script([ANSWER]);
  await platform.finish(cached(model));
  const other = { name: "elsewhere", base_url: `${env.MODEL_URL}/`, probe: false };
  expect((await platform.post("/v1/endpoints", other)).status).toBe(201);
  const { answer_cache: _, ...plain } = cached(model);
  const runs = [plain, cached(model, { sampling: { temperature: 0, max_tokens: 50 } })];
  runs.push(cached(model, { endpoint: "elsewhere" }));
  for (const [at, request] of runs.entries()) {
    expect((await platform.finish(request)).report.calls).toBe(2);
    expect(await requestsOf(model)).toHaveLength(4 + 2 * at);
  }
  expect((await platform.finish(cached(script([ANSWER])))).report.calls).toBe(2);
  const neighbour = await openPlatform(platform.scope.orgId);
  const { endpoint: __, ...request } = cached(model);
  expect((await neighbour.finish(request)).report.calls).toBe(2);
});

test.each([
  [{ sampling: {} }, "needs sampling.temperature 0"],
  [{ sampling: { temperature: 0.2 } }, "needs sampling.temperature 0"],
  [{ sampling: { temperature: 0, extra_body: { temperature: 1 } } }, "needs sampling.temperature 0"],
  [{ endpoint: undefined, fleet: "any" }, "needs an endpoint"],
])("a request for the cache with %j is refused: %s", async (more, message) => {
  const refused = await platform.post("/v1/runs", { ...cached("any"), ...more });
  expect(refused.status).toBe(400);
  const { error } = await refused.json<{ error: { param: string; message: string } }>();
  expect(error).toMatchObject({ param: "answer_cache", message: expect.stringContaining(message) });
});

test("a training run has no cache: the field is refused", async () => {
  const { model, endpoint, dataset, environment } = cached("any");
  const training = { kind: "training", environment, dataset, endpoint, model, max_steps: 2, group_size: 2 };
  const refused = await platform.post("/v1/runs", { ...training, answer_cache: true });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining("answer_cache") } });
});

test("a rollout whose process died while it called finds an answer that another rollout was given meanwhile", async () => {
  const model = script(RIGHT, undefined, { held: true });
  const runs = [await platform.start(cached(model, { dataset: questions(1) }))];
  const [asked] = await requestsOf(model, 1);
  runs.push(await platform.start(cached(model, { dataset: questions(1) })));
  await requestsOf(model, 2);
  // The second run has sent the same call, and dies before its answer.
  await release(asked?.idempotency_key ?? "");
  const [first, second] = [runs[0]?.id ?? "", runs[1]?.id ?? ""];
  await platform.ended(first);
  await platform
    .inRollout(rolloutAt(second), (_, state) => state.abort("killed"))
    .catch((thrown) => expect(String(thrown)).toContain("killed"));
  const ended = await platform.ended(second);
  expect(ended.counts).toMatchObject({ scored: 1 });
  expect(ended.report).toMatchObject({ turns: 1, calls: 1, usage: { total_tokens: 0, reused: { turns: 1 } } });
  expect(await requestsOf(model)).toHaveLength(2);
});

const CALL: TurnCall = {
  ...{ model: "m", messages: [{ role: "user", content: "2 + 2?" }], tools: [], sampling: { temperature: 0 } },
  idempotency_key: "key",
};
const RESPONSE: ModelResponse = {
  ...{ id: "a", model: "m", message: { role: "assistant", content: "4" }, finish_reason: "stop", usage: USAGE },
  ...{ prompt_ids: null, completion_ids: null, completion_logprobs: null, policy_version: null, latency_ms: 80 },
};

const OPENED = { base_url: "https://model.test/v1", api_key: null, send: fetch };

function cacheAt(
  now: number,
  { scope }: TestApi,
  { store = env.STORE, open = async () => OPENED }: { readonly store?: R2Bucket; readonly open?: OpenEndpoint } = {},
): AnswerCache {
  const spec = { scope, run_id: "run", rollout_id: "rollout", answer_cache: true };
  return new AnswerCache({ ...env, STORE: store }, spec, open, new Subrequests(), () => now);
}

async function keep(cache: AnswerCache, call = CALL, response = RESPONSE): Promise<void> {
  await cache.open(false);
  cache.keep(call, response);
  await cache.settled();
}

/** Another rollout makes the call. */
function find(cache: AnswerCache, call = CALL) {
  return cache.find({ ...call, idempotency_key: "another" }, (wait) => wait);
}

test("an answer is kept for one to two periods; then it is not found, and is deleted", async () => {
  const api = await openPlatform();
  const start = 10 * PERIOD_MS;
  const drop = (now: number) => dropAnswers(env, api.scope, now, 1, new Subrequests());
  await keep(cacheAt(start, api));
  await keep(cacheAt(start, api), { ...CALL, model: "n" });
  const before = start + 2 * PERIOD_MS - 1;
  expect(await find(cacheAt(before, api))).toEqual({ response: { ...RESPONSE, latency_ms: 0 }, from_cache: true });
  expect(await drop(before)).toBe(false);
  expect(await find(cacheAt(start + 2 * PERIOD_MS, api))).toBeNull();
  // One a slice.
  expect([await drop(start + 2 * PERIOD_MS), await drop(start + 2 * PERIOD_MS)]).toEqual([true, false]);
  expect(await keysUnder(answersFolder(api.scope))).toEqual([]);
  expect(await hasAnswers(env, api.scope, new Subrequests())).toBe(false);
});

test("the answer to a call whose turn was lost counts as its own, and not as one from the cache", async () => {
  const api = await openPlatform();
  await keep(cacheAt(0, api));
  expect(await cacheAt(0, api).find(CALL, (wait) => wait)).toEqual({ response: RESPONSE });
});

test("an answer is kept under the address that gave it, although the endpoint has another one by then", async () => {
  const api = await openPlatform();
  const cache = cacheAt(0, api);
  await cache.open(false);
  const moved = { open: async () => ({ ...OPENED, base_url: "https://elsewhere.test/v1" }) };
  cache.keep(CALL, RESPONSE);
  await cache.settled();
  expect(await find(cacheAt(0, api, moved))).toBeNull();
  expect(await find(cacheAt(0, api))).toMatchObject({ from_cache: true });
});

const MANY_TEMPERATURES = { temperature: 0, extra_body: { temperature: 1 } };

test.each([
  ["another temperature", { ...CALL, sampling: { temperature: 0.1 } }, {}],
  ["another temperature in extra_body", { ...CALL, sampling: MANY_TEMPERATURES }, {}],
  ["the server's own temperature", { ...CALL, sampling: {} }, {}],
  ["the weights of a training run", CALL, { policy_version: 3 }],
  ["the weights of a fleet", CALL, { fleet: { id: "fl_1" } }],
  ["a run without the cache", CALL, { answer_cache: false }],
])("a call with %s is not cached", (_, call, more) => {
  const spec = { scope: platform.scope, run_id: "run", rollout_id: "rollout", answer_cache: true };
  const cacheOf = (of: typeof spec) =>
    new AnswerCache(
      env,
      of,
      async () => OPENED,
      new Subrequests(),
      () => 0,
    );
  expect(cacheOf(spec).holds(CALL)).toBe(true);
  expect(cacheOf({ ...spec, ...more }).holds(call)).toBe(false);
});

test("an answer above the limit of size is not kept", async () => {
  const api = await openPlatform();
  const content = "x".repeat(LIMITS.cachedAnswerBytes);
  await keep(cacheAt(0, api), CALL, { ...RESPONSE, message: { role: "assistant", content } });
  expect(await keysUnder(answersFolder(api.scope))).toEqual([]);
});

test("a store or a database that fails costs the cached answer, not the call", async () => {
  const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
  try {
    const store = new Proxy(env.STORE, { get: () => () => Promise.reject(new Error("R2 is down")) });
    expect(await find(cacheAt(0, platform, { store }))).toBeNull();
    await keep(cacheAt(0, platform, { store }));
    const down = { open: () => Promise.reject(new Error("D1 is down")) };
    expect(await find(cacheAt(0, platform, down))).toBeNull();
    expect(logged).toHaveBeenCalledTimes(4);
  } finally {
    logged.mockRestore();
  }
});
