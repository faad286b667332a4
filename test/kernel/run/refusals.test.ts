/** Replies of 403: one refused prompt fails its rollout, and a key with which no call succeeds ends the run. */
import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import { PermissionDeniedError, serializeError } from "../../../src/contract/errors.ts";
import type { RunView } from "../../../src/contract/run.ts";
import type { ReportedOutcome } from "../../../src/kernel/messages/judge-outcome.ts";
import type { RolloutEntry } from "../../../src/kernel/messages/run-records.ts";
import { answer } from "../../../src/kernel/run/accounting.ts";
import { takeResults } from "../../../src/kernel/run/judging/scoring-group-state.ts";
import { remainingToBegin } from "../../../src/kernel/run/refusals.ts";
import type { Fault } from "../../fakes/scripted-model.ts";
import { insertFleet } from "../../fleets/rows.ts";
import { WAIT } from "../../hang-limits.ts";
import { judgement, registerEssays, topics } from "../essays.ts";
import { expectLaw, openPlatform, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { byHand, type Hand } from "../run-by-hand.ts";
import { reportOf } from "../run-rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  registerEssays();
  platform = await openPlatform();
});

const refusal = (body?: unknown): Fault => ({ kind: "status", status: 403, ...(body !== undefined && { body }) });
const PLAIN = refusal({ error: { message: "no rights", type: "permission_error" } });
const page: Fault = { kind: "garbage", status: 403, text: "<!DOCTYPE html><title>Blocked</title>" };

function played(model: string, count: number, more: object = {}) {
  return { environment: "gsm8k", dataset: questions(count), model, max_concurrent: 2, min_scored: 0, ...more };
}

test.each<[server: string, fault: Fault, said: string]>([
  ["OpenRouter", refusal({ error: { code: 403, message: "flagged", metadata: { reasons: ["hate"] } } }), "flagged"],
  ["xAI", refusal({ code: "denied", error: "Content violates usage guidelines." }), "usage guidelines"],
  ["Azure", refusal({ error: { code: "content_filter", message: "the prompt was filtered" } }), "filtered"],
  ["Alibaba", refusal({ code: "DataInspectionFailed", message: "may be inappropriate" }), "inappropriate"],
  ["a guardrail", refusal({ detail: "blocked by guardrail g" }), "guardrail"],
  ["a firewall", page, "Blocked"],
])("one prompt that is refused fails its rollout alone: %s", async (_server, fault, said) => {
  const model = script(RIGHT, { bad: [{ fault }] });
  const dataset = questions(7, ["good", "good", "bad", "good", "bad", "bad"]);
  const run = await platform.finish(played(model, 7, { dataset }));
  expectLaw(run.counts);
  expect(run).toMatchObject({ status: "completed", error: null, counts: { scored: 4, failed: { provider: 3 } } });
  const [row] = await platform.results(run.id, "outcome=failed");
  expect(row).toMatchObject({ error: { error: "ModelError", message: expect.stringContaining(said) } });
  expect((await requestsOf(model)).length).toBe(7);
});

test("if every prompt is refused by moderation the run is played to its end, and no circuit opens", async () => {
  const run = await platform.finish(played(script([{ fault: page }]), 24));
  expect(run).toMatchObject({ status: "completed", counts: { pending: 0, failed: { provider: 24 } } });
});

test("D3: a plain 403 for three tasks without an answered call ends the run, with the message", async () => {
  const model = script([{ fault: PLAIN }]);
  const run = await platform.finish(played(model, 20));
  expectLaw(run.counts);
  expect(run).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  expect(run.error?.message).toContain("no rights");
  expect(run.counts.failed).toEqual({ provider: run.counts.dispatched });
  expect(run.counts.dispatched).toBeLessThanOrEqual(4);
  expect((await requestsOf(model)).length).toBe(run.counts.dispatched);
  const [row] = await platform.results(run.id);
  expect(row?.error?.error).toBe("PermissionDeniedError");
});

test.each([
  ["two tasks", { dataset: questions(2), rollouts_per_example: 3 }],
  ["one task, however often", { dataset: Array.from({ length: 5 }, () => questions(1)).flat() }],
])("a plain 403 for %s fails its rollouts and ends nothing early", async (_what, more) => {
  const run = await platform.finish(played(script([{ fault: PLAIN }]), 1, more));
  expect(run).toMatchObject({ status: "completed", counts: { pending: 0, failed: { provider: run.counts.planned } } });
});

test.each([
  ["before", ["good", "bad", "bad", "bad", "bad", "good"]],
  ["between", ["bad", "bad", "good", "bad", "bad", "good"]],
])("one answered call %s makes a plain 403 the matter of its rollout", async (_when, words) => {
  const model = script(RIGHT, { bad: [{ fault: PLAIN }] });
  const run = await platform.finish(played(model, 6, { dataset: questions(6, words), max_concurrent: 1 }));
  expect(run).toMatchObject({ status: "completed", counts: { scored: 2, failed: { provider: 4 } } });
});

function askedOf(run: RunView, group: number): string {
  return `${rolloutAt(run.id, group)}:0`;
}

function failedOf(run: RunView, count: number): Promise<void> {
  const failed = async () => (await platform.run(run.id)).counts.failed["provider"] === count;
  return vi.waitUntil(failed, WAIT).then(() => undefined);
}

test("after three early refusals the run waits for calls in flight, and continues if one of those is answered", async () => {
  const model = script(RIGHT, undefined, { held: true });
  const run = await platform.start(played(model, 12, { max_concurrent: 4 }));
  await requestsOf(model, 4);
  for (const group of [2, 0, 1]) await release(askedOf(run, group), PLAIN);
  await failedOf(run, 3);
  const waiting = await platform.run(run.id);
  expect(waiting).toMatchObject({ status: "running", status_reason: { state: "draining" } });
  // The first two that ended made room for others.
  expect(waiting.counts.pending).toBeGreaterThanOrEqual(6);
  expect(waiting.status_reason?.reason).toContain("no rights");
  for (let group = 3; group < 12; group += 1) await release(askedOf(run, group));
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 9, failed: { provider: 3 } } });
});

test("refusals are still counted after the run's object died", async () => {
  const model = script(RIGHT, undefined, { held: true });
  const run = await platform.start(played(model, 9, { max_concurrent: 1 }));
  for (const group of [0, 1, 2]) {
    await requestsOf(model, group + 1);
    await evictDurableObject(platform.runStub(run.id));
    await release(askedOf(run, group), PLAIN);
    if (group < 2) await failedOf(run, group + 1);
  }
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ error: { code: "endpoint_unauthorized" }, counts: { pending: 6 } });
});

test("a run that ended this way and is retried starts a new count", async () => {
  const model = script([{ fault: PLAIN, attempts: 1, reply: "\\boxed{4}" }]);
  const run = await platform.finish(played(model, 4, { max_concurrent: 1 }));
  expect(run).toMatchObject({ error: { code: "endpoint_unauthorized" }, counts: { pending: 1 } });
  expect((await platform.post(`/v1/runs/${run.id}/retry`, {})).status).toBe(200);
  const after = await platform.ended(run.id);
  expect(after).toMatchObject({ status: "completed", counts: { pending: 0, scored: 3, failed: { provider: 4 } } });
});

test("a training run ends by the same rule", async () => {
  const model = script([{ fault: PLAIN }], undefined, { tokens: true });
  const asked = { kind: "training", environment: "gsm8k", dataset: questions(4), model, max_concurrent: 4 };
  const small = { group_size: 2, batch_size: { rollouts: 4 }, max_steps: 3 };
  const endpoint = { base_url: env.MODEL_URL };
  const made = await platform.post("/v1/runs", { ...asked, ...small, endpoint });
  expect(made.status).toBe(202);
  const { id } = await made.json<{ id: string }>();
  expect(await platform.ended(id)).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
});

test("on a fleet a 403 for one prompt is not retried, and one that may concern the key is retried elsewhere", async () => {
  const { fleet } = await insertFleet(platform.scope);
  const flagged = refusal({ error: { message: "flagged by moderation" } });
  const model = script(RIGHT, { "question 0": [{ fault: flagged }], "question 1": [{ fault: PLAIN }] });
  const asked = { environment: "gsm8k", dataset: questions(3), model, limits: { max_retries: 1 } };
  const made = await platform.post("/v1/runs", { ...asked, fleet: fleet.id });
  const { id } = await made.json<{ id: string }>();
  expect(await platform.ended(id)).toMatchObject({ counts: { scored: 1, failed: { provider: 2 } } });
  const calls = await Promise.all([0, 1].map(async (at) => (await platform.rollout(rolloutAt(id, at))).failed_calls));
  expect(calls.map(({ length }) => length)).toEqual([1, 2]);
});

// Judges.

function judged(judge: string, count: number, more: object = {}) {
  const judges = { default: { endpoint: { base_url: `${env.MODEL_URL}/` }, model: judge } };
  return {
    environment: "essays",
    dataset: topics(count),
    model: script(["An essay."]),
    judges,
    min_scored: 0,
    ...more,
  };
}

const GOOD = judgement("good");

test.each<[server: string, fault: Fault]>([
  ["a moderator", refusal({ error: { message: "the input was flagged" } })],
  ["a policy", refusal({ error: { message: "blocked by policy" } })],
  ["a page", page],
  ["no reason", PLAIN],
])("a judge that refuses some questions leaves those without a score: %s", async (_server, fault) => {
  const judge = script([GOOD], { bad: [{ fault }] });
  const dataset = ["fine", "bad 1", "bad 2", "well", "bad 3", "bad 4", "good"].map((question) => ({ question }));
  const run = await platform.finish(judged(judge, 7, { dataset, max_concurrent: 1 }));
  expectLaw(run.counts);
  expect(run).toMatchObject({ status: "completed", counts: { scored: 3, unscored: { judge: 4 } } });
});

test("a judge that answers only with a plain 403, for three tasks, ends the run", async () => {
  const run = await platform.finish(judged(script([{ fault: PLAIN }]), 40, { max_concurrent: 2 }));
  expectLaw(run.counts);
  expect(run).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  expect(run.error?.message).toMatch(/the judge default: 403 no rights/);
  expect(run.counts.pending).toBeGreaterThan(0);
});

test("a judge that refuses two tasks, or only by moderation, does not end the run", async () => {
  const few = await platform.finish(judged(script([{ fault: PLAIN }]), 2));
  const all = await platform.finish(judged(script([{ fault: page }]), 5, { max_concurrent: 1 }));
  for (const run of [few, all]) {
    expect(run).toMatchObject({ status: "completed", counts: { pending: 0, unscored: { judge: run.counts.planned } } });
  }
});

// Driven by hand.

function refuse(hand: Hand, row: RolloutEntry, more: object = {}): void {
  const error = serializeError(new PermissionDeniedError("403 no rights"));
  const report = { ...reportOf(row, { failure: "provider", cancelled: null }), turns: 0, error };
  answer(hand.store, hand.spec, { ...report, task_key: `task ${row.group_index}`, ...more }, hand.now);
}

test("a refusal that is reported twice, or whose write was interrupted, counts once", async () => {
  await byHand({ num_examples: 4 }, (hand) => {
    hand.dispatch(4);
    const [first, second, third, last] = hand.rows("running");
    if (!first || !second || !third || !last) throw new Error("four were dispatched");
    for (const row of [first, second, first, second]) refuse(hand, row);
    const before = hand.store.head();
    const cut = () =>
      hand.store.transaction(() => {
        refuse(hand, third);
        throw new Error("the process ends here");
      });
    expect(cut).toThrow("the process ends here");
    expect(hand.store.head()).toEqual(before);
    expect(remainingToBegin(hand.spec, hand.store.head())).toBe(Number.POSITIVE_INFINITY);
    refuse(hand, third);
    expect(remainingToBegin(hand.spec, hand.store.head())).toBe(0);
    expect(hand.store.head()).toMatchObject({ stop: null, in_flight: 1 });
    refuse(hand, last);
    expect(hand.store.head()).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  });
});

test("the record of refusals does not grow with their number", async () => {
  await byHand({ num_examples: 200 }, (hand) => {
    hand.dispatch(200);
    const error = serializeError(new PermissionDeniedError("no ".repeat(5000)));
    for (const row of hand.rows("running").slice(0, 150)) refuse(hand, row, { error });
    expect(hand.store.head().refusals["ep"]?.tasks).toHaveLength(3);
    expect(JSON.stringify(hand.store.head().refusals).length).toBeLessThan(1500);
  });
});

test("a run in this state completes the group that has begun, and begins no other", async () => {
  await byHand({ num_examples: 9, rollouts_per_example: 4, whole_groups: true }, (hand) => {
    hand.dispatch(14);
    for (const row of hand.rows("running").slice(0, 12)) refuse(hand, row);
    expect(hand.store.head().stop).toBeNull();
    expect(remainingToBegin(hand.spec, hand.store.head())).toBe(2);
    hand.dispatch(2);
    expect(remainingToBegin(hand.spec, hand.store.head())).toBe(0);
    for (const row of hand.rows("running")) refuse(hand, row);
    expect(hand.store.head()).toMatchObject({ status: "failed", in_flight: 0 });
  });
});

test("an attempt that takes over a trajectory has called no endpoint, and proves no key", async () => {
  await byHand({ num_examples: 3 }, (hand) => {
    hand.dispatch(3);
    for (const row of hand.rows("running")) {
      hand.store.setRollout(row.seq, { carries: 1 });
      hand.answerOne({ ...row, carries: 1 });
    }
    expect(hand.store.head().refusals).toEqual({});
  });
});

const JUDGES = { default: { endpoint_id: "ep_judge", model: "j", sampling: {} } };
const NO_RIGHTS = {
  kind: "failed",
  error: "403 no rights",
  retryable: false,
  retry_after_ms: null,
  usage: null,
} as const;
const SAID = { kind: "given", value: "good", reason: null, usage: null } as const;

/** Reports the outcome of one judge call for the rollout, whose task is its own. */
function reportJudged(hand: Hand, row: RolloutEntry, outcome: ReportedOutcome): void {
  const asked = { key: `k${row.seq}`, judge: "default", pass: 0, rollout_id: row.id, left_out: 0, seed: null };
  takeResults(hand.store, hand.spec, { unit: row.seq, claim: 1 }, [{ ...asked, outcome }], hand.now);
}

/** Four rollouts whose model answered, and whose judge refused the questions about the first three. */
async function judgedByHand(use: (hand: Hand, last: RolloutEntry) => void): Promise<void> {
  await byHand({ num_examples: 6, judges: JUDGES }, (hand) => {
    hand.dispatch(4);
    hand.answer();
    for (const { seq } of hand.rows("scoring")) hand.store.setRollout(seq, { task_key: `task ${seq}` });
    const rows = hand.rows("scoring");
    const last = rows.at(-1);
    if (last === undefined) throw new Error("four wait for their judge");
    for (const row of rows.slice(0, 3)) reportJudged(hand, row, { ...NO_RIGHTS, forbidden: true });
    use(hand, last);
  });
}

test("after three refusals of a judge the run waits for what is in flight, and ends if nothing is answered", async () => {
  await judgedByHand((hand, last) => {
    expect(remainingToBegin(hand.spec, hand.store.head())).toBe(0);
    reportJudged(hand, last, { ...NO_RIGHTS, forbidden: true });
    expect(hand.store.head().stop).toBeNull();
    hand.score();
    expect(hand.store.head()).toMatchObject({ status: "failed", error: { code: "endpoint_unauthorized" } });
  });
});

test.each<[what: string, outcome: ReportedOutcome]>([
  ["a verdict", SAID],
  ["a reply that is no verdict", { ...NO_RIGHTS, error: "no verdict", replied: true }],
])("%s of the same judge ends the wait", async (_what, outcome) => {
  await judgedByHand((hand, last) => {
    reportJudged(hand, last, outcome);
    expect(remainingToBegin(hand.spec, hand.store.head())).toBe(Number.POSITIVE_INFINITY);
    hand.score();
    expect(hand.store.head()).toMatchObject({ status: "running", stop: null });
  });
});

test.each<[what: string, outcome: ReportedOutcome]>([
  ["a stored verdict", { ...SAID, cached: true }],
  ["silence", { ...NO_RIGHTS, silent: true, retryable: true }],
  ["a failure of another kind", { ...NO_RIGHTS, status: 500 }],
])("%s says nothing about the judge's key", async (_what, outcome) => {
  await judgedByHand((hand, last) => {
    reportJudged(hand, last, outcome);
    expect(remainingToBegin(hand.spec, hand.store.head())).toBe(0);
  });
});
