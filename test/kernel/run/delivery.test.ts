import { createExecutionContext, createMessageBatch, getQueueResult, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { SHARDS, shardOf } from "../../../src/core/run-queues.ts";
import { PASS_STEPS, PROCESS_SCHEDULER } from "../../../src/kernel/kit/fair-scheduler.ts";
import { trajectoryKey } from "../../../src/kernel/kit/names.ts";
import { sha256Hex } from "../../../src/kernel/kit/secrets.ts";
import type { RolloutReport, RolloutSpec, RunMessage, RunSpec } from "../../../src/kernel/messages/wire.ts";
import { FactsTable } from "../../../src/kernel/rollout/facts.ts";
import { RolloutStore } from "../../../src/kernel/rollout/store.ts";
import { consume } from "../../../src/kernel/service/consume.ts";
import { acceptedOnly, allShards, createLossy, deliver, interposed, LossyQueue, segmentLines } from "../hand-made.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const HOUR = 3600_000;
const DAY = 24 * HOUR;

function finishOne(model: string, count = 1, api = platform) {
  return api.finish({ environment: "gsm8k", dataset: questions(count), model });
}

function startOf(run_id: string, sent_at = Date.now()): RunMessage {
  return { kind: "groups", scope: platform.scope, run_id, sent_at, rollouts: [[0, 0, 0]] };
}

async function specOfRollout(id: string): Promise<RolloutSpec> {
  return await platform.inRollout(id, (_, { storage }) => new RolloutStore(new FactsTable(storage.sql), id).spec());
}

test("a start delivered again 1 s, 1 h or 3 days after the end makes no model call, even if storage was freed", async () => {
  const model = script(RIGHT);
  const run = await finishOne(model);
  const id = rolloutAt(run.id);
  const spec = await specOfRollout(id);
  const sentAt = Date.now();
  const startAfter = (wait: number) =>
    platform.inRollout(id, async (rollout) => {
      rollout.now = () => sentAt + wait;
      return await rollout.start(spec, sentAt);
    });
  for (const wait of [1000, HOUR, 3 * DAY]) {
    expect(await startAfter(wait)).toEqual({ state: "answered" });
    expect(await deliver("rollout-groups", [startOf(run.id)])).toEqual(["0"]);
  }
  await platform.inRun(run.id, async (object) => {
    object.now = () => Date.now() + DAY + HOUR;
    await object.alarm();
  });
  const kept = await platform.inRollout(id, (_, { storage }) =>
    storage.sql.exec("select name from sqlite_master where name = 'facts'").toArray(),
  );
  expect(kept).toEqual([]);
  for (const wait of [HOUR, 3 * DAY]) {
    expect(await startAfter(wait)).toEqual({ state: "expired" });
    expect(await deliver("rollout-groups", [startOf(run.id)])).toEqual(["0"]);
    expect(await runDurableObjectAlarm(await platform.rolloutStub(id))).toBe(false);
  }
  expect((await requestsOf(model)).length).toBe(1);
  expect((await platform.run(run.id)).counts.scored).toBe(1);
});

test("a start message older than ten minutes is acknowledged and starts nothing", async () => {
  const template = await finishOne(script(RIGHT));
  const model = script(RIGHT);
  const row = await acceptedOnly(platform, template.id, { model });
  await createLossy(platform, row);
  expect(await deliver("rollout-groups", [startOf(row.id, Date.now() - 601_000)])).toEqual(["0"]);
  const stub = await platform.rolloutStub(rolloutAt(row.id));
  expect(await runDurableObjectAlarm(stub)).toBe(false);
  expect(await requestsOf(model)).toEqual([]);
});

test("a start message delivered twice at once starts its rollout once", async () => {
  const template = await finishOne(script(RIGHT));
  const model = script(RIGHT);
  const row = await acceptedOnly(platform, template.id, { model });
  await createLossy(platform, row);
  const message = startOf(row.id);
  expect(await deliver("rollout-groups", [message, message])).toEqual(["0", "1"]);
  expect((await platform.ended(row.id)).counts).toMatchObject({ dispatched: 1, scored: 1 });
  expect((await requestsOf(model)).length).toBe(1);
});

test("rollouts whose start message was lost are started by reconciliation, and not before they are overdue", async () => {
  const template = await finishOne(script(RIGHT), 3);
  const model = script(RIGHT);
  const row = await acceptedOnly(platform, template.id, { model });
  const { groups, within } = await createLossy(platform, row);
  expect(groups.given).toMatchObject([
    {
      rollouts: [
        [0, 0, 0],
        [1, 0, 0],
        [2, 0, 0],
      ],
    },
  ]);
  groups.losing = false;
  await within((run) => run.alarm());
  expect(groups.given.length).toBe(1);
  await within(async (run) => {
    run.now = () => Date.now() + 5001;
    await run.alarm();
  });
  expect(groups.given).toMatchObject([
    {},
    {
      rollouts: [
        [0, 0, 0],
        [1, 0, 0],
        [2, 0, 0],
      ],
    },
  ]);
  expect(await platform.ended(row.id)).toMatchObject({
    status: "completed",
    counts: { dispatched: 3, scored: 3 },
  });
  expect((await requestsOf(model)).length).toBe(3);
});

/** A run whose one rollout has reported, like one of an earlier run, but whose scores message was lost. */
async function answeredUnscored(changes: Partial<RunSpec> = {}) {
  const template = await finishOne(script(RIGHT));
  const model = script(RIGHT);
  const row = await acceptedOnly(platform, template.id, { model, ...changes });
  const lossy = await createLossy(platform, row);
  const trajectory = (await segmentLines(platform, template.id))[0]?.trajectory;
  if (!trajectory) throw new Error("the template has no trajectory");
  const rollout_id = rolloutAt(row.id);
  const text = JSON.stringify({ ...trajectory, rollout_id });
  const digest = sha256Hex(text);
  await env.STORE.put(trajectoryKey(platform.scope, row.id, digest), text);
  const { example_id, task_key, usage, stop_condition, started_at, ended_at } = trajectory;
  const report: RolloutReport = {
    ...{ group: 0, slot: 0, attempt: 0, rollout_id, example_id, task_key },
    ...{ failure: null, cancelled: null, error: null, stop_run: null },
    // Not in the report, like a large one: the scorer reads it from R2.
    ...{ digest, bytes: text.length, trajectory: null, stop_condition, is_truncated: false },
    ...{ turns: 1, calls: 1, usage, started_at, ended_at },
  };
  await lossy.within((run) => run.answered([report]));
  return { ...lossy, id: row.id, model, report };
}

test("lost scores are requested again after their deadline, without a model call", async () => {
  const { scores, within, id, model } = await answeredUnscored();
  scores.losing = false;
  await within(async (run) => {
    run.now = () => Date.now() + 30_001;
    await run.alarm();
  });
  expect(scores.given.at(-1)).toMatchObject({ kind: "scores", units: [1] });
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 1, unscored: {} });
  expect(await requestsOf(model)).toEqual([]);
});

test("a rollout whose scores never arrive ends unscored, without a reward, and the run fails with too few scored", async () => {
  const { within, id } = await answeredUnscored();
  // The first look may be before the first send.
  for (let tries = 1; tries <= 7; tries += 1) {
    await within(async (run) => {
      run.now = () => Date.now() + 2 ** tries * 30_001;
      await run.alarm();
    });
  }
  const run = await platform.ended(id);
  expect(run).toMatchObject({ status: "failed", error: { code: "too_few_scored" } });
  expect(run.counts).toMatchObject({ scored: 0, unscored: { scorer: 1 } });
  expect(run.report.reward).toMatchObject({ mean: null, n_unscored: 1, n_error: 0 });
  const [result] = await platform.results(id);
  expect(result).toMatchObject({ reward: null, scoring_errors: [{ function: "rubric" }] });
});

test("a report, a scores message and the scores themselves may each arrive twice, and count once", async () => {
  const { within, id, report } = await answeredUnscored();
  expect(await within((run) => run.answered([report]))).toEqual([{ known: true }]);
  const message = { kind: "scores", scope: platform.scope, run_id: id, units: [1, 1] } as const;
  expect(await deliver("rollout-scores", [message, message])).toEqual(["0", "1"]);
  const first = await platform.ended(id);
  expect(first.counts).toMatchObject({ dispatched: 1, in_flight: 0, scored: 1 });
  await deliver("rollout-scores", [message]);
  await platform.inRun(id, (run) => {
    run.answered([{ ...report, failure: "provider" }]);
    const record = { rollout_id: report.rollout_id, reward: 0, scores: [], scoring_errors: [] };
    run.scored([{ group: 0, slot: 0, attempt: 0, record: { ...record, unscored: null } }]);
  });
  const again = await platform.run(id);
  expectLaw(again.counts);
  expect({ counts: again.counts, report: again.report }).toEqual({
    counts: first.counts,
    report: first.report,
  });
  expect((await platform.events(id)).filter(({ event }) => event !== "run.progress").length).toBe(2);
});

test("a rollout whose report did not reach its run sends it again until it does", async () => {
  const RUN = env.RUN;
  const refused = Promise.withResolvers<void>();
  env.RUN = interposed(RUN, "answered", async (call, name) => {
    if (!name.includes(platform.scope.orgId)) return await call();
    refused.resolve();
    throw new Error("the run is away");
  });
  const model = script(RIGHT);
  try {
    const run = await platform.start({ environment: "gsm8k", dataset: questions(1), model });
    const id = rolloutAt(run.id);
    await refused.promise;
    const standing = await platform.inRollout(id, (rollout) => rollout.ask());
    expect(standing).toMatchObject({ state: "running" });
    env.RUN = RUN;
    await platform.inRollout(id, (rollout) => rollout.alarm());
    expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 1, failed: {} });
    expect(await requestsOf(model)).toHaveLength(1);
  } finally {
    env.RUN = RUN;
  }
});

test("a large trajectory stays an object of its own until the run has stored the segment it is compacted into", async () => {
  const { within, id, report } = await answeredUnscored();
  const record = { rollout_id: report.rollout_id, reward: 1, scores: [], scoring_errors: [] };
  await within(async (run) => {
    run.scored([{ group: 0, slot: 0, attempt: 0, record: { ...record, unscored: null } }]);
    await run.alarm();
  });
  const key = trajectoryKey(platform.scope, id, report.digest ?? "");
  const fold: RunMessage = { kind: "segment", scope: platform.scope, run_id: id, segment: 1 };
  const away = () => Promise.reject(new Error("the run is away"));
  const bindings = { RUN: interposed(env.RUN, "folded", away) };
  expect(await deliver("run-segments", [fold], { bindings })).toEqual([]);
  expect(await env.STORE.head(key)).not.toBeNull();
  expect((await platform.rollout(report.rollout_id)).turns).toHaveLength(1);
  expect(await deliver("run-segments", [fold])).toEqual(["0"]);
  expect(await env.STORE.head(key)).toBeNull();
  expect((await platform.rollout(report.rollout_id)).turns).toHaveLength(1);
});

test("a report of a rollout the run never dispatched is refused and changes nothing", async () => {
  const { within, report, id } = await answeredUnscored();
  expect(await within((run) => run.answered([{ ...report, slot: 7 }]))).toEqual([{ known: false }]);
  expectLaw((await platform.run(id)).counts);
});

test("a group that is scored as a whole is not scored before all of it has reported, however late", async () => {
  const { within, scores, id } = await answeredUnscored({ whole_groups: true, rollouts_per_example: 2 });
  for (let tries = 1; tries <= 7; tries += 1) {
    await within(async (run) => {
      run.now = () => Date.now() + 2 ** tries * 30_001;
      await run.alarm();
    });
  }
  expect(scores.given).toEqual([]);
  expect((await platform.run(id)).counts).toMatchObject({ in_flight: 2, unscored: {} });
});

test("an object that does not answer delays neither other rollouts nor the run's other work", async () => {
  const template = await finishOne(script(RIGHT), 2);
  const model = script(RIGHT);
  const row = await acceptedOnly(platform, template.id, { model });
  const { groups, within } = await createLossy(platform, row);
  const broken = () => Promise.reject(new Error("broken"));
  await platform.inRollout(rolloutAt(row.id), (rollout) => {
    Object.defineProperty(rollout.object, "ask", { value: broken, configurable: true });
  });
  const overdue = Date.now() + 5001;
  const next = await within(async (run) => {
    run.now = () => overdue;
    await run.alarm();
    return run.view();
  });
  expect(next?.counts.in_flight).toBe(2);
  expect(groups.given.at(-1)).toMatchObject({
    rollouts: [
      [0, 0, 0],
      [1, 0, 0],
    ],
  });
  const alarm = await platform.inRun(row.id, (_, { storage }) =>
    storage.sql.exec("select min(ask_at) as at from rollouts").one(),
  );
  expect(Number(alarm["at"])).toBeGreaterThan(overdue);
});

test("a message that ended in a dead-letter queue is recorded on its run and acknowledged", async () => {
  const run = await finishOne(script(RIGHT));
  expect(await deliver("rollout-groups-dead", [startOf(run.id)])).toEqual(["0"]);
  const letters = await platform.inRun(run.id, (_, { storage }) =>
    storage.sql.exec("select queue, body from dead_letters").toArray(),
  );
  expect(letters).toMatchObject([{ queue: "rollout-groups-dead" }]);
  expect(JSON.parse(String(letters[0]?.["body"]))).toMatchObject({ run_id: run.id });
});

test("a message that fails is retried by itself, and the others are acknowledged", async () => {
  const { id } = await answeredUnscored();
  const good = { kind: "scores", scope: platform.scope, run_id: id, units: [1] } as const;
  const { within, id: other, report } = await answeredUnscored();
  await env.STORE.delete(trajectoryKey(platform.scope, other, report.digest ?? ""));
  expect(await deliver("rollout-scores", [{ ...good, run_id: other }, good])).toEqual(["1"]);
  expect(await within(async (run) => (await run.view())?.counts.in_flight)).toBe(1);
});

test("a run whose creation was interrupted before its object existed is created by the next read", async () => {
  const template = await finishOne(script(RIGHT));
  const model = script(RIGHT);
  const row = await acceptedOnly(platform, template.id, { model });
  expect((await platform.ended(row.id)).counts.scored).toBe(1);
});

test("if the pinned code is gone rollouts end as environment_changed, free of charge, and dispatch stops", async () => {
  const template = await finishOne(script(RIGHT), 4);
  const model = script(RIGHT);
  const environment = { ...template.environment, digest: "sha256:gone" };
  const row = await acceptedOnly(platform, template.id, { environment, model, max_concurrent: 1 });
  const run = await platform.ended(row.id);
  expect(run).toMatchObject({ status: "failed", error: { code: "environment_changed" } });
  expect(run.counts).toMatchObject({ pending: 3, failed: { environment_changed: 1 } });
  expect(await requestsOf(model)).toEqual([]);
});

test("what an invocation cannot finish goes to the end of its queue, and does not count as a try", async () => {
  const { id } = await finishOne(script(RIGHT));
  const bodies = Array.from({ length: 90 }, (_, scoringGroup): RunMessage => {
    return { kind: "scores", scope: platform.scope, run_id: id, units: [scoringGroup] };
  });
  const queue = new LossyQueue(env.ROLLOUT_SCORES);
  const acked = await deliver("rollout-scores", bodies, { bindings: allShards("ROLLOUT_SCORES", queue) });
  expect(acked).toHaveLength(90);
  expect(queue.given.length).toBeGreaterThan(0);
  expect(queue.given).toEqual(bodies.slice(-queue.given.length));
});

test("in a batch the messages of the organisation that computed least come first, whatever came before them", async () => {
  const other = await openPlatform();
  const [greedy, fair] = [await finishOne(script(RIGHT)), await finishOne(script(RIGHT), 1, other)];
  await PROCESS_SCHEDULER.spend(other.scope.orgId, 1);
  await PROCESS_SCHEDULER.spend(platform.scope.orgId, PASS_STEPS);
  const message = (run_id: string, { scope }: TestApi, scoringGroup: number): RunMessage => {
    return { kind: "scores", scope, run_id, units: [scoringGroup] };
  };
  const bodies = Array.from({ length: 90 }, (_, scoringGroup) => message(greedy.id, platform, scoringGroup));
  const queue = new LossyQueue(env.ROLLOUT_SCORES);
  const last = message(fair.id, other, 1);
  await deliver("rollout-scores", [...bodies, last], { bindings: allShards("ROLLOUT_SCORES", queue) });
  expect(queue.given.length).toBeGreaterThan(0);
  expect(queue.given).not.toContainEqual(last);
});

test("messages of an organisation that has used up its share go to the end of the queue, unless their turn comes soon", async () => {
  const other = await openPlatform();
  const [greedy, fair] = [await finishOne(script(RIGHT)), await finishOne(script(RIGHT), 1, other)];
  const start = (run_id: string, { scope }: TestApi): RunMessage => ({ ...startOf(run_id), scope }) as RunMessage;
  const bodies = [start(greedy.id, platform), start(fair.id, other), start(greedy.id, platform)];
  const queue = new LossyQueue(env.ROLLOUT_GROUPS);
  const deliverAll = () => deliver("rollout-groups", bodies, { bindings: allShards("ROLLOUT_GROUPS", queue) });
  PROCESS_SCHEDULER.notePresence(other.scope.orgId);
  (await PROCESS_SCHEDULER.take(platform.scope.orgId))(60 * PASS_STEPS);
  expect(await deliverAll()).toHaveLength(3);
  expect(queue.given).toEqual([bodies[0], bodies[2]]);
  for (const delay of queue.delays) expect(delay).toBeGreaterThan(0);
  while (PROCESS_SCHEDULER.restOf(platform.scope.orgId) > 100) await scheduler.wait(10);
  expect(await deliverAll()).toHaveLength(3);
  expect(queue.given).toHaveLength(2);
});

test("what an invocation cannot forward is left for its queue to deliver again", async () => {
  const { id } = await finishOne(script(RIGHT));
  const bodies = Array.from({ length: 90 }, (_, scoringGroup): RunMessage => {
    return { kind: "scores", scope: platform.scope, run_id: id, units: [scoringGroup] };
  });
  const messages = bodies.map((body, at) => ({ id: String(at), timestamp: new Date(), attempts: 1, body }));
  const batch = createMessageBatch<RunMessage>("rollout-scores", messages);
  const queue = new LossyQueue(env.ROLLOUT_SCORES);
  queue.refusing = true;
  await expect(consume(batch, { ...env, ...allShards("ROLLOUT_SCORES", queue) })).rejects.toThrow("the queue is away");
  const { explicitAcks } = await getQueueResult(batch, createExecutionContext());
  expect(queue.given.length).toBeGreaterThan(0);
  expect(explicitAcks).toHaveLength(90 - queue.given.length);
});

test("start messages of an earlier release are in the first queue, and what is left of them goes to the run's own", async () => {
  const fresh = await openPlatform();
  const runs = await Promise.all(Array.from({ length: 8 }, () => finishOne(script(RIGHT), 1, fresh)));
  const bodies = runs.map(({ id }) => ({ ...startOf(id), scope: fresh.scope }) as RunMessage);
  const queues = Array.from({ length: SHARDS }, () => new LossyQueue(env.ROLLOUT_GROUPS));
  const [ROLLOUT_GROUPS, ROLLOUT_GROUPS_1, ROLLOUT_GROUPS_2, ROLLOUT_GROUPS_3] = queues;
  const bindings = { ROLLOUT_GROUPS, ROLLOUT_GROUPS_1, ROLLOUT_GROUPS_2, ROLLOUT_GROUPS_3 } as Partial<Env>;
  PROCESS_SCHEDULER.notePresence(platform.scope.orgId);
  (await PROCESS_SCHEDULER.take(fresh.scope.orgId))(60 * PASS_STEPS);
  expect(await deliver("rollout-groups", bodies, { bindings })).toHaveLength(bodies.length);
  expect(queues.map(({ given }) => given)).toEqual(
    queues.map((_, shard) => bodies.filter(({ run_id }) => shardOf(run_id) === shard)),
  );
});

test("scores of a batch that has few rollouts are computed side by side, and each message is acknowledged", async () => {
  const { id } = await answeredUnscored();
  let [now, most] = [0, 0];
  const RUN = interposed(env.RUN, "scoringGroupsToScore", async (call) => {
    now += 1;
    most = Math.max(most, now);
    await scheduler.wait(0);
    const waiting = await call();
    now -= 1;
    return waiting;
  });
  const message = { kind: "scores", scope: platform.scope, run_id: id, members: 1 } as const;
  const bodies = [1, 2, 3].map((unit): RunMessage => ({ ...message, units: [unit] }));
  expect(await deliver("rollout-scores", bodies, { bindings: { RUN } })).toHaveLength(3);
  expect(most).toBe(3);
  expect((await platform.ended(id)).counts).toMatchObject({ scored: 1, in_flight: 0 });
});

test("small start messages of a batch are handled side by side, and those of many rollouts one after another", async () => {
  // An organisation that has used none of its share of the process.
  const fresh = await openPlatform();
  const model = script(RIGHT);
  const runs = await Promise.all(Array.from({ length: 4 }, () => finishOne(model, 1, fresh)));
  const mostAtOnce = async (rollouts: number) => {
    let [now, most] = [0, 0];
    const RUN = interposed(env.RUN, "admit", async (call) => {
      now += 1;
      most = Math.max(most, now);
      await scheduler.wait(0);
      const admitted = await call();
      now -= 1;
      return admitted;
    });
    const places = Array.from({ length: rollouts }, (_, slot) => [0, slot, 0] as const);
    const { scope } = fresh;
    const bodies = runs.map(({ id }) => ({ ...startOf(id), scope, rollouts: places }) as RunMessage);
    expect(await deliver("rollout-groups", bodies, { bindings: { RUN } })).toHaveLength(bodies.length);
    return most;
  };
  expect(await mostAtOnce(1)).toBe(4);
  expect(await mostAtOnce(20)).toBe(1);
});
