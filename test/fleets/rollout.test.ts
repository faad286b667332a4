/** Runs on a fleet with the real object; its only engine is the scripted model. */
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import { RunView } from "../../src/contract/run.ts";
import { FleetObject } from "../../src/fleets/object.ts";
import { fleetObject } from "../../src/fleets/rpc.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { trainingOn } from "../../src/kernel/db/runs.ts";
import { WAIT } from "../hang-limits.ts";
import { untilBatchReady } from "../kernel/batch-ready.ts";
import { inside, openPlatform, requestsOf, rolloutAt, type TestApi } from "../kernel/platform.ts";
import { GUESSES, questions, RIGHT } from "../kernel/rows.ts";
import { script } from "../kernel/script.ts";
import { LoopEngine } from "./loop-engine.ts";
import { insertFleet } from "./rows.ts";

const HOUR = 3_600_000;
const REPORTED = { update: FleetUpdate.parse({ mode: "reported" }) };

async function start(api: TestApi, request: object): Promise<RunView> {
  const reply = await api.post("/v1/runs", request);
  expect(reply.status).toBe(202);
  return RunView.parse(await reply.json());
}

test("an eval on a fleet is played by its replica, and each turn has its own number", async () => {
  const api = await openPlatform();
  const { fleet, replica } = await insertFleet(api.scope, REPORTED);
  const model = script(GUESSES);
  const guess = { environment: "guess-number", environment_args: { max: 3 }, seed: 5, num_examples: 3 };
  const { id } = await start(api, { ...guess, model, fleet: fleet.id });
  const run = await api.ended(id);
  expect(run).toMatchObject({ status: "completed", endpoint: null, counts: { scored: 3 } });
  expect(run.report.calls).toBe(run.report.turns);
  const { p50, p99 } = run.report.latency?.platform_ms ?? {};
  expect(p50).toBeGreaterThan(0);
  expect(p99).toBeGreaterThanOrEqual(p50 ?? Number.POSITIVE_INFINITY);
  const { turns } = await api.rollout(rolloutAt(id));
  for (const turn of turns) expect(turn).toMatchObject({ replica: replica.id, platform_ms: expect.any(Number) });
  const { replicas, max_concurrent } = await fleetObject(env, api.scope, fleet.id).standing({
    ...{ scope: api.scope, fleet_id: fleet.id },
  });
  expect([max_concurrent, replicas.map(({ in_flight }) => in_flight)]).toEqual([4, [0]]);
});

test("later prompts of token ids are rendered and sampled by the fleet's replica", async () => {
  const api = await openPlatform();
  const { fleet, replica } = await insertFleet(api.scope, REPORTED);
  const model = script(GUESSES, undefined, { tokens: true });
  const guess = { environment: "guess-number", environment_args: { max: 3 }, seed: 5, num_examples: 3 };
  const ids = { prompts: "chat_token_ids", sampling: { extra_body: { return_token_ids: true } } };
  const { id } = await start(api, { ...guess, ...ids, model, fleet: fleet.id });
  expect(await api.ended(id)).toMatchObject({ status: "completed", counts: { scored: 3 } });
  const rollouts = await Promise.all([0, 1, 2].map((group) => api.rollout(rolloutAt(id, group))));
  const turns = rollouts.flatMap((rollout) => rollout.turns);
  const later = turns.filter(({ index }) => index > 0);
  expect(later.length).toBeGreaterThan(0);
  expect(later.map(({ sent_prompt }) => sent_prompt)).toEqual(later.map(() => "token_ids"));
  for (const turn of turns) expect(turn).toMatchObject({ replica: replica.id, calls: 1 });
  const paths = (await requestsOf(model)).map(({ path }) => path);
  expect(paths.filter((path) => path === "/tokenize")).toHaveLength(4 * later.length);
  expect(paths.filter((path) => path === "/v1/chat/completions/tokens")).toHaveLength(later.length);
});

test("the fleet stamps a training run's calls, which are salted by the weights that sample them", async () => {
  const api = await openPlatform();
  const { fleet } = await insertFleet(api.scope, REPORTED);
  const model = script(["\\boxed{4}"], undefined, { tokens: true });
  const asked = { kind: "training", environment: "gsm8k", dataset: questions(2), model, fleet: fleet.id };
  const small = { group_size: 2, batch_size: { rollouts: 2 }, max_steps: 1, filters: { zero_variance: "keep" } };
  const { id } = await start(api, { ...asked, ...small });
  const standing = () => fleetObject(env, api.scope, fleet.id).standing({ scope: api.scope, fleet_id: fleet.id });
  await vi.waitUntil(async () => (await standing()).weights?.run_id === id, WAIT);
  await untilBatchReady(api, id);
  const { training } = await api.run(id);
  expect(JSON.stringify(training)).toContain('"untrainable":{}');
  const calls = (await requestsOf(model)).filter(({ idempotency_key: key }) => key.startsWith("ro_"));
  expect(new Set(calls.map(({ sampling }) => sampling["cache_salt"]))).toEqual(new Set([`${id}.0.0`]));
  await api.post(`/v1/runs/${id}/cancel`, {});
  await api.ended(id);
  await vi.waitUntil(async () => (await standing()).weights === null, WAIT);
});

test("a rollout killed during a call repeats it with its key, and the lost call counts until its time", async () => {
  const api = await openPlatform();
  const { fleet } = await insertFleet(api.scope, REPORTED);
  const model = script([{ fault: { kind: "hang" }, times: 1, reply: "\\boxed{4}" }]);
  const { id } = await start(api, { environment: "gsm8k", dataset: questions(1), model, fleet: fleet.id });
  await requestsOf(model, 1);
  const rollout = rolloutAt(id);
  await api.inRollout(rollout, (_, state) => state.abort("killed")).catch(() => "killed");
  await api.inRollout(rollout, (one) => one.alarm());
  expect((await api.ended(id)).counts).toMatchObject({ scored: 1, failed: {} });
  const keys = (await requestsOf(model)).map(({ idempotency_key: key }) => key);
  expect(keys).toEqual([`${rollout}:0`, `${rollout}:0`]);
  const of = { scope: api.scope, fleet_id: fleet.id };
  const inFlight = (later: number) =>
    inside(
      env.FLEET.getByName(`org/${api.scope.orgId}/${api.scope.projectId}/${fleet.id}`),
      FleetObject,
      async (object) => {
        object.now = () => Date.now() + later;
        return (await object.standing(of)).replicas.map(({ in_flight }) => in_flight);
      },
    );
  expect([await inFlight(0), await inFlight(HOUR)]).toEqual([[1], [0]]);
});

test("a run that started while its engine was off continues once the engine is back", async () => {
  const api = await openPlatform();
  const { fleet } = await insertFleet(api.scope, REPORTED);
  const within = (use: (object: FleetObject) => Promise<void>) =>
    inside(
      env.FLEET.getByName(`org/${api.scope.orgId}/${api.scope.projectId}/${fleet.id}`),
      FleetObject,
      async (object) => await use(object),
    );
  await within(async (object) => {
    object.network = async () => new Response("", { status: 503 });
  });
  const { id } = await start(api, {
    environment: "gsm8k",
    dataset: questions(1),
    model: script(RIGHT),
    fleet: fleet.id,
  });
  const of = { scope: api.scope, fleet_id: fleet.id };
  const state = async () => (await fleetObject(env, api.scope, fleet.id).standing(of)).replicas[0]?.state;
  await vi.waitUntil(async () => (await state()) === "down", WAIT);
  expect(await api.run(id)).toMatchObject({ status: "running", status_reason: { state: "endpoint_down" } });
  await within(async (object) => {
    const then = Date.now() + 60_000;
    object.now = () => then;
    object.network = undefined;
    await object.alarm();
  });
  expect(await state()).toBe("ready");
  expect(await api.ended(id)).toMatchObject({ status: "completed", counts: { scored: 1 } });
});

test("a run that names the location of version 0 has it loaded over other weights, and then uses it", async () => {
  const api = await openPlatform();
  const { fleet } = await insertFleet(api.scope);
  const engine = new LoopEngine();
  engine.weights = "changed by hand";
  const name = `org/${api.scope.orgId}/${api.scope.projectId}/${fleet.id}`;
  await inside(env.FLEET.getByName(name), FleetObject, async (object) => {
    object.network = ({ pathname }, { body }) => engine.answer(pathname, String(body ?? ""));
  });
  const model = script(["\\boxed{4}"], undefined, { tokens: true });
  const asked = { kind: "training", environment: "gsm8k", dataset: questions(2), model, fleet: fleet.id };
  const small = { group_size: 2, batch_size: { rollouts: 2 }, max_steps: 1, filters: { zero_variance: "keep" } };
  const { id } = await start(api, { ...asked, ...small, initial_weights: { location: "/weights/base" } });
  await untilBatchReady(api, id);
  expect(engine.weights).toBe("/weights/base");
  expect((await api.run(id)).training).toMatchObject({
    ...{ samples: { untrainable: {} }, max_lag: 0, initial_weights: { location: "/weights/base" } },
  });
  const loads = engine.asked.filter((path) => path === "/collective_rpc");
  expect(loads).toHaveLength(1);
  await api.post(`/v1/runs/${id}/cancel`, {});
  await api.ended(id);
  const standing = () => fleetObject(env, api.scope, fleet.id).standing({ scope: api.scope, fleet_id: fleet.id });
  await vi.waitUntil(async () => (await standing()).weights === null, WAIT);
  // The stored copy of the run ends after the event that reports its end.
  await vi.waitUntil(async () => (await trainingOn(databaseOf(env), api.scope, fleet.id)).length === 0, WAIT);
  // The initial weights of the next run are loaded over what this one left.
  expect((await api.post("/v1/runs", { ...asked, ...small })).status).toBe(409);
  const next = await start(api, { ...asked, ...small, initial_weights: { location: "/weights/other" } });
  await untilBatchReady(api, next.id);
  expect(engine.weights).toBe("/weights/other");
  await api.post(`/v1/runs/${next.id}/cancel`, {});
  await api.ended(next.id);
});

test("a fleet of adapters refuses a location for version 0, which it cannot load", async () => {
  const api = await openPlatform();
  const { fleet } = await insertFleet(api.scope, { update: FleetUpdate.parse({ mode: "lora_versioned" }) });
  const asked = { kind: "training", environment: "gsm8k", dataset: questions(2), model: script(RIGHT), max_steps: 1 };
  const initial = { initial_weights: { location: "/weights/base" } };
  for (const place of [{ fleet: fleet.id }, { endpoint: { base_url: env.MODEL_URL } }]) {
    const reply = await api.post("/v1/runs", { ...asked, ...place, ...initial });
    expect([reply.status, await reply.json()]).toMatchObject([400, { error: { param: "initial_weights" } }]);
  }
});
