/** When calls that no replica takes are tried again. */
import { expect, test } from "vitest";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import { nextAt } from "../../src/fleets/alarm-times.ts";
import { nextStep, phaseOf, stepDone } from "../../src/fleets/driving.ts";
import { type FleetState, newFleet, type Replica, setReplicas, withReplica } from "../../src/fleets/state.ts";
import { askAgainAt, longestUpdateMs } from "../../src/fleets/waiting.ts";

function fleetOf(changes: Partial<Replica>): FleetState {
  const update = FleetUpdate.parse({ mode: "reload" });
  const settings = { id: "a", name: "a", max_concurrent: 2, draining: false, address: "a" };
  return withReplica(setReplicas(newFleet(update), update, [settings], 0), "a", changes, 0);
}

/** The times at which one call asks, from the start of an update until it is over. */
function asks(state: FleetState, overAt: number): number[] {
  const times: number[] = [];
  for (let now = 0; now < overAt; now = askAgainAt(state, now)) times.push(now);
  return times;
}

test("a call asks few times during an update, and soon after an update that takes as long as the last", () => {
  const phase = { ...phaseOf("load", 600_000, 0), left: true };
  const first = asks(fleetOf({ phase }), 120_000);
  expect(first.length).toBeLessThanOrEqual(17);
  const second = fleetOf({ phase, took_ms: 120_000 });
  const times = asks(second, 121_000);
  expect(times.length).toBeLessThanOrEqual(10);
  expect(askAgainAt(second, times.at(-1) ?? 0) - 121_000).toBeLessThanOrEqual(1000);
  expect(askAgainAt(newFleet(second.update), 0)).toBe(15_000);
});

test("a call waits half as long as its replica has been away, from one second to fifteen", () => {
  const waits = (now: number) => askAgainAt(fleetOf({ phase: phaseOf("load", 600_000, 0) }), now) - now;
  expect([0, 3000, 10_000, 29_000, 60_000].map(waits)).toEqual([1000, 1500, 5000, 14_500, 15_000]);
});

test("a resume that is not answered is retried after 5 s, and after twice as long each time, up to a minute", () => {
  const began = { ...phaseOf("resume", 600_000, 0), target: null };
  let state = fleetOf({ probed: true, paused: true, phase: began });
  const waits: number[] = [];
  for (let tries = 0; tries < 6; tries += 1) {
    state = stepDone(state, "a", { do: "resume" }, { ok: false, message: "no", now: 0, number: 9 });
    waits.push(state.replicas["a"]?.phase?.at ?? 0);
  }
  expect(waits).toEqual([5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
});

test("a draining replica is due when its calls have ended, or at its deadline", () => {
  const state = fleetOf({ probed: true, phase: { ...phaseOf("drain", 90_000, 0), at: 2000 } });
  const due = (inFlight: number) =>
    nextAt(state, { now: 0, used: true, inFlight: () => inFlight, heldUntil: () => 0, notifyAt: () => 0 });
  expect([due(0), due(1)]).toEqual([2000, 90_000]);
});

test("the duration of a successful update is remembered", () => {
  const target = { run_id: "run_a", generation: 0, version: 1 };
  const began = phaseOf("load", 600_000, 1000);
  const resuming = fleetOf({ probed: true, holds: target, paused: true, phase: { ...began, name: "resume", target } });
  const ended = stepDone(resuming, "a", { do: "resume" }, { ok: true, message: "", now: 41_000, number: 9 });
  expect(ended.replicas["a"]).toMatchObject({ phase: null, took_ms: 40_000 });
  const failed = withReplica(resuming, "a", { paused: false, phase: { ...began, name: "resume", fault: "no" } }, 0);
  expect(nextStep(failed, "a", { now: 9000, number: 9, inFlight: 0 }).state.replicas["a"]?.took_ms).toBeUndefined();
});

test("an update may take all of its phases, and 0 if replicas take calls meanwhile", () => {
  const longest = (update: object) => longestUpdateMs(FleetUpdate.parse(update)) / 1000;
  expect([longest({ mode: "reload" }), longest({ mode: "reload", pause: "abort" })]).toEqual([1020, 900]);
  expect(longest({ mode: "lora_versioned" })).toBe(0);
});
