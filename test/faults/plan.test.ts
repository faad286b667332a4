/** A plan depends only on its seed, so that a failed one can be played again. */
import { expect, test } from "vitest";
import { placedAgain, planOf, sabotaged, sharedBy } from "./plan.ts";

const seeds = Array.from({ length: 300 }, (_, index) => index);
const plans = seeds.map((seed) => planOf(seed, 120));

test("the same seed is the same plan, and another seed another", () => {
  expect(seeds.map((seed) => planOf(seed, 120))).toEqual(plans);
  expect(new Set(plans.map((plan) => JSON.stringify({ ...plan, seed: 0 }))).size).toBe(300);
});

test("a plan has as many rollouts as requested", () => {
  for (const rollouts of [7, 30, 120]) {
    const sizes = seeds
      .map((seed) => planOf(seed, rollouts))
      .map((plan) => plan.num_examples * plan.rollouts_per_example);
    expect(new Set(sizes)).toEqual(new Set([rollouts]));
  }
});

test("a requested number of turns is the plan's, in an environment that lets the model take them", () => {
  const asked = seeds.map((seed) => planOf(seed, 120, { turns: 4 }));
  expect(new Set(asked.map(({ turns }) => turns))).toEqual(new Set([4]));
  expect(new Set(asked.map(({ environment }) => environment))).toEqual(new Set(["errands"]));
});

test("some plans have judges, and all of them if that is requested", () => {
  const judged = plans.filter((plan) => plan.judged);
  expect(new Set(judged.map(({ environment }) => environment))).toEqual(new Set(["errands"]));
  expect(judged.length).toBeLessThan(plans.length / 3);
  const asked = seeds.map((seed) => planOf(seed, 120, { judged: true }));
  expect(asked.every((plan) => plan.judged && plan.environment === "errands")).toBe(true);
});

test("in isolates of their own environments play the same plans, and the isolates get lost", () => {
  const isolated = seeds.map((seed) => planOf(seed, 120, { isolated: true }));
  expect(isolated.map((plan) => ({ ...plan, isolated: false, lost_isolates: 0 }))).toEqual(plans);
  expect(isolated.every(({ lost_isolates }) => lost_isolates > 0)).toBe(true);
});

test("every plan kills, and together the plans use every kind of incident", () => {
  const incidents = plans.flatMap((plan) => plan.incidents);
  const kinds = incidents.map((incident) => {
    if (incident.kind === "kill") return incident.victim;
    return incident.kind === "store" ? incident.store : incident.does;
  });
  const [kills, stores] = [
    ["node", "workerd", "group"],
    ["STORE", "DB"],
  ];
  expect(new Set(kinds)).toEqual(new Set([...kills, ...stores, "pause", "retry", "cancel"]));
  expect(plans.filter(({ incidents }) => !incidents.some(({ kind }) => kind === "kill"))).toEqual([]);
  expect(new Set(plans.map(({ environment }) => environment)).size).toBe(5);
  expect(plans.some(({ late_drops }) => late_drops)).toBe(true);
  expect(new Set(plans.map(({ fickle }) => fickle)).size).toBe(2);
  expect(new Set(plans.map(({ lost_replies }) => lost_replies > 0)).size).toBe(2);
  expect(plans.some(({ late_drops, judged }) => late_drops && judged)).toBe(true);
  expect(plans.every(({ reconcile }) => reconcile)).toBe(true);
});

test("incidents are in the order of their moments, before the run has ended", () => {
  for (const { incidents } of plans) {
    const moments = incidents.map(({ at }) => at);
    expect(moments).toEqual(moments.toSorted((a, b) => a - b));
    expect(Math.max(...moments)).toBeLessThan(0.8);
  }
});

test("a cancelled run crashes once more while its rollouts are notified", () => {
  for (const { incidents } of plans) {
    const cancel = incidents.findIndex(({ kind, ...what }) => {
      return kind === "control" && "does" in what && what.does === "cancel";
    });
    if (cancel !== -1) expect(incidents[cancel + 1]).toMatchObject({ kind: "kill" });
  }
});

test("a kill that hit nothing in flight is moved to an earlier moment; others stay", () => {
  const kill = { kind: "kill", victim: "group", wait_ms: 40 } as const;
  const control = { kind: "control", for_ms: 0 } as const;
  const [early, late] = [
    { ...kill, at: 0.2 },
    { ...kill, at: 0.6 },
  ];
  const plan = { ...planOf(1, 120), incidents: [early, late] };
  expect(placedAgain(plan, [12, 9])).toBeNull();
  expect(placedAgain(plan, [12, 0])?.incidents).toEqual([early, { ...late, at: 0.3, wait_ms: 0, least: 1 }]);
  expect(placedAgain(plan, [0, 0])?.incidents.map(({ at }) => at)).toEqual([0.1, 0.3]);
  const ended = {
    ...plan,
    incidents: [early, { ...control, does: "cancel" as const, at: 0.6 }, late],
  };
  expect(placedAgain(ended, [12, 0])).toBeNull();
});

test("a sabotaged plan loses every message and has no reconciliation", () => {
  const plan = sabotaged(planOf(1, 120));
  expect(plan).toMatchObject({ reconcile: false, queues: { drop: 1 }, incidents: [] });
});

test("organisations that share a platform have different seeds, and the incidents happen once", () => {
  const plan = planOf(7, 40);
  const [own, ...others] = sharedBy(plan, 3);
  expect(own).toEqual(plan);
  expect(new Set([own, ...others].map((one) => one?.seed)).size).toBe(3);
  expect(others.map(({ incidents, num_examples }) => [incidents, num_examples])).toEqual(
    others.map(() => [[], plan.num_examples]),
  );
});
