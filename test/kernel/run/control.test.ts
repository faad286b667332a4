/** Pause, resume, another window, a deadline, cancel of one rollout: what an owner can do with a run. */

import { beforeAll, expect, test } from "vitest";
import type { RunView } from "../../../src/contract/run.ts";
import { ACCOUNTING_HOOKS } from "../../../src/kernel/run/object.ts";
import { RunStore } from "../../../src/kernel/run/store.ts";
import { acceptedOnly, createLossy } from "../hand-made.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const HOUR = 3600_000;
const hang = { fault: { kind: "hang" } } as const;

/** Fails once; then its rollout waits an hour for the next try, unless it is cancelled. */
const waits = (reply: string) => ({
  fault: { kind: "status", status: 429, headers: { "retry-after": "3600" } } as const,
  times: 1,
  reply,
});

async function order(id: string, verb: string, body: object = {}): Promise<RunView> {
  const response = await platform.post(`/v1/runs/${id}/${verb}`, body);
  expect(response.status).toBe(200);
  return await response.json();
}

async function change(id: string, patch: object): Promise<RunView> {
  const response = await platform.ask(`/v1/runs/${id}`, {
    method: "PATCH",
    body: JSON.stringify(patch),
    headers: { "content-type": "application/json" },
  });
  expect(response.status).toBe(200);
  return await response.json();
}

/** Fires the run's alarm as if `wait` ms had passed. Returns in how many ms after that the next alarm is due. */
function alarmAfter(id: string, wait: number): Promise<number | null> {
  return platform.inRun(id, async (run, { storage }) => {
    const now = Date.now() + wait;
    run.now = () => now;
    await storage.deleteAlarm();
    await run.alarm();
    const at = await storage.getAlarm();
    run.now = () => Date.now();
    return at === null ? null : at - now;
  });
}

/** A run with `count` questions of which the first one has made its call, alone, and hangs. */
async function oneInFlight(count: number, more: object = {}): Promise<RunView> {
  const model = script(RIGHT, { slow: [hang] });
  const dataset = questions(count, ["slow"]);
  const request = { environment: "gsm8k", dataset, model, max_concurrent: 1, ...more };
  const run = await platform.start(request);
  await requestsOf(model, 1);
  return { ...run, model };
}

test("a paused run lets running rollouts finish, dispatches nothing, and shows why it waits", async () => {
  const model = script(RIGHT, { slow: [waits("\\boxed{4}")] });
  const dataset = questions(3, ["slow"]);
  const request = { environment: "gsm8k", dataset, model, max_concurrent: 1 };
  const run = await platform.start(request);
  await requestsOf(model, 1);
  const paused = await order(run.id, "pause");
  expect(paused).toMatchObject({ status: "paused", status_reason: { state: "paused", reason: "user" } });
  await platform.inRollout(rolloutAt(run.id), async (rollout) => {
    rollout.now = () => Date.now() + 2 * HOUR;
    await rollout.alarm();
    // The same object plays the later rollouts.
    rollout.now = () => Date.now();
  });
  await endedOf(run.id, rolloutAt(run.id));
  const waiting = await platform.run(run.id);
  expectLaw(waiting.counts);
  expect(waiting).toMatchObject({ status: "paused", counts: { pending: 2, scored: 1 } });
  expect((await requestsOf(model)).length).toBe(2);
  expect(await order(run.id, "resume")).toMatchObject({ status: "running" });
  expect(await platform.ended(run.id)).toMatchObject({
    status: "completed",
    counts: { scored: 3 },
  });
  const told = (await platform.events(run.id)).filter(({ event }) => /paused|resumed/.test(event));
  expect(told.map(({ event, data }) => [event, data["status"], data["reason"]])).toEqual([
    ["run.paused", "paused", "user"],
    ["run.resumed", "running", "user"],
  ]);
});

test("a run that is paused before anything ran has no alarm for an hour", async () => {
  const run = await pausedAtOnce();
  // The pending write to D1 comes first; then there is no reason to wake up.
  await alarmAfter(run.id, 5000);
  for (const minutes of [1, 10, 60]) expect(await alarmAfter(run.id, minutes * 60_000)).toBeNull();
  await order(run.id, "resume");
  expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 2 });
});

test("a paused run with a deadline sleeps until then, and no longer", async () => {
  const run = await pausedAtOnce({ deadline_s: 7200 });
  await alarmAfter(run.id, 5000);
  const left = (await alarmAfter(run.id, HOUR)) ?? 0;
  expect(left).toBeGreaterThan(HOUR - 60_000);
  expect(left).toBeLessThanOrEqual(HOUR);
  await alarmAfter(run.id, 2 * HOUR);
  expect(await platform.ended(run.id)).toMatchObject({
    status: "failed",
    error: { code: "too_few_scored" },
    counts: { dispatched: 0, pending: 2 },
  });
});

/** A run of two questions that was paused before its first rollout was dispatched. */
async function pausedAtOnce(more: Partial<RunView["limits"]> = {}): Promise<RunView> {
  const request = { environment: "gsm8k", dataset: questions(2), model: script(RIGHT) };
  const template = await platform.finish(request);
  const row = await acceptedOnly(platform, template.id);
  const spec = { ...row.spec, limits: { ...row.spec.limits, ...more } };
  await platform.inRun(row.id, async (run, { storage }) => {
    const store = new RunStore(storage, ACCOUNTING_HOOKS);
    store.create(spec);
    store.saveHead({ ...store.head(), paused: true });
    await run.alarm();
  });
  return await platform.run(row.id);
}

test("pausing or resuming twice is the same as once, and an ended run does not change", async () => {
  const run = await oneInFlight(2);
  await order(run.id, "pause");
  expect(await order(run.id, "pause")).toMatchObject({ status: "paused" });
  await order(run.id, "resume");
  expect(await order(run.id, "resume")).toMatchObject({ status: "running" });
  await order(run.id, "cancel");
  const ended = await platform.ended(run.id);
  expect(await order(run.id, "pause")).toEqual(ended);
  const events = (await platform.events(run.id)).map(({ event }) => event);
  expect(events.filter((event) => event.startsWith("run.p") && event !== "run.progress")).toEqual(["run.paused"]);
});

test("a wider window is used at once, and the requested value is shown", async () => {
  const run = await oneInFlight(6);
  expect(await change(run.id, { max_concurrent: 3 })).toMatchObject({ max_concurrent: 3 });
  // Two more at a time go past the one that hangs.
  await requestsOf(run.model, 6);
  expect((await platform.run(run.id)).max_concurrent).toBe(3);
  await order(run.id, "cancel");
  expect((await platform.ended(run.id)).counts).toMatchObject({
    scored: 5,
    cancelled: { user: 1 },
  });
});

test("a smaller window lets running rollouts finish, and applies from then on", async () => {
  const model = script(RIGHT, { slow: [hang] });
  const dataset = questions(6, ["slow", "slow", "slow"]);
  const run = await platform.start({ environment: "gsm8k", dataset, model, max_concurrent: 3 });
  await requestsOf(model, 3);
  await change(run.id, { max_concurrent: 1 });
  const cancelled = await platform.post(`/v1/rollouts/${rolloutAt(run.id, 0)}/cancel`, {});
  expect(cancelled.status).toBe(200);
  await endedOf(run.id, rolloutAt(run.id, 0));
  expect((await platform.run(run.id)).counts).toMatchObject({ dispatched: 3, in_flight: 2 });
  await order(run.id, "cancel");
  await platform.ended(run.id);
});

test("name and metadata can be changed at any time, also after the end, and nothing else can", async () => {
  const request = { environment: "gsm8k", dataset: questions(1), model: script(RIGHT) };
  const run = await platform.finish({ ...request, metadata: { branch: "main", sha: "1" } });
  const after = await change(run.id, { name: "renamed", metadata: { branch: "dev" } });
  expect(after).toEqual({ ...run, name: "renamed", metadata: { branch: "dev" } });
  expect(await change(run.id, {})).toEqual(after);
  const refused = await platform.ask(`/v1/runs/${run.id}`, {
    method: "PATCH",
    body: JSON.stringify({ model: "other" }),
    headers: { "content-type": "application/json" },
  });
  expect(await refused.json()).toMatchObject({ error: { code: "unknown_field", param: "model" } });
});

test("past its deadline a run stops its rollouts, keeps those that ended, and min_scored decides its status", async () => {
  const model = script(RIGHT, { slow: [hang] });
  const dataset = questions(4, ["plain", "slow", "slow"]);
  const limits = { deadline_s: 3600 };
  const request = { environment: "gsm8k", dataset, model, max_concurrent: 2, limits };
  const run = await platform.start({ ...request, min_scored: 0.25 });
  await requestsOf(model, 3);
  await alarmAfter(run.id, HOUR);
  await alarmAfter(run.id, HOUR + 1000);
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({
    status: "completed",
    counts: { pending: 1, scored: 1, cancelled: { deadline: 2 } },
  });
  expectLaw(ended.counts);
  expect((await requestsOf(model)).length).toBe(3);
});

test("a single cancelled rollout ends with the call it had made, and the run continues", async () => {
  const run = await oneInFlight(3);
  const id = rolloutAt(run.id);
  const response = await platform.post(`/v1/rollouts/${id}/cancel`, {});
  expect(await response.json()).toMatchObject({ object: "rollout", id });
  const ended = await platform.ended(run.id);
  expect(ended).toMatchObject({ status: "failed", counts: { scored: 2, cancelled: { user: 1 } } });
  expect(await platform.rollout(id)).toMatchObject({ outcome: "cancelled", reason: "user" });
  expect((await platform.results(run.id, "outcome=cancelled")).length).toBe(1);
  expect((await requestsOf(run.model)).length).toBe(3);
  // Cancelled again, and one with a score: both stay unchanged.
  for (const group of [0, 1]) {
    const again = await platform.post(`/v1/rollouts/${rolloutAt(run.id, group)}/cancel`, {});
    expect(await again.json()).toEqual(await platform.rollout(rolloutAt(run.id, group)));
  }
  expect((await platform.run(run.id)).counts).toEqual(ended.counts);
});

test("a rollout that was never dispatched, or of another run, cannot be cancelled", async () => {
  const run = await oneInFlight(2);
  for (const id of [rolloutAt(run.id, 1), rolloutAt(run.id, 7), "ro_nobody"]) {
    expect((await platform.post(`/v1/rollouts/${id}/cancel`, {})).status).toBe(404);
  }
  await order(run.id, "cancel");
  await platform.ended(run.id);
});

test("a rollout cancelled before its start message arrived is never started", async () => {
  const template = await platform.finish({
    environment: "gsm8k",
    dataset: questions(1),
    model: script(RIGHT),
  });
  const model = script(RIGHT);
  const row = await acceptedOnly(platform, template.id, { model });
  const { within } = await createLossy(platform, row);
  const place = { group: 0, slot: 0, attempt: 0 };
  await within((run) => run.cancelRollout(place));
  expect(await within((run) => run.admit([place]))).toMatchObject({ admitted: [] });
  for (let tells = 1; tells <= 8; tells += 1) {
    await within(async (run) => {
      run.now = () => Date.now() + tells * 10_000;
      await run.alarm();
    });
  }
  expect((await platform.ended(row.id)).counts).toMatchObject({ cancelled: { user: 1 } });
  expect(await requestsOf(model)).toEqual([]);
});

/** Waits for the event of this rollout's end. */
async function endedOf(runId: string, rolloutId: string): Promise<void> {
  for (let after = 0; ; ) {
    const read = await platform.inRun(runId, (run) => run.events(after, 5000));
    const events = read?.events ?? [];
    if (events.some(({ data }) => "rollout_id" in data && data.rollout_id === rolloutId)) return;
    after = events.at(-1)?.id ?? after;
  }
}

test("a rollout whose object does not answer gets the cancel for minutes, and then ends as cancelled", async () => {
  const model = script([waits("\\boxed{4}")]);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(1), model });
  await requestsOf(model, 1);
  const id = rolloutAt(run.id);
  const sleeps = () => platform.inRollout(id, (_, { storage }) => storage.getAlarm());
  while ((await sleeps()) === null);
  await platform.inRollout(id, (object) => {
    object.now = () => {
      throw new Error("it is broken");
    };
  });
  await order(run.id, "cancel");
  const alarms = (from: number, to: number) =>
    platform.inRun(run.id, async (object) => {
      for (let minute = from; minute < to; minute += 0.5) {
        object.now = () => Date.now() + minute * 60_000;
        await object.alarm();
      }
    });
  await alarms(1, 3);
  expect((await platform.run(run.id)).counts.in_flight).toBe(1);
  await alarms(3, 30);
  const ended = await platform.ended(run.id);
  expectLaw(ended.counts);
  expect(ended).toMatchObject({ status: "cancelled", counts: { cancelled: { user: 1 } } });
});
