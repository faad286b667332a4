/** Rollouts that share an object are independent of each other. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import { dataset, defineEnvironment, MultiTurnEnv } from "../../../src/core/entry.ts";
import { FactsTable } from "../../../src/kernel/rollout/facts.ts";
import { RolloutObject } from "../../../src/kernel/rollout/object.ts";
import { WAIT } from "../../hang-limits.ts";
import { expectLaw, openPlatform, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { down, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HANGS = [{ fault: { kind: "hang" } }] as const;
/** The headers come at once, and the body never ends. */
const STREAMS_ON = [{ fault: { kind: "drip", everyMs: 20 } }] as const;
const MINUTE = 60_000;

/** What each hook of `steps` waits for; set by the test. */
let step: (rollout: number, turn: number) => Promise<void> = async () => undefined;

/** Three turns, or as many as given, each with a hook whose time the test controls. */
const steps = defineEnvironment({
  args: z.strictObject({ turns: z.int().default(3) }),
  build: ({ turns }) =>
    new MultiTurnEnv({
      dataset: dataset(
        z.object({ question: z.string() }),
        [0, 1, 2, 3, 4, 5].map((rollout) => ({ question: `${rollout}` })),
      ),
      maxTurns: turns,
      envResponse: async (_, { task, turn }) => {
        await step(Number(task.question), turn);
        return "On.";
      },
      rubric: { rewards: { one: () => 1 } },
    }),
});

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
  const { args, needs, load } = steps;
  registerOnce({ id: "steps", version: "1.0.0", digest: "sha256:steps", args, needs, load });
});
afterEach(() => {
  vi.restoreAllMocks();
  step = async () => undefined;
});

/** The numbers of the objects that play the run's rollouts, in the order of dispatch. */
function shardsOf(run: string): Promise<number[]> {
  return platform.inRun(run, (_, { storage }) =>
    storage.sql
      .exec<{ host: number }>("select host from rollouts order by seq")
      .toArray()
      .map(({ host: shard }) => shard),
  );
}

test("as many rollouts share an object as it may play, and a free place gets the next rollout", async () => {
  const plays = (rollouts: number, max_concurrent: number) =>
    platform.finish({ environment: "gsm8k", dataset: questions(rollouts), model: script(RIGHT), max_concurrent });
  const [together, one] = await Promise.all([plays(LIMITS.rolloutsPerShard + 2, 100), plays(8, 1)]);
  expect([together.counts.scored, one.counts.scored]).toEqual([26, 8]);
  expect(await shardsOf(together.id)).toEqual([...Array(24).fill(1), 2, 2]);
  expect(await shardsOf(one.id)).toEqual(Array(8).fill(1));
});

test("an object has more calls in flight than connections while their replies stream", async () => {
  const model = script(STREAMS_ON);
  const run = await platform.start({ environment: "gsm8k", dataset: questions(12), model });
  expect((await requestsOf(model, 12)).length).toBe(12);
  expect(new Set(await shardsOf(run.id))).toEqual(new Set([1]));
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  expect((await platform.ended(run.id)).counts).toMatchObject({ cancelled: { user: 12 } });
});

test("six calls without an answer hold the connections of their object: each answer lets the next one leave", async () => {
  const model = script(RIGHT, {}, { held: true });
  const run = await platform.start({ environment: "gsm8k", dataset: questions(12), model });
  for (let answered = 0; answered < 12; answered += 1) {
    const seen = await requestsOf(model, Math.min(12, 6 + answered));
    expect(seen.length).toBe(Math.min(12, 6 + answered));
    await release(seen[answered]?.idempotency_key ?? "");
  }
  expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 12 });
  expect(new Set(await shardsOf(run.id))).toEqual(new Set([1]));
});

test("six rollouts share an object if the endpoint is known to refuse streams", async () => {
  const request = { name: "whole-replies", base_url: env.MODEL_URL, probe: false, refuses: ["streams"] };
  expect((await platform.post("/v1/endpoints", request)).status).toBe(201);
  const run = { environment: "gsm8k", dataset: questions(8), model: script(RIGHT), endpoint: "whole-replies" };
  expect(await shardsOf((await platform.finish(run)).id)).toEqual([1, 1, 1, 1, 1, 1, 2, 2]);
});

test("a run whose model turns out to reply whole gives its objects six rollouts from then on", async () => {
  const fault = { kind: "status", status: 400, body: { error: { message: "streaming is not supported" } } } as const;
  const model = script([{ fault, holds: '"stream":true', reply: "\\boxed{4}" }]);
  const run = await platform.finish({ environment: "gsm8k", dataset: questions(16), model, max_concurrent: 8 });
  expect(run.counts).toMatchObject({ scored: 16 });
  const shards = await shardsOf(run.id);
  expect(shards.slice(0, 8)).toEqual(Array(8).fill(1));
  // However many of the eight have reported when the next ones begin, the first object cannot take all of these.
  expect(new Set(shards.slice(8))).toContain(2);
});

test("a rollout that waits for its next try continues in time while another still waits for its model", async () => {
  const failing = { fault: down, times: 2, reply: "\\boxed{4}" };
  const model = script(RIGHT, { slow: HANGS, again: [failing] });
  const dataset = questions(3, ["slow", "again", "plain"]);
  const run = await platform.start({ environment: "gsm8k", dataset, model });
  await vi.waitFor(async () => expect((await platform.run(run.id)).counts.scored).toBe(2), WAIT);
  expect(await shardsOf(run.id)).toEqual([1, 1, 1]);
  await platform.post(`/v1/rollouts/${rolloutAt(run.id, 0)}/cancel`, {});
  const ended = await platform.ended(run.id);
  expectLaw(ended.counts);
  expect(ended.counts).toMatchObject({ scored: 2, cancelled: { user: 1 } });
});

test("a rollout whose hook fails, one that is cancelled and one that runs out of time end without effect on others", async () => {
  step = async (rollout) => {
    if (rollout === 1) throw new Error("it failed");
    if (rollout > 1) await new Promise(() => undefined);
  };
  const model = script(["one", "two", "three"]);
  const request = { environment: "steps", num_examples: 4, model, min_scored: 0 };
  const run = await platform.start({ ...request, limits: { turn_timeout_s: 2 } });
  await requestsOf(model, 6);
  await platform.post(`/v1/rollouts/${rolloutAt(run.id, 2)}/cancel`, {});
  const ended = await platform.ended(run.id);
  expectLaw(ended.counts);
  expect(ended.counts).toMatchObject({
    scored: 1,
    failed: { environment: 1, timeout: 1 },
    cancelled: { user: 1 },
  });
});

test("no step begins later than four minutes after the alarm, so that six of ten minutes each end within fourteen", async () => {
  const began: number[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gate = (rollout: number, turn: number) => {
    const name = `${rollout}/${turn}`;
    const known = gates.get(name) ?? Promise.withResolvers<void>();
    gates.set(name, known);
    return known;
  };
  const start = Date.now();
  let minutes = 0;
  step = async (rollout, turn) => {
    began.push(minutes);
    await gate(rollout, turn).promise;
  };
  const model = script(["one", "two", "three"]);
  const run = await platform.start({ environment: "steps", num_examples: 6, model });
  const inObject = <T>(use: (object: RolloutObject, storage: DurableObjectStorage) => T | Promise<T>) =>
    platform.inRollout(rolloutAt(run.id), ({ object }, { storage }) => use(object, storage));
  await vi.waitUntil(() => began.length === 6, WAIT);
  await inObject((object) => {
    object.now = () => start + minutes * MINUTE;
  });
  // The second step of each begins while it may, each one later, and takes ten minutes.
  for (const rollout of [0, 1, 2, 3, 4, 5]) {
    minutes = rollout * 0.75;
    await inObject(() => gate(rollout, 1).resolve());
    await vi.waitUntil(() => began.length === 7 + rollout, WAIT);
  }
  for (const rollout of [0, 1, 2, 3, 4, 5]) {
    expect(await inObject((_, storage) => storage.getAlarm())).toBeNull();
    minutes = rollout * 0.75 + 10;
    await inObject(() => gate(rollout, 2).resolve());
  }
  // None continued, and the alarm is over.
  const next = await vi.waitUntil(() => inObject((_, storage) => storage.getAlarm()), WAIT);
  // Due since the first of them ended.
  expect(next).toBe(start + 10 * MINUTE);
  expect(minutes).toBeLessThan(14);
  expect(Math.max(...began)).toBeLessThanOrEqual(4);
  expect((await requestsOf(model)).length).toBe(12);
  minutes = 14;
  await inObject((object) => object.alarm());
  expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 6 });
  expect((await requestsOf(model)).length).toBe(18);
});

test("the storage of an object is freed only once all of its rollouts are over", async () => {
  const model = script(RIGHT, { slow: HANGS });
  const run = await platform.start({ environment: "gsm8k", dataset: questions(2, ["plain", "slow"]), model });
  await vi.waitFor(async () => expect((await platform.run(run.id)).counts.scored).toBe(1), WAIT);
  const free = () =>
    platform.inRollout(rolloutAt(run.id), async ({ object }, { storage }) => {
      const freed = await object.free();
      const stored = storage.sql.exec("select name from sqlite_master where name = 'facts'").toArray();
      return { freed, tables: stored.length };
    });
  expect(await free()).toEqual({ freed: false, tables: 1 });
  await platform.post(`/v1/runs/${run.id}/cancel`, {});
  await platform.ended(run.id);
  await vi.waitFor(async () => expect(await free()).toEqual({ freed: true, tables: 0 }), WAIT);
});

/** Kills the first process of each run of three at another write: right after it, or once it is on disk. */
function cutAtEachWrite(): { readonly writes: () => number; readonly cut: (from: number) => void } {
  const contexts = new Map<string, DurableObjectState>();
  const cuts = new Map<string, { at: number; seen: number }>();
  let [next, writes] = [Number.POSITIVE_INFINITY, 0];
  const runOf = (rollout: string) => rollout.split("_")[1] ?? "";
  const start = RolloutObject.prototype.start;
  vi.spyOn(RolloutObject.prototype, "start").mockImplementation(async function (this: RolloutObject, specs, sentAt) {
    const ours = specs.filter(({ scope }) => scope.orgId === platform.scope.orgId);
    for (const { rollout_id } of ours) contexts.set(runOf(rollout_id), Reflect.get(this, "ctx"));
    return await start.call(this, specs, sentAt);
  });
  const write = FactsTable.prototype.write;
  vi.spyOn(FactsTable.prototype, "write").mockImplementation(function (this: FactsTable, rollout, facts) {
    write.call(this, rollout, facts);
    const run = runOf(rollout);
    if (!contexts.has(run)) return;
    writes += 1;
    const cut = cuts.get(run) ?? { at: next++, seen: 0 };
    cuts.set(run, cut);
    cut.seen += 1;
    if (cut.seen !== cut.at) return;
    const ctx = contexts.get(run);
    if (cut.at % 2 === 0) ctx?.abort("cut");
    else void ctx?.storage.sync().then(() => ctx.abort("cut"));
  });
  return {
    writes: () => writes,
    cut: (from) => {
      next = from;
    },
  };
}

test("three rollouts whose process is killed after any of their writes end as if it were not, and only answers in flight are requested twice", async () => {
  const process = cutAtEachWrite();
  const play = async () => {
    const model = script(["one", "two"]);
    const two = { environment: "steps", environment_args: { turns: 2 }, num_examples: 3 };
    const run = await platform.start({ ...two, model });
    const ended = await platform.ended(run.id);
    expectLaw(ended.counts);
    const rows = await platform.results(run.id);
    const results = rows.map(({ example_id, reward, completion }) => ({
      example_id,
      reward,
      completion,
    }));
    const keys = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
    return {
      results: results.sort((a, b) => a.example_id - b.example_id),
      calls: keys.length,
      keys: new Set(keys).size,
    };
  };
  const uncut = await play();
  expect(uncut.calls).toBe(uncut.keys);
  const writes = process.writes();
  process.cut(1);
  const runs = await Promise.all(Array.from({ length: writes }, play));
  for (const { results, calls, keys } of runs) {
    expect({ results, keys }).toEqual({ results: uncut.results, keys: uncut.keys });
    expect(calls - keys).toBeLessThanOrEqual(3);
  }
});
