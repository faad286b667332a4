/** Judges in runs: their questions, the results of their judgements, and the costs. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { RunView } from "../../../../src/contract/run.ts";
import { judgement, registerEssays, topics } from "../../essays.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../../platform.ts";
import { script } from "../../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
  await endpoint("bench", env.MODEL_URL);
});

async function endpoint(name: string, base_url: string, more: object = {}): Promise<void> {
  const made = await platform.post("/v1/endpoints", { name, base_url, probe: false, ...more });
  expect(made.status).toBe(201);
}

const ESSAY = script(["An essay."]);

function essayRun(judge: string, more: object = {}) {
  const judges = { default: { endpoint: "bench", model: judge } };
  return { environment: "essays", dataset: topics(2), model: ESSAY, judges, ...more };
}

function judgedRun(judge: string, more: object = {}): Promise<RunView> {
  return platform.finish(essayRun(judge, more));
}

const GOOD = judgement("good");

test("a judge's judgement is the score, and its cost is separate from the policy's", async () => {
  const judge = script([GOOD]);
  const run = await judgedRun(judge);
  expectLaw(run.counts);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 2, unscored: {} } });
  expect(run.report.reward.mean).toBe(1);
  expect(await requestsOf(judge, 2)).toHaveLength(2);
  expect(run.report.usage.judge).toMatchObject({ calls: 2 });
  expect(run.report.calls).toBe(2);
  const rollout = await platform.rollout(rolloutAt(run.id));
  expect(rollout.judgements).toEqual([
    expect.objectContaining({
      ...{ judge: "default", model: judge, verdict: "good", reason: "because" },
      ...{ error: null, pass: 0, seed: null, left_out: 0, cached: false, calls: 1, reply: GOOD },
    }),
  ]);
  const cost_micros = null;
  expect(rollout.usage.judge).toEqual({ ...rollout.judgements[0]?.usage, calls: 1, cost_micros });
  const [row] = await platform.results(run.id);
  expect(row?.judge_usage).toMatchObject({ calls: 1, output_tokens: expect.any(Number) });
  // This endpoint has no prices.
  expect([run.cost, rollout.cost, row?.judge_usage?.cost_micros]).toEqual([
    { policy_micros: null, judge_micros: null, charged_micros: 0 },
    { policy_micros: null, judge_micros: null, charged_micros: 0 },
    null,
  ]);
  const audit = await (await platform.ask(`/v1/runs/${run.id}/audit`)).json();
  expect(audit).toMatchObject({ violations: [] });
});

const PRICED = { input_per_mtok_micros: 150_000, output_per_mtok_micros: 600_000 };

test("judges cost money by the prices of their endpoint: on the judgement, the rollout, the row and the run", async () => {
  await endpoint("priced", env.MODEL_URL, { prices: PRICED });
  const usage = { prompt_tokens: 1000, completion_tokens: 101, total_tokens: 1101 };
  const judge = script([{ content: GOOD, usage }]);
  const judges = { default: { endpoint: "priced", model: judge } };
  const run = await judgedRun(judge, { judges });
  // 150 micro-dollars and 60.6, each judgement rounded.
  const cost_micros = 211;
  expect(run.cost).toMatchObject({ judge_micros: 2 * cost_micros });
  expect(run.report.usage.judge).toMatchObject({ calls: 2, cost_micros: 2 * cost_micros });
  const rollout = await platform.rollout(rolloutAt(run.id));
  expect(rollout).toMatchObject({
    cost: { judge_micros: cost_micros },
    usage: { judge: { cost_micros } },
    judgements: [{ cost_micros }],
  });
  expect(await platform.results(run.id)).toMatchObject([
    { judge_usage: { cost_micros } },
    { judge_usage: { cost_micros } },
  ]);
  const audit = await (await platform.ask(`/v1/runs/${run.id}/audit`)).json();
  expect(audit).toMatchObject({ violations: [] });
  // Known to cost nothing: it was paid for above.
  const again = await judgedRun(judge, { judges });
  expect(again.cost).toMatchObject({ judge_micros: 0 });
});

test("a reply without usage makes its cost unknown, and that of the run; a failed call costs nothing", async () => {
  await endpoint("dear", env.MODEL_URL, { prices: PRICED });
  const usage = { prompt_tokens: 1000, completion_tokens: 0, total_tokens: 1000 };
  const counted = { content: GOOD, usage };
  const down = { fault: { kind: "status", status: 503 }, times: 1, reply: counted } as const;
  const silent = { "Topic 1": [{ content: GOOD, usage: null }] };
  const judge = script([down], silent);
  const judges = { default: { endpoint: "dear", model: judge } };
  const run = await judgedRun(judge, { judges });
  expect(run.cost).toMatchObject({ judge_micros: null });
  const costs = (await platform.results(run.id)).map(({ group, judge_usage }) => [
    group,
    judge_usage?.calls,
    judge_usage?.cost_micros,
  ]);
  expect(costs.toSorted()).toEqual([
    [0, 2, 150],
    [1, 1, null],
  ]);
});

test("a judgement is paid for once in a project, and again in another, even of the same organisation", async () => {
  const judge = script([GOOD]);
  await judgedRun(judge, { dataset: topics(1) });
  const given = { endpoint: { base_url: env.MODEL_URL }, model: judge };
  const request = essayRun(judge, { judges: { default: given }, dataset: topics(1) });
  const found = await platform.finish(request);
  expect(found.counts).toMatchObject({ scored: 1 });
  expect(found.report.usage.judge).toBeUndefined();
  expect(await requestsOf(judge)).toHaveLength(1);
  for (const [asked, other] of [await openPlatform(platform.scope.orgId), await openPlatform()].entries()) {
    expect((await other.finish(request)).report.usage.judge?.calls).toBe(1);
    expect(await requestsOf(judge)).toHaveLength(2 + asked);
  }
});

test("a repeated question is not sent again, costs nothing, and is marked as cached; a run may switch the cache off", async () => {
  const judge = script([GOOD]);
  const first = await judgedRun(judge);
  const again = await judgedRun(judge);
  expect(again.report.reward).toEqual(first.report.reward);
  expect(again.report.usage.judge).toBeUndefined();
  expect((await platform.rollout(rolloutAt(again.id))).judgements).toMatchObject([
    { verdict: "good", reason: "because", reply: GOOD, cached: true, calls: 0, usage: { total_tokens: 0 } },
  ]);
  expect(await requestsOf(judge)).toHaveLength(2);
  const anew = await judgedRun(judge, { judge_cache: false, dataset: topics(1) });
  expect(anew.report.usage.judge?.calls).toBe(1);
  expect(await requestsOf(judge)).toHaveLength(3);
});

test("R-judge-2: the judge's sampling is sent without nulls, with max_completion_tokens; other sampling makes it another judge", async () => {
  const judge = script([GOOD]);
  const sampling = { top_p: 1, max_tokens: 5, temperature: null };
  const dataset = topics(1);
  await judgedRun(judge, { dataset });
  await judgedRun(judge, {
    ...{ dataset, judges: { default: { endpoint: "bench", model: judge, sampling } } },
  });
  const sent = (await requestsOf(judge)).map((seen) => seen.sampling);
  expect(sent).toEqual([{}, { top_p: 1, max_completion_tokens: 5 }]);
});

test("a judge that is busy, down or broken is called again under the same key, and the judgement counts once", async () => {
  const faults = {
    "Topic 0": { kind: "status", status: 429 },
    "Topic 1": { kind: "status", status: 503 },
    "Topic 2": { kind: "garbage" },
  } as const;
  const failing = Object.entries(faults).map(([topic, fault]) => {
    return [topic, [{ fault, times: 1, reply: GOOD }]] as const;
  });
  const judge = script([GOOD], Object.fromEntries(failing));
  const run = await judgedRun(judge, { dataset: topics(3) });
  expect(run.counts).toMatchObject({ scored: 3, unscored: {} });
  expect(run.report.usage.judge?.calls).toBe(6);
  const asked = await requestsOf(judge);
  expect(asked).toHaveLength(6);
  expect(new Set(asked.map(({ idempotency_key }) => idempotency_key)).size).toBe(3);
  const { judgements } = await platform.rollout(rolloutAt(run.id));
  expect(judgements).toMatchObject([{ verdict: "good", calls: 2 }]);
});

test("a judge that never gives an allowed answer leaves its rollout without a score, not with 0, and is charged", async () => {
  const judge = script([GOOD], { "Topic 1": [judgement("splendid")] });
  const run = await judgedRun(judge, { limits: { max_retries: 1 }, min_scored: 0.5 });
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ scored: 1, unscored: { judge: 1 } });
  expect(run.report.reward).toMatchObject({ mean: 1, n_unscored: 1 });
  expect(run.report.usage.judge?.calls).toBe(3);
  const rollout = await platform.rollout(rolloutAt(run.id, 1));
  expect(rollout).toMatchObject({ outcome: "unscored", reason: "judge", reward: null });
  expect(rollout.scoring_errors).toMatchObject([{ function: "quality", retryable: true }]);
  expect(rollout.judgements).toMatchObject([
    { verdict: null, error: expect.stringContaining("splendid"), reply: judgement("splendid"), calls: 2 },
  ]);
  expect(rollout.judgements[0]?.usage.total_tokens).toBeGreaterThan(0);
});

test("a judge's endpoint may be sent with the run, and an error in it is named by its field", async () => {
  const judge = script([GOOD]);
  const given = { endpoint: { base_url: env.MODEL_URL, api_key: "sk-judge" }, model: judge };
  const run = await judgedRun(judge, { judges: { default: given }, dataset: topics(1) });
  expect(run.counts).toMatchObject({ scored: 1 });
  expect(run.judges).toEqual({
    default: { endpoint: expect.stringMatching(/^ep_/), model: judge },
  });
  expect(await requestsOf(judge)).toMatchObject([{ authorization: "Bearer sk-judge" }]);
  const nowhere = { ...given, endpoint: { base_url: "ftp://h/v1" } };
  const refused = await platform.post("/v1/runs", {
    ...essayRun(judge, { judges: { default: nowhere } }),
    endpoint: { base_url: env.MODEL_URL },
  });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({
    error: { param: "judges.default.endpoint.base_url" },
  });
});

test("a judge that refuses its key ends the run, as the policy's endpoint does", async () => {
  const judge = script([{ fault: { kind: "status", status: 401 } }]);
  const run = await judgedRun(judge, { dataset: topics(40), max_concurrent: 2 });
  expectLaw(run.counts);
  expect(run).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  expect(run.error?.message).toContain("the judge default");
  expect(run.counts.pending).toBeGreaterThan(0);
});

test("a retry scores unscored rollouts from stored judgements, and requests only the missing one", async () => {
  await endpoint("away", "http://127.0.0.1:9/v1");
  const [lenient, strict] = [script([GOOD]), script([GOOD])];
  const judges = {
    default: { endpoint: "bench", model: lenient },
    strict: { endpoint: "away", model: strict },
  };
  const policy = script(["An essay on style."]);
  const run = await judgedRun(lenient, {
    ...{ judges, model: policy, environment_args: { strict: true }, judge_cache: false },
    limits: { max_retries: 0 },
  });
  expect(run.counts).toMatchObject({ unscored: { judge: 2 } });
  const moved = { method: "PATCH", body: JSON.stringify({ base_url: env.MODEL_URL }) };
  const headers = { "content-type": "application/json" };
  expect((await platform.ask("/v1/endpoints/away", { ...moved, headers })).status).toBe(200);
  expect((await platform.post(`/v1/runs/${run.id}/retry`, {})).status).toBe(200);
  const after = await platform.ended(run.id);
  expect(after.counts).toMatchObject({ scored: 2, unscored: { judge: 2 } });
  expect(after.report.reward.mean).toBe(2);
  expect(await requestsOf(policy)).toHaveLength(2);
  expect(await requestsOf(lenient)).toHaveLength(2);
  expect(await requestsOf(strict)).toHaveLength(2);
});

test("a finished run can be judged again by another judge, without calling the policy", async () => {
  const [harsh, kind] = [script([judgement("bad")]), script([GOOD])];
  const model = script(["An essay."]);
  const run = await judgedRun(harsh, { model, dataset: topics(1) });
  expect(run.report.reward.mean).toBe(0);
  const judges = { default: { endpoint: "bench", model: kind } };
  const asked = await platform.post(`/v1/runs/${run.id}/rescore`, { judges });
  expect(asked.status).toBe(202);
  const anew = await platform.ended((await asked.json<RunView>()).id);
  expect(anew.report).toMatchObject({ reward: { mean: 1 }, usage: { judge: { calls: 1 } } });
  expect(await requestsOf(model)).toHaveLength(1);
});

test("a group is ranked together, with one call per pass, and each member gets its own result", async () => {
  const judge = script([], {}, { ranks: true });
  const model = script([], {}, { slots: ["aa", "aaaa", "a"] });
  const judges = { default: { endpoint: "bench", model: judge } };
  const run = await platform.finish({
    ...{ environment: "ranked-essays", dataset: topics(1), model, judges, rollouts_per_example: 3 },
  });
  expect(run.counts).toMatchObject({ scored: 3 });
  const rewards = (await platform.results(run.id)).map(({ slot, reward }) => [slot, reward]);
  expect(Object.fromEntries(rewards)).toEqual({ 0: 0.5, 1: 1, 2: 0.25 });
  expect(run.report.metrics).toMatchObject({ best_spread: { mean: 0 } });
  expect(run.report.usage.judge?.calls).toBe(2);
  const ids = (await platform.results(run.id)).map(({ rollout_id }) => rollout_id);
  const views = await Promise.all(ids.map((id) => platform.rollout(id)));
  const seeds = views.flatMap(({ judgements }) => judgements.map(({ seed }) => seed));
  expect(seeds).toEqual([expect.any(Number), expect.any(Number)]);
});
