/** Runs that share an endpoint, and an endpoint that fails: the real objects, with clocks moved by hand. */
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { EndpointView } from "../../../src/contract/endpoint.ts";
import type { RunView } from "../../../src/contract/run.ts";
import { NO_OUTCOMES } from "../../../src/kernel/endpoint/health.ts";
import { EndpointObject } from "../../../src/kernel/endpoint/object.ts";
import { WAIT } from "../../hang-limits.ts";
import { expectLaw, type Inside, inside, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { down, questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const HOUR = 3600_000;
/** An address without a server. */
const NOBODY = "http://127.0.0.1:1/v1";
const HANGS = [{ fault: { kind: "hang" } }] as const;

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function create(request: object): Promise<EndpointView> {
  const reply = await api.post("/v1/endpoints", {
    base_url: env.MODEL_URL,
    probe: false,
    ...request,
  });
  expect(reply.status).toBe(201);
  return EndpointView.parse(await reply.json());
}

function inEndpoint<T>(id: string, use: Inside<EndpointObject, T>): Promise<T> {
  const { orgId, projectId } = api.scope;
  const stub: DurableObjectStub = env.ENDPOINT.getByName(`org/${orgId}/${projectId}/${id}`);
  return inside(stub, EndpointObject, use);
}

/** Reads the run at each event until it is in the wanted state. */
async function until(id: string, stands: (run: RunView) => boolean): Promise<RunView> {
  for (let after = 0; ; ) {
    const run = await api.run(id);
    if (stands(run)) return run;
    const read = await api.inRun(id, (object) => object.events(after, 1000));
    after = read?.events.at(-1)?.id ?? after;
  }
}

function running(id: string): Promise<number> {
  return api.inRun(id, async (object) => (await object.view())?.counts.in_flight ?? -1);
}

function hanging(endpoint: string, max_concurrent = 10) {
  const dataset = questions(20);
  return api.start({
    environment: "gsm8k",
    dataset,
    model: script(HANGS),
    endpoint,
    max_concurrent,
  });
}

test("runs of one endpoint together never exceed its limit of concurrent rollouts, and what one leaves another gets", async () => {
  await create({ name: "narrow", max_concurrent: 3 });
  const first = await hanging("narrow");
  expect(await running(first.id)).toBe(3);
  const second = await hanging("narrow", 2);
  expect(await running(second.id)).toBe(0);
  expect((await api.run(second.id)).status_reason).toEqual({
    state: "rate_limited",
    reason: "max_concurrent of its endpoint is 3, shared by 2 runs",
  });
  await api.post(`/v1/runs/${first.id}/cancel`, {});
  expect((await api.ended(first.id)).status).toBe("cancelled");
  await vi.waitUntil(async () => (await running(second.id)) === 2, WAIT);
  await api.post(`/v1/runs/${second.id}/cancel`, {});
  await api.ended(second.id);
});

test("a raised limit applies to runs under way", async () => {
  await create({ name: "raised", max_concurrent: 2 });
  const [first, second] = [await hanging("raised"), await hanging("raised")];
  expect([await running(first.id), await running(second.id)]).toEqual([2, 0]);
  const patched = await api.ask("/v1/endpoints/raised", {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ max_concurrent: 4 }),
  });
  expect(patched.status).toBe(200);
  await vi.waitUntil(async () => (await running(second.id)) === 2, WAIT);
  for (const { id } of [first, second]) await api.post(`/v1/runs/${id}/cancel`, {});
});

test("the endpoint's object forgets its last run, an hour later its latencies, and was called a few times", async () => {
  const { id } = await create({ name: "left" });
  const asks = vi.spyOn(EndpointObject.prototype, "ask");
  const request = { environment: "gsm8k", dataset: questions(60), model: script(RIGHT) };
  await api.finish({ ...request, endpoint: "left", max_concurrent: 5 });
  const kept = () => inEndpoint(id, (_, { storage }) => [...storage.kv.list()].map(([key]) => key));
  await vi.waitUntil(async () => String(await kept()) === "latencies", WAIT);
  await inEndpoint(id, async (object) => {
    object.now = () => Date.now() + 2 * HOUR;
    await object.alarm();
  });
  expect(await kept()).toEqual([]);
  expect(asks.mock.calls.filter(([{ endpoint_id }]) => endpoint_id === id).length).toBeLessThan(4);
});

/** A run whose first rollouts meet a dead endpoint; it makes no progress once those in flight have failed. */
async function stopped(name: string, failing: number, probe: "answers" | "fails") {
  const { id: endpoint } = await create({ name });
  // A fixed clock, an hour ahead: its real alarm does not fire before the one that the test fires.
  const base = Date.now() + HOUR;
  await inEndpoint(endpoint, (object) => {
    object.now = () => base;
  });
  const dead = [{ fault: down }];
  const model = script(RIGHT, { dead, ...(probe === "fails" && { Hi: dead }) });
  const { id } = await api.start({
    environment: "gsm8k",
    dataset: questions(50, Array<string>(failing).fill("dead")),
    ...{ model, endpoint: name },
    ...{ max_concurrent: 5, limits: { max_retries: 0 }, min_scored: 0 },
  });
  const run = await until(
    id,
    ({ counts, status_reason }) => counts.in_flight === 0 && status_reason?.state === "endpoint_down",
  );
  return { id, endpoint, model, run, base };
}

test("an endpoint that fails ten rollouts in a row gets no more; the run shows why, and continues when a probe is answered", async () => {
  const { id, endpoint, run, model, base } = await stopped("fails", 19, "answers");
  expectLaw(run.counts);
  expect(run.status_reason?.reason).toMatch(/^\d\d rollouts in a row failed at the endpoint: 500/);
  // The ten, and those in flight with the last of them.
  expect(run.counts.failed["provider"]).toBeLessThanOrEqual(14);
  expect(run.counts.scored).toBe(0);
  await inEndpoint(endpoint, async (object) => {
    object.now = () => base + 5000;
    await object.alarm();
  });
  const ended = await api.ended(id);
  expect(ended).toMatchObject({ status: "completed", counts: { dispatched: 50, scored: 31 } });
  const probes = (await requestsOf(model)).filter(({ idempotency_key }) => idempotency_key.startsWith("probe:"));
  expect(probes.length).toBe(1);
});

test("a down endpoint is finally probed every 20 s, and the waiting run only renews its lease", async () => {
  const { id, endpoint, model, base } = await stopped("stays-down", 50, "fails");
  let now = base;
  const waits = await inEndpoint(endpoint, async (object, { storage }) => {
    object.now = () => now;
    const seen: number[] = [];
    for (let probes = 0; probes < 6; probes += 1) {
      const at = (await storage.getAlarm()) ?? 0;
      seen.push(Math.round((at - now) / 1000));
      now = Math.max(now, at);
      await object.alarm();
    }
    return seen;
  });
  expect(waits.slice(1)).toEqual([10, 20, 20, 20, 20]);
  expect((await requestsOf(model)).filter(({ idempotency_key }) => idempotency_key.startsWith("probe:")).length).toBe(
    6,
  );
  const alarms = await api.inRun(id, async (run, { storage }) => {
    let clock = Date.now();
    run.now = () => clock;
    const fired: number[] = [];
    const next = async () => (await storage.getAlarm()) ?? Number.POSITIVE_INFINITY;
    // Pending writes to D1 come first.
    for (let at = await next(); at - clock < 60_000; at = await next()) {
      clock = Math.max(clock, at);
      await run.alarm();
    }
    const end = clock + HOUR;
    for (let at = await next(); at < end; at = await next()) {
      fired.push(at - clock);
      clock = at;
      await run.alarm();
    }
    return fired;
  });
  expect(Math.min(...alarms)).toBeGreaterThanOrEqual(60_000);
  expect(alarms.length).toBeLessThanOrEqual(13);
  expect((await api.run(id)).status_reason?.state).toBe("endpoint_down");
});

test("calls in flight wait while their endpoint is down, use none of their tries, and are made when it is back", async () => {
  const { id: endpoint } = await create({ name: "away", base_url: NOBODY });
  const { id } = await api.start({
    environment: "gsm8k",
    dataset: questions(12),
    ...{ model: script(RIGHT), endpoint: "away", max_concurrent: 12 },
    limits: { max_retries: 2 },
  });
  const waiting = await until(id, ({ status_reason }) => status_reason?.state === "endpoint_down");
  expect(waiting.status_reason?.reason).toMatch(/^it does not answer: /);
  const rollouts = Array.from({ length: 12 }, (_, group) => rolloutAt(id, group));
  const hold = (rollout: string) => api.inRollout(rollout, (object) => object.read()?.intent);
  await vi.waitUntil(async () => (await Promise.all(rollouts.map(hold))).every((intent) => intent?.held_until), WAIT);
  const now = Date.now();
  // At any time: woken during the outage, they ask and keep waiting.
  for (const rollout of rollouts) await api.inRollout(rollout, (object) => object.alarm());
  const held = await Promise.all(rollouts.map(hold));
  for (const intent of held) {
    expect(intent?.failures).toBeLessThanOrEqual(2);
    expect(intent?.not_before).toBeLessThanOrEqual(now + 30_000);
  }
  expect((await api.run(id)).counts).toMatchObject({ in_flight: 12, failed: {} });
  // Now a server answers: the same as when the API changes the endpoint's row.
  await env.DB.prepare("update endpoints set base_url = ? where id = ?").bind(env.MODEL_URL, endpoint).run();
  await inEndpoint(endpoint, (object) => object.changed());
  // Active again, or ended already: their own alarms may come first.
  await until(id, ({ status_reason }) => status_reason?.state !== "endpoint_down");
  // Some may ask before the recovery is noted, and wait once more.
  const all = async () => {
    for (const rollout of rollouts) {
      await api.inRollout(rollout, async (object) => {
        object.now = () => Date.now() + 60_000;
        await object.alarm();
      });
    }
    return (await api.run(id)).counts.scored === 12;
  };
  await vi.waitUntil(all, WAIT);
  expect((await api.ended(id)).counts).toMatchObject({ scored: 12, failed: {} });
});

test("a rollout whose clock is ahead of its endpoint's asks once each time it is woken, and waits", async () => {
  await create({ name: "ahead", base_url: NOBODY });
  const { id } = await api.start({
    environment: "gsm8k",
    dataset: questions(12),
    ...{ model: script(RIGHT), endpoint: "ahead", max_concurrent: 12 },
  });
  await until(id, ({ status_reason }) => status_reason?.state === "endpoint_down");
  const rollout = rolloutAt(id, 0);
  await vi.waitUntil(() => api.inRollout(rollout, (object) => object.read()?.intent?.held_until), WAIT);
  const asks = vi.spyOn(EndpointObject.prototype, "failing");
  const ahead = Date.now() + 60_000;
  await api.inRollout(rollout, async (object) => {
    object.now = () => ahead;
    await object.alarm();
  });
  const asked = asks.mock.calls.filter(([call]) => call.rollout_id === rollout).length;
  expect(asked).toBe(1);
  await api.inRollout(rollout, (object) => {
    object.now = () => Date.now();
  });
  await api.post(`/v1/runs/${id}/cancel`, {});
  await api.ended(id);
});

test("a call that has waited for its endpoint as long as allowed uses the tries it has left, and fails with the reason", async () => {
  await create({ name: "gone", base_url: NOBODY });
  const { id } = await api.start({
    environment: "gsm8k",
    dataset: questions(12),
    ...{ model: script(RIGHT), endpoint: "gone", max_concurrent: 12 },
    limits: { max_retries: 2 },
    min_scored: 0,
  });
  const rollout = rolloutAt(id, 0);
  const held = () => api.inRollout(rollout, (object) => object.read()?.intent?.held_until ?? 0);
  await until(id, ({ status_reason }) => status_reason?.state === "endpoint_down");
  const heldUntil = await vi.waitUntil(held, WAIT);
  let now = heldUntil;
  const done = () =>
    api.inRollout(rollout, async (object) => {
      object.now = () => now;
      now += 60_000;
      await object.alarm();
      return object.read()?.phase === "done";
    });
  await expect.poll(done).toBe(true);
  // The same object plays other rollouts of the run.
  await api.inRollout(rollout, (object) => {
    object.now = () => Date.now();
  });
  const ended = await api.rollout(rollout);
  expect(ended).toMatchObject({ status: "done", outcome: "failed", reason: "provider" });
  expect(ended.failed_calls.length).toBe(3);
  await api.post(`/v1/runs/${id}/cancel`, {});
  await api.ended(id);
});

test("a change that is read while the last run leaves does not bring the run back", async () => {
  const { id } = await create({ name: "abandoned" });
  const said = { scope: api.scope, endpoint_id: id, run_id: "run_leaving", model: "m" };
  const kept = await inEndpoint(id, async (object, { storage }) => {
    await object.ask({ ...said, running: 0, wants: 5, more: true, outcomes: NO_OUTCOMES });
    const changing = object.changed();
    await object.ask({ ...said, running: 0, wants: 0, more: false, outcomes: NO_OUTCOMES });
    await changing;
    return [...storage.kv.list()].map(([key]) => key);
  });
  expect(kept).toEqual([]);
});
