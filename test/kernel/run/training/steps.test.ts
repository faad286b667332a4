/** What a training run opens, buffers, ships and drops, and why: driven by hand, on an object's real storage. */
import { expect, test } from "vitest";
import { retry } from "../../../../src/kernel/run/control.ts";
import { startersIn } from "../../../../src/kernel/run/sources.ts";
import { isBehind } from "../../../../src/kernel/run/training/plan.ts";
import type { Credit } from "../../../../src/kernel/run/training-state.ts";
import { fill, type TrainingByHand, trainingByHand } from "../../training-rows.ts";

function standing(run: TrainingByHand) {
  const { training: asked } = run.spec;
  const { step, trainer } = run.training;
  const lead = step - 1 - trainer.published;
  return [step, trainer.published, lead, asked && isBehind(asked, run.training) ? "closed" : "open"];
}

test("step, published version, lead and gate follow the worked example of the numbering", async () => {
  await trainingByHand({ max_off_policy_steps: 2, lead: 1, max_steps: 9 }, (run) => {
    expect(standing(run)).toEqual([1, 0, 0, "open"]);
    fill(run, 6);
    run.cut();
    // Two batches ship; nothing of the third is begun.
    expect(standing(run)).toEqual([3, 0, 2, "closed"]);
    expect(run.training).toMatchObject({ groups_opened: 4, buffered: { rollouts: 0 } });
    expect([run.dispatch(), run.cut()]).toEqual([0, 0]);
    run.train();
    expect(standing(run)).toEqual([3, 1, 1, "open"]);
    fill(run, 2);
    expect(run.cut()).toBe(1);
    expect(standing(run)).toEqual([4, 1, 2, "closed"]);
  });
});

test("a fast sampler samples only the first lead + 1 batches with version 0, and each later one with its own version", async () => {
  const versions: Record<number, number[]> = {};
  for (const lead of [0, 1, 2]) {
    await trainingByHand({ lead, max_off_policy_steps: 8, max_steps: 6 }, (run) => {
      while (run.training.step <= 6) {
        run.dispatch();
        run.settleGroups();
        run.cut();
        run.train();
      }
      const batches = run.store.training.batchesBetween(0, 6).map(({ step }) => run.store.training.shippedFor(step));
      versions[lead] = batches.map((groups) => Math.min(...groups.map(({ dispatch_version }) => dispatch_version)));
    });
  }
  expect(versions).toEqual({ 0: [0, 1, 2, 3, 4, 5], 1: [0, 0, 1, 2, 3, 4], 2: [0, 0, 0, 1, 2, 3] });
});

test("a group keeps its version and task from its opening, however late its members start", async () => {
  await trainingByHand({ max_steps: 9 }, (run) => {
    fill(run, 2);
    run.dispatch(1);
    run.cut();
    run.train();
    run.dispatch(3);
    const places = run.rows("running").map(({ group_index: group, slot, attempt }) => {
      return { group, slot, attempt };
    });
    const starters = startersIn(run.store, run.spec, places);
    expect(starters.map(({ example_index, policy_version }) => [example_index, policy_version])).toEqual([
      [2, 0],
      [2, 0],
      [3, 1],
      [3, 1],
    ]);
  });
});

test("with no off-policy steps allowed, only groups are opened that can be trained on the very weights that sample them", async () => {
  await trainingByHand({ max_off_policy_steps: 0, lead: 1 }, (run) => {
    expect(run.dispatch()).toBe(4);
    run.settleGroups();
    run.cut();
    expect(run.dispatch()).toBe(0);
    run.train();
    expect(run.dispatch()).toBe(4);
  });
});

test("nothing is opened beyond what the remaining steps need, and what arrives too late is dropped as unused", async () => {
  await trainingByHand({ max_steps: 1, max_off_policy_steps: 8, batch_size: { rollouts: 3 } }, (run) => {
    expect([run.dispatch(), run.dispatch()]).toEqual([4, 0]);
    run.settleGroups();
    run.cut();
    expect([run.training.step, run.dispatch()]).toEqual([2, 0]);
    run.train();
    expect(run.store.head().status).toBe("completed");
  });
  await trainingByHand({ max_steps: 2, batch_size: { rollouts: 2 } }, (run) => {
    run.dispatch();
    const [first, , second] = run.rows("running");
    if (first === undefined || second === undefined) throw new Error("two groups were opened");
    run.answer(first, { failure: "provider", cancelled: null });
    run.settleGroups();
    // The group that lost a member made room for another one.
    expect(run.training.dropped).toEqual({ too_few: 1 });
    expect(run.dispatch()).toBe(2);
  });
});

/** As from the consumer: nothing is stored of a group that is not trained on, but its lengths are reported. */
function flat(run: TrainingByHand, groups: number): void {
  const all = run.samplesOf.bind(run);
  run.samplesOf = (group, rows) => ({ ...all(group, rows), object: null, samples: [] });
  fill(run, groups, [1, 1]);
  run.samplesOf = all;
}

test("batches of tokens: rollouts that are not trained on report their lengths, and take no place", async () => {
  await trainingByHand({ batch_size: { tokens: 1000 } }, (run) => {
    for (let group = 0; group < 20; group += 1) flat(run, 1);
    // Twenty groups had 400 tokens of the 1000 that one step needs: no reason yet to give up.
    expect(run.store.head().stop).toBeNull();
    expect(run.training.seen).toEqual({ rollouts: 40, tokens: 400 });
  });
  await trainingByHand({ batch_size: { tokens: 80 }, max_off_policy_steps: 0 }, (run) => {
    fill(run, 1);
    flat(run, 1);
    flat(run, 1);
    expect(run.dispatch()).toBe(6);
  });
});

/** One group of short rollouts lets it open two more at once, of which the first alone fills the batch. */
const OVERSHOT = { ...{ batch_size: { tokens: 45 }, max_off_policy_steps: 0 }, max_steps: 9 };

function overshoot(run: TrainingByHand, members: number): void {
  fill(run, 1);
  run.dispatch(members);
  const short = run.samplesOf.bind(run);
  run.samplesOf = (group, rows) => {
    const made = short(group, rows);
    return { ...made, samples: made.samples.map((one) => ({ ...one, tokens: 100 })) };
  };
  for (const row of run.group(1)) run.answer(row);
  run.score(1, [0, 1]);
  run.samplesOf = short;
}

test("an open group that has become too old is void: running members are stopped, and members that never started end with it", async () => {
  await trainingByHand(OVERSHOT, (run) => {
    overshoot(run, 3);
    expect(run.cut()).toBe(1);
    expect(run.training).toMatchObject({ groups_open: 0, dropped: { stale: 1 } });
    const [started, never] = run.group(2);
    expect([started?.status, started?.cancel]).toEqual(["running", "stale"]);
    expect([never?.outcome, never?.reason]).toEqual(["cancelled", "stale"]);
    if (started === undefined) throw new Error("nobody started");
    // One that reports all the same is scored, and is not trained on.
    run.answer(started);
    run.score(2, [1, null]);
    expect(run.group(2).map(({ outcome }) => outcome)).toEqual(["scored", "cancelled"]);
    expect(run.store.training.group(2)).toMatchObject({ state: "dropped", reason: "stale" });
    expect(run.store.head().in_flight).toBe(0);
  });
});

test("a group that is too old after the last batch is removed from the buffer, and a fresh one takes its place", async () => {
  await trainingByHand(OVERSHOT, (run) => {
    overshoot(run, 4);
    run.settleGroups();
    expect(run.training.buffered.groups).toBe(3);
    expect([run.cut(), run.training.buffered.groups]).toEqual([1, 0]);
    expect(run.training.dropped).toEqual({ stale: 1 });
    run.train();
    // Estimated at one token per rollout: each time one more group is opened, until the batch is full.
    for (let round = 0; round < 3; round += 1) {
      expect(run.dispatch()).toBe(2);
      run.settleGroups();
      run.cut();
    }
    expect(run.training).toMatchObject({ step: 3, max_lag: 0 });
    const [step] = run.store.training.steps(1, 1);
    expect(JSON.parse(step?.metrics ?? "{}")["off_policy/dropped"]).toBe(2);
  });
});

test("groups of equal rewards count towards their batch, are replaced, or ship without advantage, as configured", async () => {
  await trainingByHand({ zero_variance: "drop" }, (run) => {
    fill(run, 1, [1, 1]);
    fill(run, 1, [0, 1]);
    expect(run.cut()).toBe(1);
    expect(run.training).toMatchObject({ shipped: 1, dropped: { zero_variance: 1 } });
    expect(run.store.training.batch(1, 0)).toMatchObject({ groups: 1, rollouts: 2 });
  });
  await trainingByHand({ zero_variance: "refill" }, (run) => {
    fill(run, 1, [1, 1]);
    fill(run, 1, [0, 1]);
    expect([run.cut(), run.training.dropped]).toEqual([0, { zero_variance: 1 }]);
    fill(run, 1, [0, 1]);
    expect(run.cut()).toBe(1);
    expect(run.store.training.batch(1, 0)).toMatchObject({ groups: 2, rollouts: 4 });
  });
  await trainingByHand({ zero_variance: "keep" }, (run) => {
    fill(run, 2, [1, 1]);
    expect([run.cut(), run.training.shipped]).toEqual([1, 2]);
  });
});

test("a member without a score has no part in the credit, and a group with too few members is dropped", async () => {
  await trainingByHand(
    { min_group_size: 2, batch_size: { rollouts: 2 } },
    (run) => {
      fill(run, 1, [0, null, 1]);
      fill(run, 1, [null, null, 1]);
      expect(run.training.dropped).toEqual({ too_few: 1 });
      const credits: Record<string, Credit> = JSON.parse(run.store.training.group(0)?.credits ?? "{}");
      expect(Object.entries(credits)).toEqual([
        ["ro_0_0_0", { reward: 0, advantage: -0.5, outcome: "scored" }],
        ["ro_0_2_0", { reward: 1, advantage: 0.5, outcome: "scored" }],
      ]);
      run.cut();
      expect(run.store.training.batch(1, 0)).toMatchObject({ rollouts: 2 });
    },
    3,
  );
});

test("scored rollouts without samples are untrainable, and ten batches' worth of them end the run with the cause", async () => {
  await trainingByHand({ batch_size: { rollouts: 2 }, zero_variance: "refill" }, (run) => {
    for (let group = 0; group < 10; group += 1) {
      run.dispatch(2);
      for (const row of run.rows("running")) run.answer(row);
      run.score(group, [0, group < 6 ? 1 : 0], false);
    }
    const { status, error } = run.store.head();
    expect([status, error?.code]).toEqual(["failed", "nothing_to_train"]);
    expect(error?.message).toContain("20 rollouts in a row gave nothing to train on: 6 groups untrainable");
    expect(error?.message).toContain("4 groups zero_variance (all rewards of the group were equal");
  });
});

test("ten batches in a row with nothing to train on end the run, and the step stays where it was", async () => {
  await trainingByHand({ batch_size: { rollouts: 4 }, max_off_policy_steps: 99, max_steps: 99 }, (run) => {
    fill(run, 1, [0, 1]);
    fill(run, 1, [1, 1]);
    run.cut();
    for (let batch = 0; batch < 9; batch += 1) {
      fill(run, 2, [1, 1]);
      expect(run.cut()).toBe(0);
    }
    expect(run.training).toMatchObject({ step: 2, empty: 9 });
    expect(run.store.head().stop).toBeNull();
    fill(run, 2, [0, 0]);
    run.cut();
    expect(run.store.head().stop).toMatchObject({ code: "nothing_to_train" });
  });
});

test("once the last step is trained the run does not wait for rollouts that it does not need", async () => {
  await trainingByHand({ batch_size: { tokens: 45 }, max_steps: 1 }, (run) => {
    overshoot(run, 3);
    run.cut();
    expect(run.training.groups_open).toBe(1);
    run.train();
    const [started, never] = run.group(2);
    expect([started?.cancel, never?.reason]).toEqual(["stale", "stale"]);
    if (started === undefined) throw new Error("nobody started");
    run.answer(started, { failure: null, cancelled: "stale" });
    expect(run.store.head().status).toBe("completed");
    expect(run.training).toMatchObject({ groups_open: 0, dropped: { unused: 1 } });
  });
});

test("a batch of tokens is full by its tokens, and the run opens as many rollouts as it estimates from those seen", async () => {
  await trainingByHand({ batch_size: { tokens: 45 }, max_off_policy_steps: 0 }, (run) => {
    expect(run.dispatch()).toBe(2);
    run.settleGroups();
    expect(run.cut()).toBe(0);
    // 20 tokens a group: 45 of them are five rollouts.
    expect(run.dispatch()).toBe(4);
    run.settleGroups();
    expect(run.cut()).toBe(1);
    expect(run.store.training.batch(1, 0)).toMatchObject({ groups: 3, tokens: 60 });
  });
});

test("a reset voids the later batches: older groups are trained on again in the same order, samples of newer weights are dropped", async () => {
  await trainingByHand({ max_off_policy_steps: 3, lead: 1, max_steps: 9 }, (run) => {
    fill(run, 4);
    run.cut();
    run.train();
    run.train();
    fill(run, 2);
    run.dispatch(3);
    run.cut();
    run.train();
    expect(standing(run)).toEqual([4, 3, 0, "open"]);
    run.tell({ generation: 1, reset_to: 1, published: 1, acked_step: 1 });
    expect(standing(run)).toEqual([2, 1, 0, "open"]);
    expect(run.training).toMatchObject({
      ...{ shipped: 2, buffered: { groups: 2 }, groups_open: 0 },
      ...{ dropped: { version_reset: 4 }, batches: { shipped: 1, voided: 2 } },
    });
    const told = run.rows("running").map(({ cancel }) => cancel);
    expect(told).toEqual(["version_reset", "version_reset", "version_reset"]);
    expect(run.cut()).toBe(1);
    const again = run.store.training.shippedFor(2).map(({ group_index }) => group_index);
    expect([again, run.store.training.batch(2, 1)?.state]).toEqual([[2, 3], "ready"]);
  });
});

test("a group that was open during a reset is dropped if newer weights sampled part of it", async () => {
  await trainingByHand({ max_off_policy_steps: 3, max_steps: 9 }, (run) => {
    fill(run, 2);
    run.dispatch(4);
    run.cut();
    run.train();
    run.tell({ generation: 1, reset_to: 0, published: 0, acked_step: 0 });
    const samples = run.samplesOf.bind(run);
    run.samplesOf = (group, rows) => {
      const made = samples(group, rows);
      const policy_version_end = group === 2 ? 1 : 0;
      return { ...made, samples: made.samples.map((one) => ({ ...one, policy_version_end })) };
    };
    run.settleGroups();
    expect(run.store.training.group(2)).toMatchObject({
      state: "dropped",
      reason: "version_reset",
    });
    expect(run.store.training.group(3)).toMatchObject({ state: "buffered" });
  });
});

test("a run continues after a restart with the same tasks", async () => {
  const curriculum = {
    ...{ name: "difficulty" as const, hard: { up_to: 0.25, weight: 0.2 } },
    ...{ normal: { up_to: 0.75, weight: 1 }, easy: { weight: 0.2 }, unseen: { weight: 1 } },
  };
  const drawn: number[][] = [];
  for (const restarts of [false, true]) {
    await trainingByHand({ curriculum, max_steps: 99, max_off_policy_steps: 99, lead: 99 }, (run) => {
      for (let round = 0; round < 6; round += 1) {
        fill(run, 3, round % 2 === 0 ? [0, 1] : [0, 0]);
        run.cut();
        if (restarts) run.restart();
      }
      const groups = Array.from({ length: run.training.groups_opened }, (_, at) => run.store.training.group(at));
      drawn.push(groups.map((group) => group?.example_index ?? -1));
    });
  }
  expect(drawn[1]).toEqual(drawn[0]);
  expect(new Set(drawn[0]).size).toBeGreaterThan(3);
});

test("a training run's rollouts cannot be retried", async () => {
  await trainingByHand({}, (run) => {
    fill(run, 1, [null, null]);
    const order = { classes: null, key: null, hash: "" };
    expect(retry(run.store, run.spec, order, run.now)).toBe("training");
  });
});
