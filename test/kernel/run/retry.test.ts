/** Retries: another attempt in the slot, the earlier one keeps its end, and the accounting law holds throughout. */

import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { RunView } from "../../../src/contract/run.ts";
import { rolloutId } from "../../../src/core/ids.ts";
import { idMac } from "../../../src/kernel/kit/secrets.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { registerMarking, setups, unscorable } from "../marking.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  registerMarking();
});

const HOUR = 3600_000;
const REFUSED = { fault: { kind: "status", status: 404 } } as const;
/** Fails the first attempt of a rollout and no later one. */
const AT_FIRST = [{ ...REFUSED, attempts: 1, reply: "\\boxed{4}" }];

function retry(id: string, body: object = {}, headers = {}): Promise<Response> {
  return platform.post(`/v1/runs/${id}/retry`, body, headers);
}

async function retried(id: string, body: object = {}, headers = {}): Promise<RunView> {
  const response = await retry(id, body, headers);
  expect(response.status).toBe(200);
  return await response.json();
}

function attemptAt(runId: string, attempt: number, group = 0): string {
  return rolloutId(runId, { group, slot: 0, attempt }, idMac(env.ROLLCALL_SECRET));
}

/** An ended run of four questions of which two fail at first. */
function halfFailed(more: object = {}): Promise<RunView> {
  const model = script(RIGHT, { bad: AT_FIRST });
  const dataset = questions(4, ["bad", "bad"]);
  return platform.finish({ environment: "gsm8k", dataset, model, ...more });
}

test("a retried run continues, gives every failed slot one more attempt, and then completes", async () => {
  const before = await halfFailed();
  expect(before).toMatchObject({ status: "failed", error: { code: "too_few_scored" } });
  const going = await retried(before.id);
  expectLaw(going.counts);
  expect(going).toMatchObject({ error: null, finished_at: null, counts: { planned: 6 } });
  const after = await platform.ended(before.id);
  expectLaw(after.counts);
  expect(after).toMatchObject({ status: "completed", error: null });
  expect(after.counts).toMatchObject({
    planned: 6,
    pending: 0,
    scored: 4,
    failed: { provider: 2 },
  });
  expect(after.report.reward).toMatchObject({ mean: 1, n_tasks: 4, n_rollouts: 4, n_error: 0 });
  // The cost of the first attempts still counts.
  expect(after.report.calls).toBe(6);
  expect((await requestsOf(after.model)).length).toBe(6);
});

test("the earlier attempt keeps its end, and shows which one replaced it", async () => {
  const run = await halfFailed();
  await retried(run.id);
  await platform.ended(run.id);
  const [old, now] = [rolloutAt(run.id), attemptAt(run.id, 1)];
  expect(await platform.rollout(old)).toMatchObject({
    ...{ attempt: 0, outcome: "failed", reason: "provider", superseded_by: now },
  });
  expect(await platform.rollout(now)).toMatchObject({
    ...{ attempt: 1, outcome: "scored", reward: 1, superseded_by: null },
  });
  const rows = await platform.results(run.id);
  expect(rows.map(({ rollout_id }) => rollout_id).filter((id) => [old, now].includes(id))).toEqual([old, now]);
});

test("the run's row in the database shows its state after the retry", async () => {
  const run = await halfFailed();
  await retried(run.id);
  await platform.ended(run.id);
  await platform.inRun(run.id, async (object) => {
    object.now = () => Date.now() + HOUR;
    await object.alarm();
  });
  const row = await env.DB.prepare("select status, finished_at from runs where id = ?").bind(run.id).first();
  expect(row).toMatchObject({ status: "completed", finished_at: expect.any(Number) });
});

test("events read from the start do not end where the run first ended", async () => {
  const run = await halfFailed();
  expect((await platform.events(run.id)).at(-1)?.event).toBe("run.failed");
  await retried(run.id);
  const events = await platform.events(run.id);
  expect(events.at(-1)?.event).toBe("run.completed");
  expect(events.filter(({ event }) => event === "run.failed")).toEqual([]);
  expect(events.find(({ event }) => event === "run.resumed")?.data).toEqual({
    status: "running",
    reason: "retry",
  });
});

test("only the named classes are retried, and a class without rollouts changes nothing", async () => {
  const run = await halfFailed();
  expect(await retried(run.id, { classes: ["timeout", "scorer"] })).toEqual(run);
  await retried(run.id, { classes: ["provider"] });
  expect((await platform.ended(run.id)).counts).toMatchObject({ planned: 6, scored: 4 });
  const unknown = await retry(run.id, { classes: ["bad luck"] });
  expect(await unknown.json()).toMatchObject({ error: { param: "classes[0]" } });
});

test("a repeated key causes no second retry, and the key with another body is refused", async () => {
  const model = script([REFUSED]);
  const request = { environment: "gsm8k", dataset: questions(2), model };
  const run = await platform.finish(request);
  const key = { "idempotency-key": `retry-${run.id}` };
  await retried(run.id, {}, key);
  const once = await platform.ended(run.id);
  expect(once.counts).toMatchObject({ planned: 4, failed: { provider: 4 } });
  expect(await retried(run.id, {}, key)).toEqual(once);
  expect((await retry(run.id, { classes: ["provider"] }, key)).status).toBe(422);
  await retried(run.id);
  expect((await platform.ended(run.id)).counts).toMatchObject({ failed: { provider: 6 } });
  expect((await platform.rollout(attemptAt(run.id, 2))).attempt).toBe(2);
  expect((await requestsOf(model)).length).toBe(6);
});

test("with two retries at once a slot gets one more attempt", async () => {
  const run = await halfFailed();
  await Promise.all([retried(run.id), retried(run.id)]);
  expect((await platform.ended(run.id)).counts).toMatchObject({ planned: 6, scored: 4 });
});

test("a retry of a running run adds what failed so far to what is still to come", async () => {
  const hang = { fault: { kind: "hang" }, times: 1, reply: "\\boxed{4}" } as const;
  const model = script(RIGHT, { bad: AT_FIRST, slow: [hang] });
  const dataset = questions(4, ["bad", "slow"]);
  const request = { environment: "gsm8k", dataset, model, max_concurrent: 1 };
  const run = await platform.start(request);
  await requestsOf(model, 2);
  expect(await retried(run.id)).toMatchObject({ status: "running", counts: { planned: 5 } });
  await platform.post(`/v1/rollouts/${rolloutAt(run.id, 1)}/cancel`, {});
  const { counts } = await platform.ended(run.id);
  expectLaw(counts);
  expect(counts).toMatchObject({ planned: 5, scored: 3, failed: { provider: 1 } });
});

test("a run stopped by its endpoint continues with what it had not dispatched", async () => {
  const api_key = "sk-wrong-at-first";
  const refusal = { kind: "status", status: 401 } as const;
  const model = script([{ fault: refusal, attempts: 1, reply: "\\boxed{4}" }]);
  const run = await platform.finish({
    environment: "gsm8k",
    dataset: questions(3),
    model,
    max_concurrent: 1,
    endpoint: { base_url: env.MODEL_URL, api_key },
  });
  expect(run).toMatchObject({ error: { code: "endpoint_unauthorized" }, counts: { pending: 2 } });
  await retried(run.id);
  const after = await platform.ended(run.id);
  // The retried one succeeds; the next first attempt is refused again.
  expect(after.counts).toMatchObject({ planned: 4, scored: 1, failed: { provider: 2 } });
});

test("rollouts stopped by a deadline are retried, and the deadline starts again", async () => {
  const hang = { fault: { kind: "hang" }, attempts: 1, reply: "\\boxed{4}" } as const;
  const model = script([hang]);
  const run = await platform.start({
    environment: "gsm8k",
    dataset: questions(1),
    model,
    limits: { deadline_s: 3600 },
  });
  await requestsOf(model, 1);
  await platform.inRun(run.id, async (object) => {
    object.now = () => Date.now() + HOUR;
    await object.alarm();
    await object.alarm();
    object.now = () => Date.now();
  });
  const late = await platform.ended(run.id);
  expect(late).toMatchObject({ status: "failed", counts: { cancelled: { deadline: 1 } } });
  expect(late.error?.message).toContain("before the deadline");
  await retried(run.id);
  expect(await platform.ended(run.id)).toMatchObject({
    status: "completed",
    counts: { planned: 2, scored: 1, cancelled: { deadline: 1 } },
  });
});

test("a cancelled run stays cancelled", async () => {
  const model = script([{ fault: { kind: "hang" } }]);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(1), model });
  await requestsOf(model, 1);
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  const ended = await platform.ended(run.id);
  const refused = await retry(run.id);
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ error: { code: "conflict" } });
  expect(await platform.run(run.id)).toEqual(ended);
});

test("a rollout without a score is scored again from its trajectory, and nothing is sampled", async () => {
  const model = script(["3"]);
  const question = `word ${crypto.randomUUID()}`;
  unscorable.add(question);
  const dataset = [{ question }, { question: "fine" }];
  const run = await platform.finish({ environment: "marked", dataset, model });
  expect(run.counts).toMatchObject({ scored: 1, unscored: { scorer: 1 } });
  unscorable.delete(question);
  await retried(run.id);
  const after = await platform.ended(run.id);
  expectLaw(after.counts);
  expect(after).toMatchObject({
    status: "completed",
    counts: { planned: 3, scored: 2, unscored: { scorer: 1 } },
    report: { calls: 2, turns: 2, reward: { mean: 3 } },
  });
  expect((await requestsOf(model)).length).toBe(2);
  const again = await platform.rollout(attemptAt(run.id, 1));
  expect(again).toMatchObject({ reward: 3, rescored_from: rolloutAt(run.id), attempt: 1 });
});

test("D17: R-retry-2, one member of a group is sampled again, and the group is scored again once all have ended", async () => {
  const model = script(["4"]);
  setups.toFail = 1;
  const dataset = [{ question: "all of one group" }];
  const run = await platform.finish({
    environment: "ranked",
    dataset,
    model,
    rollouts_per_example: 3,
  });
  expect(run.counts).toMatchObject({ scored: 2, failed: { environment: 1 } });
  expect(run.report.metrics["members"]?.mean).toBe(2);
  await retried(run.id);
  const after = await platform.ended(run.id);
  expectLaw(after.counts);
  expect(after.counts).toMatchObject({ planned: 6, scored: 5, failed: { environment: 1 } });
  expect(after.report.metrics["members"]).toMatchObject({ mean: 3, n: 3 });
  expect(after.report.reward).toMatchObject({ n_rollouts: 3, n_error: 0 });
  expect((await requestsOf(model)).length).toBe(3);
  const rows = await platform.results(run.id);
  const counting = rows.filter(({ superseded_by }) => superseded_by === null);
  const rewards = counting.map(({ reward }) => reward ?? Number.NaN);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / 3;
  for (const { reward, advantage } of counting) {
    expect(advantage).toBeCloseTo((reward ?? Number.NaN) - mean, 12);
  }
  expect(Math.max(...rewards)).toBeGreaterThan(Math.min(...rewards));
  const superseded = rows.filter(({ superseded_by }) => superseded_by !== null);
  expect(superseded.map(({ advantage }) => advantage)).toEqual([null, null, null]);
});

test("a group that is still under way is not retried", async () => {
  const { id } = await halfFailed({ rollouts_per_example: 1 });
  const added = await platform.inRun(id, (_, { storage }) => {
    // Group 0 gets a second member, which runs. Group 1 has only its failed one.
    storage.sql.exec(`insert into rollouts (group_index, slot, attempt, id, status, ask_at)
      values (0, 1, 0, 'ro_running', 'running', 0)`);
    return new RunStore(storage, ACCOUNTING_HOOKS).retries.add(null, true);
  });
  expect(added).toBe(1);
});

test("a retry is woken by an alarm that is stored with it, before any other call", async () => {
  const run = await halfFailed();
  const firesIn = await platform.inRun(run.id, async (object, { storage }) => {
    object.now = () => Date.now() + HOUR;
    await object.alarm();
    const retried = object.retry({ classes: null, key: null, hash: "" });
    const at = await storage.getAlarm();
    await retried;
    object.now = () => Date.now();
    return (at ?? Number.POSITIVE_INFINITY) - Date.now();
  });
  expect(firesIn).toBeLessThanOrEqual(HOUR);
});
