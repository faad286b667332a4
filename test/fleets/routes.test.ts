import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { forgetPrices } from "../../src/billing/price-lists.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { getReplica, insertFleet, insertReplica, replicasOf } from "../../src/fleets/queries.ts";
import type { FleetView, ReplicaView } from "../../src/fleets/wire.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { recall } from "../../src/kernel/db/idempotency-keys.ts";
import { insertRun, updateRun } from "../../src/kernel/db/runs.ts";
import { openSealed } from "../../src/kernel/kit/sealed-values.ts";
import { services } from "../../src/kernel/service/services.ts";
import { endpointRow, runRow } from "../kernel/http/run-rows.ts";
import { openTestApi, type TestApi } from "../kernel/http/test-api.ts";
import { fleetRow, insertFleet as insertStored, replicaRow } from "./rows.ts";

const KEY = "sk-ab12cd34ef56";
const CONTROL_KEY = "ck-gh78ij90kl12";
/** Nothing listens there, and no resolver is needed. */
const NOBODY = "http://127.0.0.1:9/v1";
const REPLICA = { name: "gpu-0", base_url: NOBODY, api_key: KEY, control_key: CONTROL_KEY };
const OTHER = { ...REPLICA, name: "gpu-1", base_url: "http://127.0.0.1:9/1/v1" };

const open = () => openTestApi(services);

async function send<T>({ ask, reported }: TestApi, method: string, path: string, body?: object): Promise<T> {
  const reply = await ask(path, {
    method,
    ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  if (!reply.ok) throw new Error(String(reported[0]) + (await reply.text()));
  return await reply.json<T>();
}

async function created(api: TestApi, request: object = {}): Promise<FleetView> {
  return await send(api, "POST", "/v1/fleets", { name: "trained", replicas: [REPLICA], ...request });
}

async function errorOf(reply: Response): Promise<object> {
  const { error } = await reply.json<{ error: object }>();
  return { status: reply.status, ...error };
}

test("a fleet is created with its replicas, and only shows the last characters of their keys", async () => {
  const api = await open();
  const request = { update: { mode: "reload", pause: "keep" }, location_hint: "weur" };
  const reply = await api.post("/v1/fleets", { name: "trained", replicas: [REPLICA], ...request });
  expect(reply.status).toBe(201);
  const fleet = await reply.json<FleetView>();
  expect(reply.headers.get("location")).toBe(`/v1/fleets/${fleet.id}`);
  expect(fleet).toMatchObject({
    ...{ object: "fleet", id: expect.stringMatching(/^fl_/), name: "trained", location_hint: "weur", weights: null },
    update: { mode: "reload", pause: "keep", pause_s: 120 },
    replicas: [
      {
        ...{ id: expect.stringMatching(/^rp_/), name: "gpu-0", api_key_last4: "ef56", max_concurrent: 64 },
        capabilities: { chat: false, routes: [], error: expect.stringMatching(/^not reachable/) },
      },
    ],
  });
  expect(JSON.stringify(fleet)).not.toContain(KEY);
  for (const path of ["trained", fleet.id]) {
    expect(await send(api, "GET", `/v1/fleets/${path}`)).toMatchObject({ id: fleet.id });
  }
  expect(await send(api, "GET", "/v1/fleets")).toMatchObject({ data: [{ id: fleet.id }], has_more: false });
  const { scope } = api;
  const [row] = await replicasOf(databaseOf(env), scope, fleet.id);
  const id = row?.id ?? "";
  const [one, other] = [row?.sealed_key ?? "", row?.sealed_control_key ?? ""];
  expect(await openSealed(env, { kind: "replica", scope, id, sealed: one })).toBe(KEY);
  expect(await openSealed(env, { kind: "replica_control", scope, id, sealed: other })).toBe(CONTROL_KEY);
});

test.each(["lora_in_place", "transfer"])("a fleet cannot be created with the removed mode %s", async (mode) => {
  const api = await open();
  expect(await errorOf(await api.post("/v1/fleets", { name: "trained", update: { mode } }))).toMatchObject({
    ...{ status: 400, code: "invalid_request", param: "update.mode" },
    message: expect.stringContaining("must be one of: lora_versioned, reload, prime_rl, reported"),
  });
});

test("a fleet stored with a removed mode is listed and read, and needs another mode for a run", async () => {
  const api = await open();
  const { fleet } = await insertStored(api.scope, { name: "older" });
  const stored = { ...fleet.update, mode: "lora_in_place", init_info: { world_size: 2 } };
  const older = env.DB.prepare('update fleets set "update" = ? where id = ?');
  await older.bind(JSON.stringify(stored), fleet.id).run();
  const { init_info: _, ...rest } = stored;
  const update = { ...rest, mode: "reported" };
  expect((await send<FleetView>(api, "GET", "/v1/fleets/older")).update).toEqual(update);
  expect(await send(api, "GET", "/v1/fleets")).toMatchObject({ data: [{ id: fleet.id, update }] });
  const run = () =>
    api.post("/v1/runs/preview", { environment: "wordle", num_examples: 1, model: "m", fleet: "older" });
  expect(await errorOf(await run())).toMatchObject({
    ...{ status: 409, code: "conflict", param: "fleet" },
    message: expect.stringContaining(
      "update.mode lora_in_place was removed: change it to one of lora_versioned, reload",
    ),
  });
  await send(api, "PATCH", "/v1/fleets/older", { update: { mode: "reported" } });
  expect((await run()).status).toBe(200);
});

test("a replica that answers shows its capabilities, from the start and after another probe", async () => {
  const api = await open();
  await created(api, { replicas: [] });
  const base_url = env.MODEL_URL;
  const added = await send<ReplicaView>(api, "POST", "/v1/fleets/trained/replicas", { name: "gpu-1", base_url });
  const seen = { models: ["scripted"], probed_model: "scripted", version: null, routes: [] };
  expect(added).toMatchObject({ name: "gpu-1", capabilities: seen });
  api.clock.now += 60_000;
  const again = await send<ReplicaView>(api, "POST", "/v1/fleets/trained/replicas/gpu-1/probe");
  expect(again.capabilities).toMatchObject({ ...seen, checked_at: api.clock.now / 1000 });
  expect(await send(api, "GET", "/v1/fleets/trained/replicas")).toMatchObject({ data: [{ id: added.id }] });
});

test("an Idempotency-Key returns what the first request created, for fleets and for replicas", async () => {
  const api = await open();
  const key = { "idempotency-key": "once" };
  const one = await (await api.post("/v1/fleets", { name: "one" }, key)).json<FleetView>();
  const repeated = await api.post("/v1/fleets", { name: "one" }, key);
  expect(repeated.headers.get("idempotent-replayed")).toBe("true");
  expect(await repeated.json()).toMatchObject({ id: one.id });
  await send(api, "POST", "/v1/fleets", { name: "two" });
  const first = await api.post("/v1/fleets/one/replicas", REPLICA, key);
  const { id } = await first.json<ReplicaView>();
  expect(first.headers.get("location")).toBe(`/v1/fleets/one/replicas/${id}`);
  expect(await (await api.post("/v1/fleets/one/replicas", REPLICA, key)).json()).toMatchObject({ id });
  expect(await errorOf(await api.post("/v1/fleets/two/replicas", REPLICA, key))).toMatchObject({
    ...{ status: 422, code: "idempotency_conflict" },
  });
});

test("names are unique, and a fleet has a maximum of replicas", async () => {
  const api = await open();
  const { id } = await created(api);
  expect(await errorOf(await api.post("/v1/fleets", { name: "trained" }))).toMatchObject({
    ...{ status: 409, code: "conflict", param: "name" },
  });
  expect(await errorOf(await api.post("/v1/fleets", { name: "n", replicas: [REPLICA, REPLICA] }))).toMatchObject({
    ...{ status: 400, param: "replicas.1.name" },
  });
  expect(await errorOf(await api.post(`/v1/fleets/${id}/replicas`, REPLICA))).toMatchObject({
    ...{ status: 409, param: "name" },
  });
  for (let at = 1; at < LIMITS.fleetReplicas; at += 1) {
    await insertReplica(databaseOf(env), api.scope, replicaRow(id, { name: `n-${at}` }), null);
  }
  expect(await errorOf(await api.post(`/v1/fleets/${id}/replicas`, { ...OTHER, name: "late" }))).toMatchObject({
    ...{ status: 409, message: `the fleet already has ${LIMITS.fleetReplicas} replicas, the maximum` },
  });
});

test("of concurrently created fleets a project keeps a hundred, each with its replicas and its key", async () => {
  const api = await open();
  const { scope } = api;
  const key = { operation: "createFleet", request_hash: "h", created_at: 1 };
  const rows = Array.from({ length: LIMITS.fleetsPerProject + 1 }, (_, at) => {
    const fleet = fleetRow({ name: `n-${at}` });
    return { fleet, replica: replicaRow(fleet.id), made: { ...key, key: fleet.id, resource_id: fleet.id } };
  });
  const kept = await Promise.all(
    rows.map(({ fleet, replica, made }) =>
      insertFleet(databaseOf(env), scope, { ...fleet, name: fleet.id }, [replica], made),
    ),
  );
  expect(kept.toSorted()).toEqual(["full", ...kept.slice(1).map(() => "inserted")]);
  for (const [at, { fleet, made }] of rows.entries()) {
    const [replicas, known] = [
      await replicasOf(databaseOf(env), scope, fleet.id),
      await recall(databaseOf(env), scope, made.operation, made.key),
    ];
    const isKept = kept[at] === "inserted";
    expect([at, replicas.length, known !== null]).toEqual([at, isKept ? 1 : 0, isKept]);
  }
  const another = () => api.post("/v1/fleets", { name: "another", replicas: [] });
  const message = `the project already has ${LIMITS.fleetsPerProject} fleets, the maximum: delete some first`;
  expect(await errorOf(await another())).toMatchObject({ status: 409, code: "conflict", param: "name", message });
  await send(api, "DELETE", `/v1/fleets/${rows[kept.indexOf("inserted")]?.fleet.id}`);
  expect((await another()).status).toBe(201);
});

test("a replica may not be where the platform sells models, however the address is written", async () => {
  const api = await open();
  await created(api, { replicas: [] });
  const version = `fleet-${crypto.randomUUID()}`;
  const tokens = { input_per_mtok_micros: 1, cached_input_per_mtok_micros: 1, output_per_mtok_micros: 1 };
  const fees = { rollout_micros: 0, thousand_turns_micros: 0, scoring_micros: 0, push_micros: 0, gb_day_micros: 0 };
  const prices = { fees, models: [{ base_url: "https://offered.example/v1", model: "m", ...tokens }] };
  const row = [version, 4_000_000_000, JSON.stringify(prices), 0, "key_1"];
  const insert = "insert into price_lists (version, effective_from, prices, created_at, created_by) values (?,?,?,?,?)";
  await env.DB.prepare(insert)
    .bind(...row)
    .run();
  api.clock.now = 4_000_000_001_000;
  const asked = { ...REPLICA, base_url: "https://OFFERED.example:443/v1/" };
  const refused = { status: 400, code: "url_not_allowed" };
  try {
    expect(await errorOf(await api.post("/v1/fleets/trained/replicas", asked))).toMatchObject({
      ...{ ...refused, param: "base_url" },
    });
    expect(await errorOf(await api.post("/v1/fleets", { name: "n", replicas: [asked] }))).toMatchObject({
      ...{ ...refused, param: "replicas.0.base_url" },
    });
  } finally {
    await env.DB.prepare("delete from price_lists where version = ?").bind(version).run();
    forgetPrices();
  }
});

test("no two replicas of a fleet are one engine, however its address is written", async () => {
  const api = await open();
  await created(api, { update: { mode: "reload" } });
  const again = { name: "gpu-1", base_url: "http://127.0.0.1:09//v1/" };
  const refused = { message: "this is the engine of gpu-0: each replica needs its own engine", param: "base_url" };
  const conflict = { status: 409, code: "conflict", ...refused };
  expect(await errorOf(await api.post("/v1/fleets/trained/replicas", again))).toMatchObject(conflict);
  const steered = { name: "gpu-1", base_url: "http://127.0.0.1:9/1/v1", control_url: "http://127.0.0.1:9" };
  expect(await errorOf(await api.post("/v1/fleets/trained/replicas", steered))).toMatchObject({
    ...{ ...conflict, param: "control_url" },
  });
  const { control_url: _, ...own } = steered;
  await send(api, "POST", "/v1/fleets/trained/replicas", own);
  const init = { method: "PATCH", headers: { "content-type": "application/json" } };
  const moved = await api.ask("/v1/fleets/trained/replicas/gpu-1", {
    ...init,
    body: JSON.stringify({ base_url: NOBODY }),
  });
  expect(await errorOf(moved)).toMatchObject(conflict);
  const both = { name: "both", replicas: [REPLICA, again] };
  expect(await errorOf(await api.post("/v1/fleets", both))).toMatchObject({
    ...{ ...refused, status: 400, code: "invalid_request", param: "replicas.1.base_url" },
  });
});

test("a change keeps absent fields, and sends a stored key to no other server", async () => {
  const api = await open();
  const fleet = await created(api);
  const path = "/v1/fleets/trained/replicas/gpu-0";
  expect(await send(api, "PATCH", path, { draining: true, max_concurrent: 8 })).toMatchObject({
    ...{ max_concurrent: 8, base_url: NOBODY, api_key_last4: "ef56" },
  });
  const moved = await api.ask(path, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ base_url: "http://127.0.0.1:10/v1" }),
  });
  expect(await errorOf(moved)).toMatchObject({ status: 400, code: "invalid_request", param: "control_key" });
  const id = fleet.replicas[0]?.id ?? "";
  expect(await getReplica(databaseOf(env), api.scope, id)).toMatchObject({ base_url: NOBODY, draining: true });
  const changed = { name: "renamed", update: { mode: "prime_rl" }, location_hint: "apac" };
  expect(await send(api, "PATCH", "/v1/fleets/trained", changed)).toMatchObject(changed);
});

test("update mode and adapter cannot change while a training run uses the fleet; the rest can", async () => {
  const api = await open();
  const { id } = await created(api, { update: { mode: "lora_versioned" } });
  const run = runRow(endpointRow({ id }), { kind: "training" });
  await insertRun(databaseOf(env), api.scope, run, null);
  const change = (update: object) => {
    const init = { method: "PATCH", headers: { "content-type": "application/json" } };
    return api.ask("/v1/fleets/trained", { ...init, body: JSON.stringify({ update }) });
  };
  for (const update of [{ mode: "reload" }, { mode: "lora_versioned", adapter: "other" }]) {
    expect(await errorOf(await change(update))).toMatchObject({
      ...{ status: 409, code: "conflict", param: "update", message: expect.stringContaining(run.id) },
    });
  }
  expect((await change({ mode: "lora_versioned", update_s: 5 })).status).toBe(200);
  await updateRun(databaseOf(env), api.scope, run.id, { status: "completed" });
  expect((await change({ mode: "reload" })).status).toBe(200);
});

test("a removed replica is gone with its keys, and a deleted fleet's name is free again", async () => {
  const api = await open();
  const fleet = await created(api, { replicas: [REPLICA, OTHER] });
  const [gone, left] = ["gpu-0", "gpu-1"].map((name) => fleet.replicas.find((one) => one.name === name));
  expect(await send(api, "DELETE", "/v1/fleets/trained/replicas/gpu-0")).toEqual({
    ...{ object: "replica", id: gone?.id, deleted: true },
  });
  expect(await getReplica(databaseOf(env), api.scope, gone?.id ?? "")).toBeNull();
  expect(await send(api, "DELETE", "/v1/fleets/trained")).toEqual({ object: "fleet", id: fleet.id, deleted: true });
  expect(await getReplica(databaseOf(env), api.scope, left?.id ?? "")).toBeNull();
  expect((await api.ask(`/v1/fleets/${fleet.id}`)).status).toBe(404);
  expect(await created(api)).not.toMatchObject({ id: fleet.id });
});
