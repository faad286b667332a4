/** Who takes a call, when a replica is left alone, and what trainers hear. */
import { expect, test } from "vitest";
import { FleetUpdate } from "../../../src/contract/fleet.ts";
import type { FleetCall } from "../../../src/runtime/contract/fleet-wire.ts";
import { choose } from "../../../src/runtime/fleet/choose.ts";
import { Circuits } from "../../../src/runtime/fleet/circuit.ts";
import { toUnload, wantedOf } from "../../../src/runtime/fleet/driving.ts";
import { InFlight } from "../../../src/runtime/fleet/in-flight.ts";
import { orderGone, takeOrder, untold } from "../../../src/runtime/fleet/orders.ts";
import { isAway, lacksAdapter, probeDone } from "../../../src/runtime/fleet/probing.ts";
import { type FleetState, newFleet, setReplicas, withReplica } from "../../../src/runtime/fleet/state.ts";

const SCOPE = { orgId: "o", projectId: "p" };
const IDS = ["a", "b", "c"];

/** Three replicas of two places each, all ready. */
function fleet(mode: FleetUpdate["mode"] = "reload"): FleetState {
  const update = FleetUpdate.parse({ mode });
  const settings = IDS.map((id) => ({ id, name: id, max_concurrent: 2, draining: false, address: id }));
  const joined = setReplicas(newFleet(update), update, settings, 0);
  const check = { kind: "alive", models: ["base"], started_at: 1, weights: null } as const;
  return IDS.reduce((state, id) => probeDone(state, id, { now: 0, number: 2, at: 1, check, phase: null }), joined);
}

function chosen(state: FleetState, asked: Partial<FleetCall>, load: Readonly<Record<string, number>> = {}) {
  const call = {
    scope: SCOPE,
    fleet_id: "fl",
    run_id: "run_a",
    rollout_id: "ro",
    turn: 0,
    model: "base",
    trains: true,
  };
  const choice = choose(state, { ...call, last_replica: null, wait_ms: 1, ...asked }, (id) => load[id] ?? 0);
  return choice.kind === "go" ? choice.replica.id : choice.reason;
}

function order(version: number, generation = 0) {
  const of = { scope: SCOPE, fleet_id: "fl", run_id: "run_a", epoch: 1, location: "/w", label: null };
  return { ...of, generation, version };
}

test("a call goes where its rollout was, else where most places are free, and not where it just failed", () => {
  const state = fleet();
  expect(chosen(state, {}, { a: 1 })).toBe("b");
  expect(chosen(state, { last_replica: "a" }, { a: 1 })).toBe("a");
  expect(chosen(state, { last_replica: "a", failed_replica: "a" }, { a: 1, b: 1 })).toBe("c");
  expect(chosen(state, { last_replica: "a" }, { a: 2, b: 1 })).toBe("c");
  expect(chosen(state, {}, { a: 2, b: 2, c: 2 })).toBe("every replica has as many calls as it may have");
  const drained = withReplica(state, "a", { draining: true }, 0);
  expect(chosen(drained, {}, { b: 1, c: 1 })).toBe("b");
  expect(chosen(drained, { last_replica: "a" })).toBe("a");
  const unknown = IDS.reduce((before, id) => withReplica(before, id, { holds: null }, 0), state);
  expect(chosen(unknown, {})).toBe("no replica is ready: 3 stale");
});

test("five rollouts in a row that a replica failed open its circuit, one rollout five times does not", () => {
  const circuits = new Circuits();
  const heard = (rollout: string) => circuits.heard("a", "unreachable", rollout);
  expect(["1", "1", "1", "1", "1", "2", "3", "4"].map(heard)).not.toContain(true);
  circuits.heard("a", "answered", "1");
  expect(["1", "2", "3", "4", "5"].map(heard)).toEqual([false, false, false, false, true]);
});

test("a call whose end nobody tells of counts as over when its time is", () => {
  const calls = new InFlight();
  const call = { replica_id: "a", rollout_id: "ro", model: "m", version: 0 };
  calls.add(1, { ...call, until: 10 });
  calls.add(2, { ...call, until: 20 });
  calls.expire(10);
  expect([calls.of("a"), calls.end(1), calls.end(2)?.until, calls.of("a")]).toEqual([1, null, 20, 0]);
});

test("trainers hear of each replica what it serves, and that one that is away is not to be waited for", () => {
  const ordered = takeOrder(takeOrder(fleet(), order(2), 0), order(1), 0);
  expect(ordered.orders.map(({ version }) => version)).toEqual([2]);
  const [replica] = Object.values(ordered.replicas);
  if (replica === undefined) throw new Error("no replica");
  const news = { run_id: "run_a", generation: 0, version: 0, state: "applied" } as const;
  expect(untold(ordered, replica)).toEqual([news]);
  const told = withReplica(ordered, "a", { told: [news] }, 0);
  const away = isAway(told, { ...replica, told: [news] }, "refused", { now: 1, number: 9 });
  expect(Object.values(away.replicas).flatMap((one) => (one.id === "a" ? untold(away, one) : []))).toEqual([
    { ...news, version: 2, state: "failed" },
  ]);
  expect(orderGone(away, "run_a", 2).replicas["a"]?.told).toEqual([]);
});

test("three versions of a run stay loaded, and an adapter that a replica does not know takes it out until it is loaded", () => {
  const adapters = [1, 2, 3, 4].map((version) => ({ run_id: "run_a", generation: 0, version }));
  const state = withReplica(takeOrder(fleet("lora_versioned"), order(4), 0), "a", { adapters }, 0);
  const replica = state.replicas["a"];
  expect(replica && toUnload(state, replica, 0)?.version).toBe(1);
  const lacking = lacksAdapter(state, "a", "policy.a.g0@4", { now: 1, number: 9 }).replicas["a"];
  expect([lacking?.shown, lacking?.adapters.length]).toEqual(["stale", 3]);
});

test("an engine that names a version when it is first seen was changed before: it has version 0 once that is loaded", () => {
  const update = FleetUpdate.parse({ mode: "reload" });
  const settings = { id: "a", name: "a", max_concurrent: 2, draining: false, address: "a" };
  const seen = (weights: string) => {
    const check = { kind: "alive", models: ["base"], started_at: 1, weights } as const;
    const joined = setReplicas(newFleet(update), update, [settings], 0);
    return probeDone(joined, "a", { now: 0, number: 2, at: 1, check, phase: null });
  };
  const of = (state: FleetState) => [state.replicas["a"]?.shown, state.stretches["a"] ?? []];
  expect(of(seen("default"))).toMatchObject(["ready", [{ weights: "start" }]]);
  expect(of(seen("7"))).toEqual(["stale", []]);
  const nowhere = takeOrder(seen("7"), { ...order(0), location: null }, 0);
  const ordered = takeOrder(nowhere, order(0), 0);
  const [replica] = Object.values(ordered.replicas);
  expect(replica && wantedOf(ordered, replica)).toMatchObject({ version: 0, location: "/w" });
});
