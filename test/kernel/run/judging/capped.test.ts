/** Judges of runs with `max_cost_micros`: what a claim may spend, what it returns, and what ends without judges. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { LIMITS } from "../../../../src/contract/limits.ts";
import { NO_CALLS } from "../../../../src/core/costs/call-budget.ts";
import { Subrequests } from "../../../../src/kernel/kit/subrequests.ts";
import { takeAsks } from "../../../../src/kernel/run/cap.ts";
import {
  reconcileJudging,
  requestJudgements,
  takeScoringGroup,
} from "../../../../src/kernel/run/judging/scoring-group-state.ts";
import { ACCOUNTING_HOOKS } from "../../../../src/kernel/run/object.ts";
import { RunStore } from "../../../../src/kernel/run/store.ts";
import { judgeScoringGroup } from "../../../../src/kernel/scoring/consume-judgements.ts";
import { judgement, registerEssays, topics } from "../../essays.ts";
import { owing } from "../../owing-scoring-group.ts";
import { expectLaw, openPlatform, requestsOf, type TestApi } from "../../platform.ts";
import { byHand, type Hand } from "../../run-by-hand.ts";
import { script } from "../../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
});

const FREE = { input_per_mtok_micros: 0, output_per_mtok_micros: 0 };
const PRICED = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 1_000_000 };
const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
const GOOD = { content: judgement("good"), usage };

function essays(judge: string, more: object = {}) {
  const target = { endpoint: { base_url: env.MODEL_URL, prices: PRICED }, model: judge, sampling: { max_tokens: 50 } };
  return {
    environment: "essays",
    dataset: topics(4),
    endpoint: { base_url: env.MODEL_URL, prices: FREE },
    sampling: { max_tokens: 50 },
    model: script(["An essay."]),
    judges: { default: target },
    judge_cache: false,
    min_scored: 0,
    ...more,
  };
}

test("a judge needs a bound and prices like the policy", async () => {
  const refusal = async (target: object) => {
    const request = essays("j", { max_cost_micros: 1_000_000, judges: { default: target } });
    const reply = await platform.post("/v1/runs", request);
    const { error } = await reply.json<{ error: { code: string; param: string } }>();
    return [reply.status, error.code, error.param];
  };
  const endpoint = { base_url: env.MODEL_URL, prices: PRICED };
  const unbounded = [422, "max_tokens_required", "judges.default.sampling.max_tokens"];
  expect(await refusal({ endpoint, model: "j" })).toEqual(unbounded);
  const more = { max_tokens: 5, extra_body: { num_return_sequences: 9 } };
  const named = [400, "invalid_request", "judges.default.sampling.extra_body.num_return_sequences"];
  expect(await refusal({ endpoint, model: "j", sampling: more })).toEqual(named);
  const unpriced = [422, "prices_required", "judges.default.endpoint"];
  const bare = { base_url: env.MODEL_URL };
  expect(await refusal({ endpoint: bare, model: "j", sampling: { max_tokens: 5 } })).toEqual(unpriced);
});

test("the costs of judges count against the cap, including those of repeated questions", async () => {
  const judge = script([{ fault: { kind: "status", status: 503 }, times: 1, reply: GOOD }]);
  const run = await platform.finish(essays(judge, { max_cost_micros: 1_000_000 }));
  expect(run.counts.scored).toBe(4);
  expect(run.report).toMatchObject({ counted_micros: 4 * 120, usage: { judge: { calls: 8 } } });
  expect(run.report.usage.lost).toBeUndefined();
});

test("a judge's reply that never arrived is lost usage", async () => {
  const judge = script([{ fault: { kind: "reset" }, times: 1, reply: GOOD }]);
  const run = await platform.finish(essays(judge, { dataset: topics(1), max_cost_micros: 1_000_000 }));
  expect(run.counts.scored).toBe(1);
  const { lost } = run.report.usage;
  expect(lost?.calls).toBe(1);
  expect(run.report.counted_micros).toBe(120 + (lost?.micros ?? 0));
});

test("rollouts whose judges the cap does not cover end cancelled (budget), and the others are scored", async () => {
  const judge = script([GOOD]);
  // A claim reserves three tries of about 1,060 tokens each, and uses 120 tokens.
  const request = essays(judge, { dataset: topics(12), max_cost_micros: 3900 });
  const run = await platform.finish(request);
  expectLaw(run.counts);
  expect(run.counts.scored).toBeGreaterThan(0);
  expect(run.counts.cancelled["budget"]).toBeGreaterThan(0);
  expect(run.report.counted_micros).toBe(120 * run.counts.scored);
  expect(await requestsOf(judge)).toHaveLength(run.counts.scored);
});

const MONEY = { payer: "key_a", prices: null, policy: PRICED, max_cost_micros: 10_000 };
const JUDGES = { default: { endpoint_id: "ep_1", model: "j", sampling: {}, prices: PRICED } };
const BY = { id: "m1", attempt: 1 };
const NEEDS = { unit: 1, endpoint_id: "ep_1", calls: 1, bound_micros: 3000 };

/** A scoring group that was sent to be judged. */
function sent(run: Hand): void {
  run.dispatch(1);
  run.answer();
  requestJudgements(run.store, run.spec, [NEEDS], run.now);
  run.store.judging.setScoringGroup(1, { stage: "sent", lanes: 1 });
}

test("a claim taken over by a later delivery of its message counts as having spent its whole reservation", async () => {
  await byHand({ money: MONEY, judges: JUDGES, num_examples: 1, rollouts_per_example: 1 }, (run) => {
    sent(run);
    expect(takeScoringGroup(run.store, run.spec, { unit: 1, by: BY }, run.now)?.allowance_micros).toBe(3000);
    expect(run.store.head().cap).toMatchObject({ spent: 0, out: 3000 });
    const again = takeScoringGroup(run.store, run.spec, { unit: 1, by: { ...BY, attempt: 2 } }, run.now + 1);
    expect(again?.allowance_micros).toBe(3000);
    expect(run.store.head().cap).toMatchObject({ spent: 3000, out: 3000 });
  });
});

test("a silent claim counts as having spent its whole reservation, a returned one what it reports", async () => {
  await byHand({ money: MONEY, judges: JUDGES, num_examples: 1, rollouts_per_example: 1 }, (run) => {
    sent(run);
    const taken = takeScoringGroup(run.store, run.spec, { unit: 1, by: BY }, run.now);
    const spent = { micros: 700, lost: { calls: 1, micros: 500 } };
    const given = { ...NEEDS, claim: taken?.claim ?? 0, spent };
    requestJudgements(run.store, run.spec, [given, given], run.now);
    expect(run.store.head().cap).toMatchObject({ spent: 700, out: 0 });
    run.store.judging.setScoringGroup(1, { stage: "sent", lanes: 1 });
    takeScoringGroup(run.store, run.spec, { unit: 1, by: BY }, run.now);
    reconcileJudging(run.store, run.spec, run.now + 1_000_000_000, 10);
    expect(run.store.head().cap).toMatchObject({ spent: 3700, out: 0 });
  });
});

test("a claim that exceeded its queue's work limit returns its money, and the next one gets the same reservation", async () => {
  await byHand({ money: MONEY, judges: JUDGES, num_examples: 1, rollouts_per_example: 1 }, (run) => {
    sent(run);
    const taken = takeScoringGroup(run.store, run.spec, { unit: 1, by: BY }, run.now);
    const { bound_micros: _, ...scoringGroup } = NEEDS;
    const given = { ...scoringGroup, claim: taken?.claim ?? 0, heavy: true, spent: { micros: 0, lost: NO_CALLS } };
    requestJudgements(run.store, run.spec, [given], run.now);
    expect(run.store.head().cap).toMatchObject({ spent: 0, out: 0 });
    run.store.judging.setScoringGroup(1, { stage: "sent", lanes: 1 });
    const next = takeScoringGroup(run.store, run.spec, { unit: 1, by: { ...BY, pace: "slow" } }, run.now);
    expect(next?.allowance_micros).toBe(3000);
    expect(run.store.head().cap).toMatchObject({ spent: 0, out: 3000 });
  });
});

test("a claim that fails before its first call returns its whole reservation", async () => {
  const bench = { name: "bench", base_url: env.MODEL_URL, probe: false };
  expect((await platform.post("/v1/endpoints", bench)).status).toBe(201);
  const judge = script([GOOD]);
  const { id, asked } = await owing(platform, judge, judge, { money: MONEY, bound_micros: 3000 });
  const subrequests = new Subrequests();
  // After the scoring group is taken no subrequest is left to read the trajectory.
  while (subrequests.count < LIMITS.subrequests - 1) await subrequests.object(() => Promise.resolve());
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1, members: 1 } as const;
  await judgeScoringGroup(env, message, BY, subrequests);
  const [scoringGroups, { cap }] = await platform.inRun(id, (_, { storage }) => [
    storage.sql.exec("select stage, losses, allowance, spent_micros, lost_calls from judging").toArray(),
    new RunStore(storage, ACCOUNTING_HOOKS).head(),
  ]);
  const scoringGroup = { stage: "waiting", losses: 1, allowance: 0, spent_micros: 0, lost_calls: 0 };
  expect(scoringGroups).toEqual([scoringGroup]);
  expect(cap).toMatchObject({ spent: 0, out: 0 });
  expect(await requestsOf(judge)).toHaveLength(asked);
});

test("a scoring group that the rest of the cap does not cover is not taken, and costs nothing", async () => {
  await byHand(
    { money: { ...MONEY, max_cost_micros: 2999 }, judges: JUDGES, num_examples: 1, rollouts_per_example: 1 },
    (run) => {
      sent(run);
      expect(takeScoringGroup(run.store, run.spec, { unit: 1, by: BY }, run.now)).toBeNull();
      expect(run.store.judging.scoringGroup(1)).toMatchObject({ stage: "waiting", allowance: 0 });
      expect(run.store.head().cap).toMatchObject({ spent: 0, out: 0 });
    },
  );
});

test("a ceiling is written before its reply: a repeated request gets the same, and an earlier one is void", async () => {
  await byHand({ money: MONEY, num_examples: 2, rollouts_per_example: 1 }, (run) => {
    run.dispatch(2);
    const ask = { group: 0, slot: 0, attempt: 0, asks: 1, spent: 0, need: 1000, wish: 4000 };
    const [told] = takeAsks(run.store, run.spec, [ask]);
    expect(told).toEqual({ ceiling: 4000 });
    expect(takeAsks(run.store, run.spec, [ask])).toEqual([told]);
    const greedy = { ...ask, group: 1, need: 9000, wish: 9000 };
    expect(takeAsks(run.store, run.spec, [greedy])).toEqual([{ ceiling: null }]);
    // The next request frees what the first has not spent; an earlier request changes nothing.
    const next = { ...ask, asks: 2, spent: 500, need: 9000, wish: 9000 };
    expect(takeAsks(run.store, run.spec, [next, ask])).toEqual([{ ceiling: 9500 }, { ceiling: null }]);
    expect(run.store.head().cap).toMatchObject({ spent: 0, out: 9500 });
  });
});

test("a rollout that is given up counts as having spent its whole reservation", async () => {
  await byHand({ money: MONEY, num_examples: 1, rollouts_per_example: 1 }, async (run) => {
    const { giveUp } = await import("../../../../src/kernel/run/accounting.ts");
    run.dispatch(1);
    takeAsks(run.store, run.spec, [{ group: 0, slot: 0, attempt: 0, asks: 1, spent: 0, need: 1000, wish: 4000 }]);
    const [row] = run.rows("running");
    if (row === undefined) throw new Error("nothing runs");
    const gone = { from: "running", outcome: "failed", reason: "platform", message: "gone" } as const;
    giveUp(run.store, run.spec, row, gone, run.now);
    expect(run.store.head().cap).toMatchObject({ spent: 4000, out: 0 });
    expect(
      takeAsks(run.store, run.spec, [{ group: 0, slot: 0, attempt: 0, asks: 2, spent: 0, need: 1, wish: 1 }]),
    ).toEqual([{ ceiling: null, over: true }]);
  });
});
