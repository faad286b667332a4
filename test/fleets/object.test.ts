/** A fleet object with engines behind its network. Clock and alarms are driven by hand; a kill leaves only the disk. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import type { FleetObject } from "../../src/fleets/object.ts";
import { refuseHeld } from "../../src/fleets/place.ts";
import { getFleet, replicasOf, updateFleet } from "../../src/fleets/queries.ts";
import { fleetObject } from "../../src/fleets/rpc.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { DrivenFleet } from "./driven-fleet.ts";
import type { Cut } from "./loop-engine.ts";

const HOUR = 3_600_000;
const SOON = { interval: 5 };
const ANEW = "restart the engine, or remove the replica and add it again with the initial weights of a run";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

const CUTS: readonly (readonly [string, Cut])[] = [
  ["/pause", "after"],
  ["/v1/models", "before"],
  ["/collective_rpc", "before"],
  ["/collective_rpc", "after"],
  ["/resume", "after"],
];

test("a fleet killed at any moment of an update brings its replica to the new weights and resumes it", async () => {
  await Promise.all(
    CUTS.map(async ([route, at]) => {
      const fleet = await new DrivenFleet(api.scope, 1).open();
      const engine = fleet.engine(0);
      const before = await fleet.call();
      await fleet.order(1);
      await fleet.kill(engine, route, at);
      if (route !== "/v1/models") expect(await fleet.begin()).toMatchObject({ kind: "wait" });
      await fleet.fire();
      expect([route, at, engine.paused, engine.weights]).toEqual([route, at, false, "/weights/1"]);
      expect(await fleet.states()).toEqual(["ready 1"]);
      const after = await fleet.call();
      expect(await fleet.in((object) => object.versions(fleet.run_id, [before, after]))).toEqual([0, 1]);
    }),
  );
});

test("calls get versions by what their replica served, and none after a restart or a contradiction", async () => {
  const fleet = await new DrivenFleet(api.scope, 2).open();
  await fleet.order(1);
  const across = await fleet.go();
  await fleet.fire();
  // The engine with the call in flight is drained first; the other already has its new weights.
  expect(await fleet.states()).toEqual(["ready 1", "updating 0"]);
  const { replica_id, number, model } = across;
  const heard = await fleet.in((object) => object.ended({ number, replica_id, outcome: "answered" }));
  await fleet.fire();
  expect(await fleet.states()).toEqual(["ready 1", "ready 1"]);
  const known = await fleet.call("1");
  const restarted = await fleet.call();
  const versions = (calls: Parameters<FleetObject["versions"]>[1]) =>
    fleet.in((object) => object.versions(fleet.run_id, calls));
  expect(await versions([{ replica_id, number, model, end: heard?.end ?? null }, known])).toEqual([0, 1]);
  for (const engine of Object.values(fleet.engines)) engine.restart();
  expect(await versions([known, restarted].map((call) => ({ ...call, end: call.end })))).toEqual([1, 1]);
  expect(await versions([{ ...restarted, end: null }])).toEqual([null]);
  fleet.now += 60_000;
  await fleet.fire();
  const lying = await fleet.call("7");
  expect(lying.end).toBeNull();
  const { replicas } = await fleet.in((object) => object.standing(fleet.of));
  expect(replicas.find((one) => one.replica_id === lying.replica_id)).toMatchObject({
    ...{ state: "stale", reason: "it reports 7 after 1 was applied", version: null },
  });
});

test("a dead replica is out until it is back with its weights; an unused fleet sends nothing", async () => {
  const fleet = await new DrivenFleet(api.scope, 2).open();
  await fleet.call();
  await fleet.order(1);
  await fleet.fire();
  const engine = fleet.engine(0);
  engine.alive = false;
  fleet.now += 10_000;
  await fleet.fire();
  expect(await fleet.states()).toEqual(["down 1", "ready 1"]);
  // `replica.down` was emitted once.
  const told = await fleet.in((_, { storage }) => storage.sql.exec("select replica from replicas").toArray());
  const records = told.map(({ replica }) => JSON.parse(String(replica)));
  expect(records.filter(({ announced }) => announced !== null)).toMatchObject([
    { shown: "down", announced: fleet.now },
  ]);
  engine.alive = true;
  engine.restart();
  fleet.now += 5000;
  await fleet.fire();
  expect([engine.weights, await fleet.states()]).toEqual(["/weights/1", ["ready 1", "ready 1"]]);
  // The run continues, paused.
  fleet.now += 2 * HOUR;
  const asked = engine.asked.length;
  // The alarm that was set before is due.
  await fleet.in((_, state) => state.storage.deleteAlarm());
  await fleet.fire();
  expect(engine.asked.length).toBe(asked);
  expect(await fleet.in((_, state) => state.storage.getAlarm())).toBeNull();
});

test("an unreachable replica is probed while a run waits for it, and not otherwise", async () => {
  const fleet = new DrivenFleet(api.scope, 1);
  const engine = fleet.engine(0);
  engine.alive = false;
  await fleet.open();
  expect(await fleet.states()).toEqual(["down null"]);
  engine.alive = true;
  fleet.now += 60_000;
  await fleet.in((_, state) => state.storage.deleteAlarm());
  await fleet.fire();
  expect(await fleet.states()).toEqual(["down null"]);
  expect(await fleet.in((_, state) => state.storage.getAlarm())).toBeNull();
  await fleet.in((object) => object.standing(fleet.of, false, true));
  expect(await fleet.in((_, state) => state.storage.getAlarm())).not.toBeNull();
  await fleet.fire();
  expect(await fleet.states()).toEqual(["ready null"]);
});

test("a fleet with weights of a finished run accepts no training run until its engines were restarted", async () => {
  const fleet = await new DrivenFleet(api.scope, 1).open();
  await fleet.order(1);
  await fleet.fire();
  await fleet.in((object) => object.release(fleet.run_id));
  const { scope } = api;
  const rows = await replicasOf(databaseOf(env), scope, fleet.fleet_id);
  const row = await getFleet(databaseOf(env), scope, fleet.fleet_id);
  if (row === null) throw new Error("no fleet");
  const refused = () => refuseHeld(env, scope, { fleet: row, replicas: rows });
  expect(await refused()).toMatchObject({
    error: { code: "conflict", param: "fleet", message: `replica gpu-0: it has weights of ${fleet.run_id}: ${ANEW}` },
  });
  fleet.engine(0).restart();
  fleet.now += 2 * HOUR;
  await fleet.in(() => undefined);
  expect(await refused()).toBeNull();
});

test("a replica cannot be removed while its engine is paused, and a freed fleet resumes its engines", async () => {
  const fleet = await new DrivenFleet(api.scope, 1).open();
  const [id = ""] = fleet.ids;
  const engine = fleet.engine(0);
  await fleet.order(1);
  await fleet.kill(engine, "/collective_rpc", "before");
  expect(engine.paused).toBe(true);
  const letGo = () => fleet.in((object) => object.letGo(fleet.of, id));
  expect(await letGo()).toMatch(/^replica gpu-0 is being updated \(load\)/);
  expect(await fleet.in((object) => object.letGo(fleet.of, null))).toMatch(/^replica gpu-0/);
  const freed = await new DrivenFleet(api.scope, 1).open();
  await freed.order(1);
  await freed.kill(freed.engine(0), "/collective_rpc", "before");
  await freed.in((object) => object.free());
  expect(freed.engine(0).paused).toBe(false);
  await fleet.fire();
  expect([engine.paused, await letGo()]).toEqual([false, null]);
  // No update pauses it between the answer and its removal.
  await fleet.order(2);
  await fleet.fire();
  expect([engine.weights, engine.paused]).toEqual(["/weights/1", false]);
  fleet.now += HOUR;
  await fleet.fire();
  expect(engine.weights).toBe("/weights/2");
});

test("a fleet that is freed while an engine is paused waits for that engine, and resumes it", async () => {
  const fleet = await new DrivenFleet(api.scope, 2).open();
  const { replica_id } = await fleet.go();
  await fleet.order(1);
  const [looked, updated] = [true, false].map((own) =>
    fleet.engine(fleet.ids.findIndex((id) => (id === replica_id) === own)),
  );
  if (looked === undefined || updated === undefined) throw new Error("no such engine");
  const open = await fleet.in(() => ({ look: looked.shut("/v1/models"), load: updated.shut("/collective_rpc") }));
  fleet.now += 10_000;
  fleet.lastStepMs = 20;
  let ended = false;
  const fired = fleet.fire().then(() => {
    ended = true;
  });
  await expect.poll(() => looked.waiting && updated.waiting, SOON).toBe(true);
  expect(await fleet.in((object) => object.free())).toBe(false);
  const asked = looked.asked.length;
  await fleet.in(() => open.look());
  await expect.poll(() => looked.asked.length, SOON).toBeGreaterThan(asked + 3);
  await fleet.in(() => undefined);
  expect([ended, updated.paused]).toEqual([false, true]);
  await fleet.in(() => open.load());
  await fired;
  // It starts nothing more, and is called again.
  expect(updated.paused).toBe(true);
  expect(await fleet.in((object) => object.free())).toBe(true);
  expect([updated.paused, (await fleet.begin()).kind]).toEqual([false, "gone"]);
});

test("a fleet killed in a long step while being freed still knows its paused engine, and resumes it", async () => {
  const fleet = await new DrivenFleet(api.scope, 1).open();
  const engine = fleet.engine(0);
  await fleet.order(1);
  engine.cut = { route: "/collective_rpc", at: "before" };
  void fleet.fire().catch(() => "killed");
  await expect.poll(() => engine.cut, SOON).toBe(null);
  fleet.lastStepMs = 20;
  expect(await fleet.in((object) => object.free())).toBe(false);
  await fleet.in((_, state) => state.abort("killed")).catch(() => "killed");
  expect(engine.paused).toBe(true);
  expect(await fleet.in((object) => object.free())).toBe(true);
  expect([engine.paused, (await fleet.begin()).kind]).toEqual([false, "gone"]);
});

test("a fleet about to be deleted pauses none of its engines, even if an update is due", async () => {
  const fleet = await new DrivenFleet(api.scope, 2).open();
  const engine = fleet.engine(0);
  expect(await fleet.in((object) => object.letGo(fleet.of, null))).toBeNull();
  await fleet.order(1);
  await fleet.fire();
  await fleet.in((_, state) => state.abort("killed")).catch(() => "killed");
  await fleet.fire();
  expect(Object.values(fleet.engines).flatMap(({ asked }) => asked)).not.toContain("/pause");
  // The deletion did not happen.
  fleet.now += 60_000;
  await fleet.fire();
  expect([engine.weights, await fleet.states()]).toEqual(["/weights/1", ["ready 1", "ready 1"]]);
});

test("a fleet freed while an engine is being paused starts nothing more there, and resumes it first", async () => {
  const fleet = await new DrivenFleet(api.scope, 1).open();
  const engine = fleet.engine(0);
  const pause = engine.hold("/pause");
  await fleet.order(1);
  const pass = fleet.fire();
  await pause.met;
  let gone = false;
  const freed = fleet
    .in((object) => object.free())
    .then(() => {
      gone = true;
    });
  await fleet.in(() => undefined);
  expect(gone).toBe(false);
  pause.release();
  await Promise.all([freed, pass]);
  expect([engine.paused, engine.weights, engine.asked.at(-1)]).toEqual([false, "base", "/resume"]);
  expect(await fleet.begin()).toMatchObject({ kind: "gone" });
});

test("a fleet killed during a call can assign its version once it ends, and has no call left over", async () => {
  const fleet = await new DrivenFleet(api.scope, 1).open();
  await fleet.order(1);
  await fleet.fire();
  const kill = () => fleet.in((_, state) => state.abort("killed")).catch(() => "killed");
  const within = await fleet.go();
  await kill();
  const heard = await fleet.in((object) => object.ended({ ...within, outcome: "answered" }));
  const [across, lost] = [await fleet.go(), await fleet.go()];
  await kill();
  // No call counts as in flight any more: the engine is drained immediately.
  await fleet.order(2);
  await fleet.fire();
  const late = await fleet.in((object) => object.ended({ ...across, outcome: "answered" }));
  const calls = [heard, late, null].map((one, at) => ({
    ...([within, across, lost][at] ?? lost),
    end: one?.end ?? null,
  }));
  expect(await fleet.in((object) => object.versions(fleet.run_id, calls))).toEqual([1, null, null]);
  const { replicas } = await fleet.in((object) => object.standing(fleet.of));
  expect(replicas).toMatchObject([{ state: "ready", version: 2, in_flight: 0 }]);
});

test("a fleet stored with a removed mode takes no calls and reports that, until it has another mode", async () => {
  const fleet = await new DrivenFleet(api.scope, 1).open();
  const engine = fleet.engine(0);
  await fleet.order(1);
  await fleet.fire();
  const older = `update fleets set "update" = json_set("update", '$.mode', 'transfer', '$.init_info', json('{}'))`;
  await env.DB.prepare(`${older} where id = ?`).bind(fleet.fleet_id).run();
  await fleet.in((_, { storage }) => {
    const shared = storage.kv.get<{ update: object }>("shared");
    storage.kv.put("shared", { ...shared, update: { ...shared?.update, mode: "transfer", init_info: {} } });
  });
  await fleet.in((_, state) => state.abort("killed")).catch(() => "killed");
  engine.asked.length = 0;
  await fleet.order(2);
  await fleet.fire();
  expect(engine.asked).not.toContain("/pause");
  const { replicas } = await fleet.in((object) => object.standing(fleet.of));
  const other = "lora_versioned, reload, prime_rl, reported";
  const reason = `the fleet's update.mode transfer was removed: change it to one of ${other}`;
  expect(replicas).toMatchObject([{ state: "stale", reason }]);
  expect(await fleet.begin()).toMatchObject({ kind: "wait" });
  const update = FleetUpdate.parse({ mode: "reload" });
  await updateFleet(databaseOf(env), api.scope, fleet.fleet_id, { update, updated_at: 2 });
  await fleet.in((object) => object.changed(fleet.of));
  expect(await fleet.states()).toEqual(["stale null"]);
  engine.restart();
  fleet.now += 60_000;
  await fleet.fire();
  expect(await fleet.states()).toEqual(["ready 2"]);
});

test("a fleet that was not created has no replicas and writes nothing, and a freed fleet is gone", async () => {
  const nobody = new DrivenFleet(api.scope, 1);
  expect(await nobody.begin()).toEqual({ kind: "gone", reason: "its fleet was deleted" });
  expect(await nobody.in((_, { storage }) => [...storage.kv.list()].length)).toBe(0);
  const fleet = await new DrivenFleet(api.scope, 1).open();
  await fleetObject(env, api.scope, fleet.fleet_id).free();
  expect(await fleet.begin()).toMatchObject({ kind: "gone" });
});
