/** Which replica takes a call, when a replica is left alone, and what trainers are notified of. */
import { expect, test } from "vitest";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import { lookAt } from "../../src/fleets/alarm-times.ts";
import { choose } from "../../src/fleets/choose.ts";
import { Circuits } from "../../src/fleets/circuit.ts";
import { beginUpdates, nextStep, stepDone, toUnload, wantedOf, whyNotNow } from "../../src/fleets/driving.ts";
import { InFlight } from "../../src/fleets/in-flight.ts";
import { orderGone, reported, runOver, takeOrder, unnotified } from "../../src/fleets/orders.ts";
import { isAway, lacksAdapter, probeDone } from "../../src/fleets/probing.ts";
import type { FleetCall } from "../../src/fleets/rpc.ts";
import { standingOf } from "../../src/fleets/served.ts";
import { type FleetState, newFleet, type Replica, setReplicas, withReplica } from "../../src/fleets/state.ts";
import { versionOf } from "../../src/fleets/version-intervals.ts";
import { labelOf } from "../../src/fleets/weights.ts";

const SCOPE = { orgId: "o", projectId: "p" };
const IDS = ["a", "b", "c"];

/** Three ready replicas with a maximum of two calls each. */
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

function order(version: number, generation = 0, run_id = "run_a") {
  const of = { scope: SCOPE, fleet_id: "fl", run_id, epoch: 1, location: "/w", label: null };
  return { ...of, generation, version };
}

test("a call goes to its rollout's last replica, else to the least loaded one, and not where it just failed", () => {
  const state = fleet();
  expect(chosen(state, {}, { a: 1 })).toBe("b");
  expect(chosen(state, { last_replica: "a" }, { a: 1 })).toBe("a");
  expect(chosen(state, { last_replica: "a", failed_replica: "a" }, { a: 1, b: 1 })).toBe("c");
  expect(chosen(state, { last_replica: "a" }, { a: 2, b: 1 })).toBe("c");
  expect(chosen(state, {}, { a: 2, b: 2, c: 2 })).toBe("every replica is at its limit of calls");
  const drained = withReplica(state, "a", { draining: true }, 0);
  expect(chosen(drained, {}, { b: 1, c: 1 })).toBe("b");
  expect(chosen(drained, { last_replica: "a" })).toBe("a");
  const unknown = IDS.reduce((before, id) => withReplica(before, id, { holds: null }, 0), state);
  expect(chosen(unknown, {})).toBe("no replica is ready: 3 stale");
});

test("the replica with the lowest share of calls for its size takes a call, however many calls it has", () => {
  const large = withReplica(withReplica(fleet(), "a", { max_concurrent: 10 }, 0), "b", { max_concurrent: 4 }, 0);
  expect(chosen(large, {}, { a: 4, b: 2, c: 1 })).toBe("a");
  expect(chosen(large, {}, { a: 6, b: 2, c: 2 })).toBe("b");
  expect(chosen(large, { last_replica: "b" }, { a: 9, b: 4, c: 2 })).toBe("a");
});

test("failed calls of five rollouts in a row open a replica's circuit; five of one rollout do not", () => {
  const circuits = new Circuits();
  let number = 0;
  const heard = (outcome: "unreachable" | "answered", rollout: string) => {
    number += 1;
    return circuits.noteOutcome({ replica_id: "a", outcome, number }, rollout);
  };
  const fails = (rollout: string) => heard("unreachable", rollout);
  expect(["1", "1", "1", "1", "1", "2", "3", "4"].map(fails)).not.toContain(true);
  heard("answered", "1");
  expect(["1", "2", "3", "4", "5"].map(fails)).toEqual([false, false, false, false, true]);
});

test("an answer to a call that began before the first failure, and is reported later, keeps the failures", () => {
  const circuits = new Circuits();
  const fails = (number: number) =>
    circuits.noteOutcome({ replica_id: "a", outcome: "unreachable", number }, `ro_${number}`);
  expect([7, 8, 9, 10].map(fails)).not.toContain(true);
  circuits.noteOutcome({ replica_id: "a", outcome: "answered", number: 6 }, "ro_6");
  expect(fails(11)).toBe(true);
});

test("an engine is paused only when objects can begin no more calls at free places of its replica", () => {
  const paused = (pause: FleetUpdate["pause"]) => {
    const state = { ...fleet(), update: FleetUpdate.parse({ mode: "reload", pause }) };
    return beginUpdates(
      takeOrder(state, order(1), 0),
      5000,
      () => 0,
      () => 1500,
    );
  };
  const kept = paused("keep");
  expect(kept.replicas["a"]?.phase).toMatchObject({ name: "pause", at: 6500, until: 126_500 });
  const step = (now: number) => nextStep(kept, "a", { now, number: 9, inFlight: 1 }).step;
  expect([step(6499), step(6500)]).toEqual([null, { do: "pause" }]);
  expect(paused("wait").replicas["a"]?.phase).toMatchObject({ name: "drain", at: 5000 });
});

test("a call whose end is not reported counts as ended when its time is over", () => {
  const calls = new InFlight();
  const call = { replica_id: "a", rollout_id: "ro", model: "m", weights: null };
  calls.add(1, { ...call, until: 10 });
  calls.add(2, { ...call, until: 20 });
  calls.expire(10);
  expect([calls.of("a"), calls.end(1), calls.end(2)?.until, calls.of("a")]).toEqual([1, null, 20, 0]);
});

test("every call ends in its time, whatever the order in which calls with different times were given out", () => {
  const calls = new InFlight();
  const call = { replica_id: "a", rollout_id: "ro", model: "m", weights: null };
  for (const [number, until] of [10, 20, 40, 30].entries()) calls.add(number, { ...call, until });
  const left = [10, 20, 30, 40].map((now) => {
    calls.expire(now);
    return [calls.of("a"), calls.nextAt];
  });
  expect(left).toEqual([
    [3, 20],
    [2, 30],
    [1, 40],
    [0, null],
  ]);
});

test("trainers are notified of what each replica serves, and that one that is away must not be waited for", () => {
  const ordered = takeOrder(takeOrder(fleet(), order(2), 0), order(1), 0);
  expect(ordered.orders.map(({ version }) => version)).toEqual([2]);
  const [replica] = Object.values(ordered.replicas);
  if (replica === undefined) throw new Error("no replica");
  const news = { run_id: "run_a", generation: 0, version: 0, state: "applied" } as const;
  expect(unnotified(ordered, replica)).toEqual([news]);
  const told = withReplica(ordered, "a", { told: [news] }, 0);
  const away = isAway(told, { ...replica, told: [news] }, "refused", { now: 1, number: 9 });
  expect(Object.values(away.replicas).flatMap((one) => (one.id === "a" ? unnotified(away, one) : []))).toEqual([
    { ...news, version: 2, state: "failed" },
  ]);
  expect(orderGone(away, "run_a", 2).replicas["a"]?.told).toEqual([]);
});

test("three versions of a run stay loaded, and a replica that lacks an adapter is out until it is loaded", () => {
  const adapters = [1, 2, 3, 4].map((version) => ({ run_id: "run_a", generation: 0, version }));
  const state = withReplica(takeOrder(fleet("lora_versioned"), order(4), 0), "a", { adapters }, 0);
  const replica = state.replicas["a"];
  expect(replica && toUnload(state, replica, 0)?.version).toBe(1);
  const lacking = lacksAdapter(state, "a", "policy.a.g0@4", 1).replicas["a"];
  expect([lacking?.shown, lacking?.adapters.length]).toEqual(["stale", 3]);
});

test("an engine that was restarted while an adapter was loaded has it once it is loaded again", () => {
  const check = { kind: "alive", models: ["base", "policy.a.g0@1"], started_at: 2, weights: null } as const;
  const loaded = (before: FleetState, number: number) => {
    const begun = beginUpdates(before, 100_000 * number, () => 0);
    const step = { do: "load", order: order(1) } as const;
    const at = { now: 100_000 * number, number };
    const { state } = nextStep(begun, "a", { ...at, inFlight: 0 });
    const verifying = stepDone(state, "a", step, { ok: true, message: "", ...at });
    const seen = probeDone(verifying, "a", { ...at, at: number, check, phase: "verify" });
    return nextStep(seen, "a", { ...at, inFlight: 0 }).state;
  };
  const earlier = { adapters: [order(0, 0, "run_b")] };
  const failed = loaded(withReplica(takeOrder(fleet("lora_versioned"), order(1), 0), "a", earlier, 0), 3);
  expect([failed.replicas["a"]?.failing?.reason, failed.replicas["a"]?.adapters]).toEqual([
    "it was restarted while its weights were being changed",
    [],
  ]);
  const again = loaded(failed, 4).replicas["a"];
  expect([again?.failing, again?.adapters.map(({ version }) => version), again?.shown]).toEqual([null, [1], "ready"]);
});

test("a replica that lacks an adapter takes calls unless a current order needs that adapter", () => {
  const adapters = [order(1), order(2), order(1, 0, "run_b")];
  const ordered = takeOrder(takeOrder(fleet("lora_versioned"), order(2), 0), order(1, 0, "run_b"), 0);
  const state = withReplica(ordered, "a", { adapters }, 0);
  const lacking = (model: string) => lacksAdapter(state, "a", model, 1);
  const look = { kind: "alive", models: ["base", "policy.b.g0@1"], started_at: 1, weights: null } as const;
  const seen = probeDone(state, "a", { now: 1, number: 9, at: 8, check: look, phase: null });
  const shown = (after: FleetState) => [after.replicas["a"]?.shown, after.replicas["a"]?.behind];
  expect(shown(lacking("policy.a.g0@1"))).toEqual(["ready", false]);
  for (const after of [lacking("policy.a.g0@2"), seen]) {
    expect([shown(after), shown(runOver(after, "run_a", 2))]).toEqual([
      ["stale", true],
      ["ready", false],
    ]);
  }
});

test("an engine that does not unload an adapter is asked three times in a row, shows why, and keeps it", () => {
  const adapters = [1, 2, 3, 4, 5].map((version) => ({ run_id: "run_a", generation: 0, version }));
  let state = withReplica(takeOrder(fleet("lora_versioned"), order(5), 0), "a", { adapters }, 0);
  const tried = (ok: boolean) => {
    const replica = state.replicas["a"];
    const weights = replica && toUnload(state, replica, Number.POSITIVE_INFINITY);
    if (!weights) throw new Error("nothing is to be unloaded");
    state = stepDone(state, "a", { do: "unload", weights }, { ok, message: "answered 500", now: 1, number: 9 });
    return [state.replicas["a"]?.adapters.length, standingOf(state, () => 0).replicas[0]?.reason];
  };
  expect([tried(false), tried(false)]).toEqual([
    [5, null],
    [5, null],
  ]);
  expect(tried(false)).toEqual([3, "unused adapters could not be unloaded: answered 500"]);
  expect([state.replicas["a"]?.shown, state.replicas["a"] && toUnload(state, state.replicas["a"], 1e9)]).toEqual([
    "ready",
    null,
  ]);
  state = withReplica(state, "a", { adapters }, 2);
  expect(tried(true)).toEqual([4, null]);
});

test("without calls a replica is probed only for new weights, or if only probes show that it keeps its weights", () => {
  const weights = { run_id: "run_a", generation: 0, version: 3 };
  const looks = (version: number, proof: Replica["proof"], mode: FleetUpdate["mode"] = "reload", over = false) => {
    const ordered = takeOrder(withReplica(fleet(mode), "a", { holds: weights, proof }, 1), order(version), 1);
    const state = over ? runOver(ordered, "run_a", 2) : ordered;
    const replica = state.replicas["a"];
    if (replica === undefined) throw new Error("no replica");
    return [lookAt(state, replica, false), lookAt(state, replica, true)];
  };
  const [seen, blind] = [
    { process: "1", label: null },
    { process: null, label: null },
  ];
  expect(looks(3, seen)).toEqual([null, 10_000]);
  expect(looks(4, seen)).toEqual([10_000, 10_000]);
  // Another party updates it, and reports when.
  expect(looks(4, seen, "reported")).toEqual([null, 10_000]);
  expect(looks(3, blind, "reported")).toEqual([10_000, 10_000]);
  expect(looks(3, blind, "reported", true)).toEqual([null, 10_000]);
});

test("a late order of a finished run displaces no other order, and a run with a new epoch may order again", () => {
  const runs = (state: FleetState) => state.orders.map(({ run_id }) => run_id);
  const other = takeOrder(runOver(takeOrder(fleet(), order(3), 0), "run_a", 1), order(1, 0, "run_b"), 2);
  expect(runs(takeOrder(other, order(3), 3))).toEqual(["run_b"]);
  // The run was over before its order arrived.
  expect(runs(takeOrder(runOver(fleet(), "run_a", 1), order(0), 2))).toEqual([]);
  expect(runs(takeOrder(orderGone(takeOrder(fleet(), order(3), 0), "run_a", 1), order(4), 2))).toEqual(["run_a"]);
});

test("a fleet whose new mode supports one run at a time keeps only the latest order", () => {
  const shared = takeOrder(takeOrder(fleet("lora_versioned"), order(1), 0), order(1, 0, "run_b"), 0);
  const settings = Object.values(shared.replicas);
  const kept = (mode: FleetUpdate["mode"]) =>
    setReplicas(shared, FleetUpdate.parse({ mode }), settings, 1).orders.map(({ run_id }) => run_id);
  expect([kept("lora_versioned"), kept("reload")]).toEqual([["run_a", "run_b"], ["run_b"]]);
});

test("if weights are reported as applied or failed without a pending report, earlier calls get no version", () => {
  const report = (version: number, state: "pending" | "applied" | "failed") =>
    ({ run_id: "run_a", generation: 0, version, replica: "a", state }) as const;
  const told = (state: FleetState) =>
    versionOf(
      state.update,
      state.intervals["a"] ?? [],
      { run_id: "run_a", generation: 0 },
      {
        ...{ replica_id: "a", number: 5, end: 6, model: "base" },
      },
    );
  const before = fleet("reported");
  expect(told(before)).toBe(0);
  expect(told(reported(before, report(1, "applied"), { now: 1, number: 9 }))).toBeNull();
  const failed = reported(before, report(1, "failed"), { now: 1, number: 9 });
  expect([told(failed), failed.replicas["a"]?.shown, failed.replicas["a"]?.holds]).toEqual([null, "stale", null]);
  const coming = reported(before, report(1, "pending"), { now: 1, number: 9 });
  expect(told(reported(coming, report(1, "applied"), { now: 2, number: 12 }))).toBe(0);
});

test("a replica with weights of a finished run starts no other run before it is restarted", () => {
  const held = withReplica(fleet(), "a", { holds: { run_id: "run_a", generation: 0, version: 3 } }, 1);
  const of = (state: FleetState) => standingOf(state, () => 0).replicas[0];
  expect(of(held)).toMatchObject({
    state: "ready",
    unfit: expect.stringMatching(/^it has weights of run_a: restart the engine/),
  });
  const begun = takeOrder(held, { ...order(0, 0, "run_b"), location: null }, 2);
  expect(of(begun)).toMatchObject({
    state: "stale",
    reason: expect.stringMatching(/^it has weights of run_a: restart the engine/),
  });
  expect(beginUpdates(begun, 3, () => 0)).toBe(begun);
  const check = { kind: "alive", models: ["base"], started_at: 2, weights: null } as const;
  const anew = probeDone(begun, "a", { now: 4, number: 9, at: 8, check, phase: null });
  expect(of(anew)).toMatchObject({ state: "ready", unfit: null, version: 0 });
});

test("if a run names the location of version 0, no replica serves it with its server's initial weights", () => {
  const begun = { ...order(0), loads_start: true as const };
  const asked = { loads_start: true as const };
  // The run's trainer has not reached the fleet yet.
  expect(chosen(fleet(), asked)).toBe("no replica is known to have weights of this run");
  expect(chosen(fleet(), { ...asked, weights_of: "run_a", run_id: "run_eval", trains: false })).toMatch(/^no replica/);
  const ordered = takeOrder(fleet(), begun, 1);
  const of = (state: FleetState) => standingOf(state, () => 0).replicas[0];
  const reason = "it has the weights of its start: version 0 is loaded first";
  expect(of(ordered)).toMatchObject({ state: "stale", reason, version: null });
  expect(chosen(ordered, {})).toBe("no replica is ready: 3 stale");
  const wants = (state: FleetState) =>
    Object.values(state.replicas).map((one) => wantedOf(state, one)?.version ?? null);
  expect(wants(ordered)).toEqual([0, 0, 0]);
  const loaded = withReplica(ordered, "a", { holds: { run_id: "run_a", generation: 0, version: 0 } }, 2);
  expect([of(loaded), wants(loaded)]).toMatchObject([{ state: "ready", version: 0 }, [null, 0, 0]]);
  expect(chosen(loaded, asked)).toBe("a");
  const check = { kind: "alive", models: ["base"], started_at: 2, weights: null } as const;
  const anew = probeDone(loaded, "a", { now: 3, number: 9, at: 8, check, phase: null });
  expect(of(anew)).toMatchObject({ state: "stale", reason, version: null });
  // If the run names no location, the initial weights count.
  expect([of(takeOrder(fleet(), order(0), 1)), wants(takeOrder(fleet(), order(0), 1))]).toMatchObject([
    { state: "ready", version: 0 },
    [null, null, null],
  ]);
});

test("a replica that was not brought to version 0 serves no later version with its initial weights", () => {
  const late = takeOrder(
    takeOrder(fleet(), { ...order(0), loads_start: true }, 1),
    { ...order(1), loads_start: true },
    2,
  );
  expect(standingOf(late, () => 0).replicas[0]).toMatchObject({ state: "stale", version: null });
});

test("a report for another run counts, whatever version the previous run had; an older report of the same run does not", () => {
  const report = (run_id: string, version: number, generation = 0) =>
    ({ run_id, generation, version, replica: "a", state: "pending" }) as const;
  const take = (before: FleetState, ...reports: readonly ReturnType<typeof report>[]) =>
    reports.reduce((state, one, at) => reported(state, one, { now: 1 + at, number: 9 + at }), before).replicas["a"];
  const begun = fleet("reported");
  expect(take(begun, report("run_a", 3), report("run_b", 1))?.claimed).toMatchObject({ run_id: "run_b", version: 1 });
  expect(take(begun, report("run_a", 3), report("run_a", 2))?.claimed).toMatchObject({ run_id: "run_a", version: 3 });
  expect(take(begun, report("run_a", 3), report("run_a", 2, 1))?.claimed).toMatchObject({ generation: 1, version: 2 });
});

test("an engine that another party updates has its initial weights once it is restarted for another run", () => {
  const report = { run_id: "run_a", generation: 0, version: 3, replica: "a", state: "pending" } as const;
  const over = runOver(reported(fleet("reported"), report, { now: 1, number: 9 }), "run_a", 2);
  expect(over.replicas["a"]?.claimed).toBeNull();
});

test("a paused replica may be removed once its engine has not answered three resumes", () => {
  const resume = { name: "resume", until: 9, at: 0, target: null, fault: null, left: true, late: null } as const;
  const after = (misses: number, mode: FleetUpdate["mode"] = "reload", paused = true) => {
    const state = withReplica(fleet(mode), "a", { paused, phase: { ...resume, misses } }, 0);
    const replica = state.replicas["a"];
    return replica === undefined || whyNotNow(state, replica) === null;
  };
  expect([after(0), after(2), after(3)]).toEqual([false, false, true]);
  expect([after(0, "lora_versioned", false), after(0, "reported", false), after(0, "reported")]).toEqual([
    true,
    true,
    false,
  ]);
});

test("an engine that reports a version at first was changed before: it has version 0 once that is loaded", () => {
  const update = FleetUpdate.parse({ mode: "reload" });
  const settings = { id: "a", name: "a", max_concurrent: 2, draining: false, address: "a" };
  const joined = setReplicas(newFleet(update), update, [settings], 0);
  const look = (before: FleetState, number: number, weights: string | null) => {
    const check = { kind: "alive", models: ["base"], started_at: 1, weights } as const;
    return probeDone(before, "a", { now: 0, number, at: number - 1, check, phase: null });
  };
  const seen = (weights: string) => look(joined, 2, weights);
  const of = (state: FleetState) => [state.replicas["a"]?.shown, state.intervals["a"] ?? []];
  expect(of(seen("default"))).toMatchObject(["ready", [{ weights: "start" }]]);
  expect(of(seen("7"))).toEqual(["stale", []]);
  // A label in the form that a fleet uses.
  const named = labelOf({ run_id: "run_01m84nhd", generation: 0, version: 3 });
  expect(of(seen(named))).toEqual(["stale", []]);
  // It reported nothing in the first probes: calls since then have no version.
  expect(of(look(look(look(joined, 2, null), 4, null), 6, named))).toEqual(["stale", []]);
  const nowhere = takeOrder(seen("7"), { ...order(0), location: null }, 0);
  const ordered = takeOrder(nowhere, order(0), 0);
  const [replica] = Object.values(ordered.replicas);
  expect(replica && wantedOf(ordered, replica)).toMatchObject({ version: 0, location: "/w" });
});
