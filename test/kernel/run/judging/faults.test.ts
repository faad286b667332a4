/** Faults that judging survives: lost and repeated messages, a process that dies, a cancel; and its limits. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import { Subrequests } from "../../../../src/kernel/kit/subrequests.ts";
import { MOST_LOSSES, MOST_UNHEARD, SENT_MS } from "../../../../src/kernel/run/judging/scoring-group-state.ts";
import { judgementQueue } from "../../../../src/kernel/run/queues.ts";
import { judgeScoringGroup } from "../../../../src/kernel/scoring/consume-judgements.ts";
import { NO_MEMORY_MS } from "../../../../src/kernel/scoring/held-trajectories.ts";
import { judgement, registerEssays } from "../../essays.ts";
import { deliver, interposed } from "../../hand-made.ts";
import { MEMORY } from "../../memory-budget.ts";
import { essayRun, owing, takenTwice } from "../../owing-scoring-group.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../../platform.ts";
import { script } from "../../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
  const bench = { name: "bench", base_url: env.MODEL_URL, probe: false };
  expect((await platform.post("/v1/endpoints", bench)).status).toBe(201);
  const narrow = { ...bench, name: "narrow", max_concurrent: 2 };
  expect((await platform.post("/v1/endpoints", narrow)).status).toBe(201);
});

const GOOD = judgement("good");
const HANGING = { fault: { kind: "hang" }, times: 1, reply: GOOD } as const;
const MINUTE = 60_000;
const FIRST = { id: "message", attempt: 1 };

test("a lost judgement message is sent again, and the judge is called once", async () => {
  const judge = script([GOOD]);
  const { id, within, judgements, asked } = await owing(platform, judge);
  expect(judgements.given).toMatchObject([{ kind: "judgement", unit: 1, members: 1 }]);
  await within((run) => run.alarm());
  expect(judgements.given).toHaveLength(1);
  judgements.losing = false;
  await within(async (run) => {
    run.now = () => Date.now() + SENT_MS + 1;
    await run.alarm();
  });
  expect(judgements.given).toHaveLength(2);
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 1, unscored: {} });
  expect(await requestsOf(judge)).toHaveLength(asked + 1);
});

test("the scoring groups of a run are distributed over the queues, each always to the same one", () => {
  const queues = Array.from({ length: 8 }, (_, scoringGroup) =>
    judgementQueue(env, { run_id: "r", unit: scoringGroup }),
  );
  expect(new Set(queues.slice(0, 4)).size).toBe(4);
  expect(queues.slice(4)).toEqual(queues.slice(0, 4));
});

test("a scoring group that is never taken ends without a score because of its judging", async () => {
  const { id, within } = await owing(platform, script([GOOD]));
  for (let tries = 0; tries <= MOST_UNHEARD; tries += 1) {
    await platform.inRun(id, (_, { storage }) => storage.sql.exec("update judging set ask_at = 0"));
    await within((run) => run.alarm());
  }
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ scored: 0, unscored: { judge: 1 } });
});

test("a judgement message that arrives twice, or late, causes no second call, and its judgement is charged once", async () => {
  const judge = script([GOOD]);
  const { id, asked } = await owing(platform, judge);
  const message = {
    kind: "judgement",
    scope: platform.scope,
    run_id: id,
    unit: 1,
    members: 1,
  } as const;
  expect(await deliver("rollout-judgements", [message, message])).toHaveLength(2);
  const first = await platform.ended(id);
  expect(first.counts).toMatchObject({ scored: 1 });
  expect(await deliver("rollout-judgements", [message])).toEqual(["0"]);
  expect(await requestsOf(judge)).toHaveLength(asked + 1);
  const again = await platform.run(id);
  expect(again.report.usage.judge).toEqual(first.report.usage.judge);
  expect(again.report.usage.judge?.calls).toBe(1);
});

test("a judgement whose acknowledgement was lost is sent again, and charged once", async () => {
  const usage = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 };
  const judge = script([{ content: GOOD, usage }]);
  const { id, asked } = await owing(platform, judge);
  let told = 0;
  const RUN = interposed(env.RUN, "judged", async (call) => {
    const reply = await call();
    told += 1;
    if (told === 1) throw new Error("the reply was lost");
    return reply;
  });
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1 } as const;
  await judgeScoringGroup({ ...env, RUN }, { ...message, members: 1 }, FIRST, new Subrequests());
  expect(told).toBe(2);
  const ended = await platform.ended(id);
  expect(ended.counts).toMatchObject({ scored: 1 });
  expect(ended.report.usage.judge).toMatchObject({ ...usage, calls: 1 });
  expect(await requestsOf(judge)).toHaveLength(asked + 1);
});

test("a scoring group whose consumer fails is returned, counted as lost once, and waits", async () => {
  const { id } = await owing(platform, script([GOOD]));
  const RUN = interposed(env.RUN, "judged", () => Promise.reject(new Error("the run is away")));
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1, members: 1 } as const;
  const began = Date.now();
  await judgeScoringGroup({ ...env, RUN }, message, FIRST, new Subrequests());
  const [scoringGroup] = await platform.inRun(id, (_, { storage }) =>
    storage.sql.exec<{ ask_at: number }>("select stage, losses, ask_at from judging").toArray(),
  );
  expect(scoringGroup).toMatchObject({ stage: "waiting", losses: 1 });
  expect(scoringGroup?.ask_at).toBeGreaterThanOrEqual(began + 5000);
});

test("a scoring group without memory for its trajectories is returned, counts no loss, and calls its judge later", async () => {
  const judge = script([GOOD]);
  const { id, within, judgements, asked } = await owing(platform, judge);
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1, members: 1 } as const;
  const held = MEMORY.trajectories.take(platform.scope.orgId, Date.now(), MEMORY.trajectories.bytes.mostOfOne);
  const began = Date.now();
  await judgeScoringGroup(env, message, FIRST, new Subrequests());
  held?.leave();
  const [scoringGroup] = await platform.inRun(id, (_, { storage }) =>
    storage.sql.exec<{ ask_at: number }>("select stage, losses, ask_at from judging").toArray(),
  );
  expect(scoringGroup).toMatchObject({ stage: "waiting", losses: 0 });
  expect(scoringGroup?.ask_at).toBeGreaterThanOrEqual(began + NO_MEMORY_MS);
  expect(await requestsOf(judge)).toHaveLength(asked);
  judgements.losing = false;
  await within(async (run) => {
    run.now = () => Date.now() + NO_MEMORY_MS;
    await run.alarm();
  });
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 1, unscored: {} });
});

test("trajectories are not in memory while a judge is asked, and are read again for the scores", async () => {
  const { id } = await owing(platform, script([GOOD]));
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1, members: 1 } as const;
  const held: number[] = [];
  const RUN = interposed(env.RUN, "judged", (call) => {
    held.push(MEMORY.trajectories.bytes.held);
    return call();
  });
  const takes = vi.spyOn(MEMORY.trajectories, "take");
  await judgeScoringGroup({ ...env, RUN }, message, FIRST, new Subrequests());
  expect([held, takes.mock.calls.length]).toEqual([[0], 2]);
  expect(MEMORY.trajectories.bytes.held).toBe(0);
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 1 });
});

test("a lost answer after a claim costs one more delivery of the message, not the time of the claim", async () => {
  const judge = script([GOOD]);
  const { id, asked } = await owing(platform, judge);
  const RUN = interposed(env.RUN, "takeJudging", async (call) => {
    await call();
    throw new Error("the answer was lost");
  });
  const { scope } = platform;
  const message = { kind: "judgement", scope, run_id: id, unit: 1, members: 1 } as const;
  const lost = judgeScoringGroup({ ...env, RUN }, message, FIRST, new Subrequests());
  await expect(lost).rejects.toThrow("the answer was lost");
  // A copy of the message, or the same delivery again, gets nothing; the next delivery takes the claim over.
  await judgeScoringGroup(env, message, { id: "copy", attempt: 2 }, new Subrequests());
  await judgeScoringGroup(env, message, FIRST, new Subrequests());
  expect(await requestsOf(judge)).toHaveLength(asked);
  await judgeScoringGroup(env, message, { ...FIRST, attempt: 2 }, new Subrequests());
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 1 });
  expect(await requestsOf(judge)).toHaveLength(asked + 1);
});

test("a scoring group that is long in its queue is sent again and again, keeps its lease, and none of it counts as a failure", async () => {
  const judge = script([GOOD]);
  const { id, within, judgements } = await owing(platform, judge);
  const before = await unitOf(id);
  const sends = await within(async (run) => {
    let at = Date.now();
    const times: number[] = [];
    for (let wait = SENT_MS; wait <= 8 * SENT_MS; wait *= 2) {
      at += wait;
      run.now = () => at - 1;
      await run.alarm();
      run.now = () => at;
      await run.alarm();
      times.push(judgements.given.length);
    }
    return times;
  });
  expect(sends).toEqual([2, 3, 4, 5]);
  expect(await unitOf(id)).toMatchObject({ ...before, unheard: 4, ask_at: expect.any(Number) });
});

test("a consumer that lost its claim gets that as the reply, and its judgement and its return do not count", async () => {
  const { id, within } = await owing(platform, script([GOOD]));
  const [first, second] = await takenTwice(platform, id, within);
  const { endpoint_id, calls } = first;
  const ask = { key: "k", judge: "default", pass: 0, rollout_id: null, left_out: 0, seed: null };
  const given = (value: string) => ({
    ...ask,
    outcome: { kind: "given" as const, value, reason: null, usage: null },
  });
  const known = ["k", { value: "good", reason: null }];
  expect(await within((run) => run.judged(1, second.claim, [given("good")]))).toEqual({
    ...{ settled: [known], next_at: null, go_on: true, over: false },
  });
  const held = await unitOf(id);
  expect(held).toMatchObject({ stage: "claimed", claim: second.claim });
  const late = await within((run) => {
    const now = Date.now() + MINUTE;
    run.now = () => now;
    run.requestJudgements([{ unit: 1, claim: first.claim, endpoint_id, calls, failed: true }]);
    return run.judged(1, first.claim, [given("bad")]);
  });
  expect(late).toEqual({ settled: [known], next_at: null, go_on: false, over: false });
  expect(await unitOf(id)).toEqual(held);
});

/** The scoring group's row, as the run stores it. */
function unitOf(id: string): Promise<object> {
  return platform.inRun(id, (_, { storage }) => storage.sql.exec("select * from judging where unit = 1").one());
}

test("if a process dies during judging the next one continues, and requests only what is missing", async () => {
  const judge = script([GOOD], { "Topic 1": [HANGING] });
  const run = await platform.start(essayRun(judge, 2, { limits: { call_timeout_s: 2 } }));
  await firstEnd(run.id);
  await requestsOf(judge, 2);
  await abortAllDurableObjects();
  await platform.inRun(run.id, async (object) => {
    await object.alarm();
    // After a restart the claim is sent again soon, not after its whole time.
    object.now = () => Date.now() + 6000;
    await object.alarm();
    object.now = () => Date.now();
  });
  const ended = await platform.ended(run.id);
  expectLaw(ended.counts);
  expect(ended.counts).toMatchObject({ scored: 2, unscored: {}, failed: {} });
  const keys = (await requestsOf(judge)).map(({ idempotency_key }) => idempotency_key);
  const times = [...new Set(keys)].map((key) => keys.filter((other) => other === key).length);
  // The stored judgement was not requested again; the lost call was repeated under its key.
  expect(Math.min(...times)).toBe(1);
  expect(Math.max(...times)).toBeGreaterThan(1);
  expect(times).toHaveLength(2);
});

/** Resolves when the first rollout of the run has ended. */
async function firstEnd(id: string): Promise<void> {
  for (let after = 0; ; ) {
    const read = await platform.inRun(id, (object) => object.events(after, 10_000));
    const events = read?.events ?? [];
    if (events.some(({ event }) => event === "rollout.finished")) return;
    after = events.at(-1)?.id ?? after;
  }
}

test("a judgement that arrives after the run's object was lost is stored by its next instance", async () => {
  const judge = script([HANGING]);
  const limits = { call_timeout_s: 1 };
  const run = await platform.start(essayRun(judge, 1, { limits, judge_cache: false }));
  await requestsOf(judge, 1);
  await abortAllDurableObjects();
  const ended = await platform.ended(run.id);
  expect(ended.counts).toMatchObject({ scored: 1 });
  expect(await requestsOf(judge)).toHaveLength(2);
  expect(ended.report.usage.judge?.calls).toBe(2);
});

test("a scoring group that needs all subrequests for reading still gets judged, one judgement at a time", async () => {
  const judge = script([GOOD]);
  const { id, asked } = await owing(platform, judge);
  const subrequests = new Subrequests();
  for (let read = 0; read < 400; read += 1) await subrequests.object(() => Promise.resolve());
  const { scope } = platform;
  const message = { kind: "judgement", scope, run_id: id, unit: 1, members: 1 } as const;
  await judgeScoringGroup(env, message, FIRST, subrequests);
  expect(await requestsOf(judge)).toHaveLength(asked + 1);
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 1 });
});

test("concurrent judge calls stay within their endpoint's limit, and a cancelled run makes no further ones", async () => {
  const judge = script([HANGING]);
  const judges = { default: { endpoint: "narrow", model: judge } };
  const limits = { call_timeout_s: 2, max_retries: 0 };
  const run = await platform.start(essayRun(judge, 5, { judges, limits }));
  await requestsOf(judge, 1);
  expect((await platform.ask("/v1/endpoints/narrow", { method: "DELETE" })).status).toBe(409);
  const asking = await platform.inRun(run.id, (_, { storage }) =>
    storage.sql.exec("select ifnull(sum(lanes), 0) as n from judging").one(),
  );
  expect(asking["n"]).toBeLessThanOrEqual(2);
  expect((await platform.post(`/v1/runs/${run.id}/cancel`, {})).status).toBe(200);
  const ended = await platform.ended(run.id);
  expectLaw(ended.counts);
  expect(ended).toMatchObject({ status: "cancelled", counts: { scored: 0, unscored: {} } });
  expect(ended.counts.cancelled).toEqual({ user: 5 });
  const { length: asked } = await requestsOf(judge);
  expect(asked).toBeLessThanOrEqual(2);
  // Calls in flight are charged.
  expect(ended.report.usage.judge?.calls).toBe(asked);
});

test("a judge's timeout ends no call to another judge of the scoring group", async () => {
  const single = { name: "single", base_url: env.MODEL_URL, probe: false, max_concurrent: 1 };
  expect((await platform.post("/v1/endpoints", single)).status).toBe(201);
  const [slow, other] = [script([{ fault: { kind: "hang" } }]), script([GOOD])];
  const judges = { default: { endpoint: "single", model: slow }, strict: { endpoint: "single", model: other } };
  const limits = { call_timeout_s: 1, max_retries: 0 };
  const asked = { environment_args: { strict: true }, judges, limits, judge_cache: false };
  const run = await platform.finish(essayRun(slow, 1, asked));
  expect(run.counts.unscored).toEqual({ judge: 1 });
  expect(await requestsOf(other)).toHaveLength(1);
  expect(run.report.usage.judge?.calls).toBe(2);
});

test("a scoring group whose consumers die while they wait for a judge is given up, however often they checked", async () => {
  const { id, within } = await owing(platform, script([GOOD]));
  for (let losses = 0; losses <= MOST_LOSSES; losses += 1) {
    const taken = await within((run) => run.takeJudging(1, { id: `consumer ${losses}`, attempt: 1 }));
    if (taken === null) break;
    expect(await within((run) => run.judged(1, taken.claim, []))).toMatchObject({ go_on: true, over: false });
    await platform.inRun(id, (_, { storage }) => storage.sql.exec("update judging set ask_at = 0"));
    await within((run) => run.alarm());
  }
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 0, unscored: { judge: 1 } });
});

test("a call to a hanging judge is aborted when its run is cancelled, and frees its place", async () => {
  const judge = script([{ fault: { kind: "hang" } }]);
  const { id, asked } = await owing(platform, script([GOOD]), judge);
  const message = { kind: "judgement", scope: platform.scope, run_id: id, unit: 1, members: 1 } as const;
  const subrequests = new Subrequests();
  const judging = judgeScoringGroup(env, message, FIRST, subrequests, 1);
  await requestsOf(judge, asked + 1);
  // The scoring group, its trajectories, the call, and some checks that it is still wanted.
  await expect.poll(() => subrequests.count).toBeGreaterThan(6);
  await platform.post(`/v1/runs/${id}/cancel`, {});
  await judging;
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts.scored).toBe(0);
  expect(await requestsOf(judge)).toHaveLength(asked + 1);
});

test("a judgement whose content the run's store refuses leaves no score, and is not requested again", async () => {
  const judge = script([HANGING]);
  const limits = { call_timeout_s: 1, max_retries: 1 };
  const { id } = await platform.start(essayRun(judge, 1, { limits, min_scored: 0 }));
  await requestsOf(judge, 1);
  await platform.inRun(id, (_, { storage }) => {
    storage.sql.exec(`create trigger too_large before insert on verdicts
      when new.verdict like '%good%' begin select raise(abort, 'too large'); end`);
  });
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts).toMatchObject({ scored: 0, unscored: { judge: 1 } });
  expect((await requestsOf(judge)).length).toBe(2);
  const { scoring_errors } = await platform.rollout(rolloutAt(id));
  expect(JSON.stringify(scoring_errors)).toContain("its judgement could not be stored: too large");
});
