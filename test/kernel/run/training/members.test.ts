/** Groups of members with a ratio, a size and an advantage of their own: driven by hand, on an object's real storage. */
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import type { TrainedMember } from "../../../../src/contract/training-request.ts";
import { RunObject } from "../../../../src/index.ts";
import { advantagesIn } from "../../../../src/kernel/run/advantages.ts";
import { remainingToBegin } from "../../../../src/kernel/run/refusals.ts";
import { startersIn } from "../../../../src/kernel/run/sources.ts";
import { slotsOf } from "../../../../src/kernel/run/standing.ts";
import { trainingRecords, trainingView } from "../../../../src/kernel/run/training/view.ts";
import type { Credit } from "../../../../src/kernel/run/training-state.ts";
import { inside } from "../../platform.ts";
import { TrainingByHand, trainingByHand } from "../../training-rows.ts";

const MEAN = { name: "mean" } as const;
const RLOO = { name: "rloo", singleton: "zero" } as const;
/** `a` has rows 0 to 9 and groups of 2, twice as often as `b`, which has rows 10 to 14 and groups of 4. */
const MEMBERS: readonly TrainedMember[] = [
  {
    ...{ name: "a", group_size: 2, min_group_size: 2, advantage: MEAN },
    share: { ratio: 2, rows: { first: 0, step: 1, length: 10 } },
  },
  {
    ...{ name: "b", group_size: 4, min_group_size: 3, advantage: RLOO },
    share: { ratio: 1, rows: { first: 10, step: 1, length: 5 } },
  },
];

const groupsOf = (run: TrainingByHand) =>
  run.storage.sql
    .exec<{ member: string; example_index: number; size: number; slots_before: number; dispatch_version: number }>(
      "select member, example_index, size, slots_before, dispatch_version from train_groups order by group_index",
    )
    .toArray();

/** Every rollout answers, with the rewards of its slot. */
const REWARDS = [0, 1, 1, 0];

test("groups are opened by ratio, each with its member's size and next row, and every rollout is dispatched once", async () => {
  await trainingByHand({ members: MEMBERS, batch_size: { rollouts: 16 }, lead: 0 }, (run) => {
    while (run.dispatch(3) > 0) expect(remainingToBegin(run.spec, run.store.head())).toBeGreaterThan(0);
    const groups = groupsOf(run);
    expect(groups.reduce((sum, { size }) => sum + size, 0)).toBeGreaterThanOrEqual(16);
    for (const [at, { member, size, slots_before }] of groups.entries()) {
      expect(size).toBe(member === "a" ? 2 : 4);
      expect(slots_before).toBe(groups.slice(0, at).reduce((sum, { size: before }) => sum + before, 0));
      const share = ((at + 1) * 2) / 3;
      const ofA = groups.slice(0, at + 1).filter((group) => group.member === "a").length;
      expect(Math.abs(ofA - share)).toBeLessThan(1);
    }
    const rowsOf = (name: string) => groups.filter(({ member }) => member === name).map((group) => group.example_index);
    expect(rowsOf("a")).toEqual(rowsOf("a").map((_, at) => at));
    expect(rowsOf("b")).toEqual(rowsOf("b").map((_, at) => 10 + at));
    const rows = run.rows("running");
    expect(rows.map(({ group_index, slot }) => [group_index, slot])).toEqual(
      groups.flatMap(({ size }, group) => Array.from({ length: size }, (_, slot) => [group, slot])),
    );
    expect([slotsOf(run.spec, run.store.head()), run.store.head().dispatched]).toEqual([rows.length, rows.length]);
    const places = rows.map(({ group_index: group, slot, attempt }) => ({ group, slot, attempt }));
    const tasks = startersIn(run.store, run.spec, places).map(({ example_index }) => example_index);
    expect(tasks).toEqual(rows.map(({ group_index }) => groups[group_index]?.example_index));
  });
});

/** Plays the run to its end. `after`: called after each write. */
function playOut(run: TrainingByHand, after: () => void): void {
  while (run.training.step <= (run.spec.training?.max_steps ?? 0)) {
    while (run.dispatch(5) > 0) after();
    run.settleGroups(REWARDS);
    after();
    run.cut();
    after();
    run.train();
  }
}

test("a run that is killed after every step opens the same groups as one that is not", async () => {
  const opened: unknown[] = [];
  for (const killed of [false, true]) {
    await trainingByHand({ members: MEMBERS, batch_size: { rollouts: 10 }, max_steps: 4 }, (run) => {
      playOut(run, () => killed && run.restart());
      opened.push(groupsOf(run));
    });
  }
  expect(opened[1]).toEqual(opened[0]);
});

test("each group is credited by its member's advantage and dropped by its member's least size", async () => {
  await trainingByHand({ members: MEMBERS, batch_size: { rollouts: 12 }, lead: 0 }, (run) => {
    while (run.dispatch() > 0);
    const groups = groupsOf(run);
    const [a, b] = ["a", "b"].map((name) => groups.findIndex(({ member }) => member === name));
    const otherB = groups.findLastIndex(({ member }) => member === "b");
    for (const row of run.rows("running")) run.answer(row);
    for (const index of groups.keys())
      run.score(index, index === otherB && otherB !== b ? [0, 1, null, null] : REWARDS);
    const creditsOf = (index: number | undefined) => {
      const credits = JSON.parse(run.store.training.group(index ?? -1)?.credits ?? "{}") as Record<string, Credit>;
      return Object.values(credits).map(({ advantage }) => advantage);
    };
    expect(creditsOf(a)).toEqual([-0.5, 0.5]);
    // 4 / 3 of the distance from the mean, 1/2.
    for (const [at, advantage] of [-2 / 3, 2 / 3, 2 / 3, -2 / 3].entries()) {
      expect(creditsOf(b)[at]).toBeCloseTo(advantage, 12);
    }
    const shown = [...advantagesIn(run.store, run.spec, run.group(b ?? -1)).values()];
    expect(shown).toEqual(creditsOf(b));
    if (otherB !== b) expect(run.store.training.group(otherB)).toMatchObject({ state: "dropped", reason: "too_few" });
    const view = trainingView(run.store, run.spec);
    expect(view?.members).toEqual([
      {
        name: "a",
        ratio: 2,
        group_size: 2,
        min_group_size: 2,
        advantage: MEAN,
        groups_opened: groups.length - countOf(groups, "b"),
      },
      { name: "b", ratio: 1, group_size: 4, min_group_size: 3, advantage: RLOO, groups_opened: countOf(groups, "b") },
    ]);
  });
});

const countOf = (groups: ReturnType<typeof groupsOf>, name: string) =>
  groups.filter(({ member }) => member === name).length;

test("slots of open groups, the buffer and the records agree after batches, a reset and the end", async () => {
  await trainingByHand({ members: MEMBERS, batch_size: { rollouts: 10 }, max_steps: 3 }, (run) => {
    const agree = () => {
      const open = run.storage.sql.exec<{ n: number }>(
        "select total(size) as n from train_groups where state = 'open'",
      );
      expect(run.training.shared?.slots_open).toBe(open.one().n);
      const records = trainingRecords(run.storage.sql, run.store.head());
      expect(records?.run_rows).toEqual(records?.counters);
      const { dispatched } = run.store.head();
      expect(slotsOf(run.spec, run.store.head())).toBeGreaterThanOrEqual(dispatched);
    };
    const step = () => {
      while (run.dispatch(7) > 0) agree();
      run.settleGroups(REWARDS);
      agree();
      run.cut();
      agree();
    };
    step();
    run.train();
    agree();
    step();
    run.dispatch(3);
    run.tell({ generation: 1, reset_to: 0, published: 0, acked_step: 0 });
    agree();
    while (run.training.step <= 3) {
      step();
      run.train();
    }
    while (run.train());
    agree();
    expect(run.store.head().in_flight).toBe(run.rows("running").length + run.rows("scoring").length);
  });
});

test("each member has a curriculum of its own, and draws only its own rows", async () => {
  const pools = { hard: { up_to: 0.2, weight: 0 }, normal: { up_to: 0.7, weight: 1 }, easy: { weight: 0 } };
  const curriculum = { name: "difficulty", ...pools, unseen: { weight: 1 } } as const;
  const drawn: unknown[] = [];
  for (const killed of [false, true]) {
    await trainingByHand({ members: MEMBERS, curriculum, batch_size: { rollouts: 10 }, max_steps: 6 }, (run) => {
      playOut(run, () => killed && run.restart());
      const groups = groupsOf(run);
      expect(
        groups.every(({ member, example_index: row }) => (member === "a" ? row < 10 : row >= 10 && row < 15)),
      ).toBe(true);
      drawn.push(groups);
    });
  }
  expect(drawn[1]).toEqual(drawn[0]);
});

test("a run whose members only have advantages of their own opens the same groups as a run without", async () => {
  const plans: unknown[] = [];
  const members = MEMBERS.map(({ share: _, ...member }) => ({ ...member, group_size: 2, min_group_size: 2 }));
  for (const training of [{}, { members }]) {
    const stub = env.RUN.getByName(crypto.randomUUID());
    await inside(stub, RunObject, (_, { storage }) => {
      const run = new TrainingByHand(storage, training);
      while (run.dispatch() > 0);
      plans.push([groupsOf(run), run.rows("running").map(({ id }) => id), Object.keys(run.training)]);
    });
  }
  expect(plans[1]).toEqual(plans[0]);
});
