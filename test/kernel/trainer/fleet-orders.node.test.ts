/** The orders of a trainer's object to the fleet of its run, and the fleet's reports. Pure. */
import { expect, test } from "vitest";
import { newsForFleet, orderOf, orderTakenByFleet } from "../../../src/kernel/trainer/fleet-orders.ts";
import { NEW_TRAINER, type TrainerState } from "../../../src/kernel/trainer/state.ts";
import { report, type WeightRow } from "../../../src/kernel/trainer/weight-versions.ts";

const ON = { fleet: { id: "fl_1" } };
const SCOPE = { orgId: "org", projectId: "pj" };

test("a fleet gets each newest version until it acknowledges it, an older one after a reset, and its release at the end", () => {
  expect(newsForFleet(NEW_TRAINER, {})).toBeNull();
  const first = newsForFleet(NEW_TRAINER, ON);
  expect(first).toEqual({ kind: "update", generation: 0, version: 0 });
  let state = first === null ? NEW_TRAINER : orderTakenByFleet(NEW_TRAINER, first);
  expect(newsForFleet(state, ON)).toBeNull();
  // Two versions were published before its acknowledgement; it needs the newer one.
  state = { ...state, published: 2, acked_step: 2 };
  expect(newsForFleet(state, ON)).toEqual({ kind: "update", generation: 0, version: 2 });
  state = orderTakenByFleet(state, { kind: "update", generation: 0, version: 2 });
  state = { ...state, generation: 1, reset_to: 2, epoch: 2 };
  expect(newsForFleet(state, ON)).toEqual({ kind: "update", generation: 1, version: 2 });
  state = { ...state, ended: true };
  expect(newsForFleet(state, ON)).toEqual({ kind: "release" });
  expect(newsForFleet(orderTakenByFleet(state, { kind: "release" }), ON)).toBeNull();
});

test("an order has the location of the weights of this generation", () => {
  const row = (generation: number, location: string): WeightRow => {
    return { ...{ id: "wv", version: 3, failed: 0, label: "l", sha256: null, at: 0 }, generation, location };
  };
  const rows = [row(0, "s3://gone"), row(1, "s3://here")];
  const state = { ...NEW_TRAINER, generation: 1, reset_to: 2, published: 3 };
  const news = { kind: "update", generation: 1, version: 3 } as const;
  const of = { scope: SCOPE, run_id: "run_1" };
  expect(orderOf(of, { id: "fl_1" }, state, rows, news)).toMatchObject({
    ...{ fleet_id: "fl_1", run_id: "run_1", generation: 1, version: 3, location: "s3://here", label: "l" },
  });
  const older = orderOf(of, { id: "fl_1" }, { ...state, published: 2 }, [], { ...news, version: 2 });
  expect(older).not.toHaveProperty("loads_start");
});

test("an order of version 0 has the run's location until the trainer reports another, and is not the engines' own weights", () => {
  const fleet = { id: "fl_1", initial_weights: "s3://base" };
  const order = (version: number, rows: readonly WeightRow[] = []) =>
    orderOf({ scope: SCOPE, run_id: "run_1" }, fleet, NEW_TRAINER, rows, { kind: "update", generation: 0, version });
  expect(order(0)).toMatchObject({ version: 0, location: "s3://base", loads_start: true });
  expect(order(1)).toMatchObject({ version: 1, location: null, loads_start: true });
  const moved = { id: "wv", generation: 0, version: 0, failed: 0, label: null, sha256: null, at: 0 };
  expect(order(0, [{ ...moved, location: "s3://moved" }])).toMatchObject({ location: "s3://moved" });
});

test("a fleet that acknowledged a version gets it again once its location is reported", () => {
  const heard = orderTakenByFleet({ ...NEW_TRAINER, epoch: 1 }, { kind: "update", generation: 0, version: 0 });
  const told = (asked: object) => {
    const published = { version: 0, state: "published", epoch: heard.epoch, ...asked } as const;
    return newsForFleet(report(heard, published, { told: false, onFleet: true }, 0).state, ON);
  };
  expect(told({})).toBeNull();
  expect(told({ location: "/w" })).toEqual({ kind: "update", generation: 0, version: 0 });
});

const STANDING: TrainerState = { ...NEW_TRAINER, epoch: 3, generation: 1, published: 2, acked_step: 2 };

function said(state: TrainerState, of: object) {
  const asked = {
    version: 2,
    state: "applied",
    epoch: 1,
    replica: "rp_1",
    of_fleet: { generation: 1 },
    ...of,
  } as const;
  return report(state, asked, { told: true }, 5);
}

test("a fleet's report about its replicas counts in any epoch of the trainer, but not for weights that were taken back", () => {
  const applied = said({ ...STANDING, unheard: ["rp_1", "rp_2"] }, {});
  expect(applied.state).toMatchObject({ replicas: { rp_1: 2 }, unheard: ["rp_2"], trainer: null });
  const back = said(STANDING, { of_fleet: { generation: 0 } });
  expect(back).toMatchObject({ state: STANDING, answer: { ok: false, refusal: { code: "conflict" } } });
  expect(said(STANDING, { version: 3 }).answer.ok).toBe(false);
});

test("a replica that accepts no calls delays nothing, and counts again once it is back", () => {
  const both = { ...STANDING, replicas: { rp_1: 1, rp_2: 2 } };
  expect(said(both, { replica: "rp_2", rotation: ["rp_2"] }).state.replicas).toEqual({ rp_2: 2 });
  const failed = said(both, { state: "failed" }).state;
  expect(failed.replicas).toEqual({ rp_2: 2 });
  expect(said(failed, { rotation: ["rp_1", "rp_2"] }).state.replicas).toEqual({ rp_1: 2, rp_2: 2 });
});

test("on a fleet, a trainer's own report of a replica is checked, and does not change what is served", () => {
  const asked = { version: 2, state: "applied", epoch: 3, replica: "gpu-0" } as const;
  const onFleet = { told: false, onFleet: true };
  expect(report(STANDING, asked, onFleet, 5)).toMatchObject({ state: { replicas: {} }, answer: { value: true } });
  const { replica: _, ...unnamed } = asked;
  expect(report(STANDING, unnamed, onFleet, 5).answer).toMatchObject({ refusal: { param: "replica" } });
  expect(report(STANDING, { ...asked, epoch: 2 }, onFleet, 5).answer).toMatchObject({
    refusal: { code: "epoch_fenced" },
  });
});
