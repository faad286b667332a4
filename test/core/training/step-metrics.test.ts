import { expect, test } from "vitest";
import { type GroupFacts, type RolloutFacts, stepMetrics } from "../../../src/core/training/step-metrics.ts";

function rollout(reward: number | null, change: Partial<RolloutFacts> = {}): RolloutFacts {
  const lengths = { output: 10, total: 30, turns: 2 };
  const facts = { reward, outcome: "scored", is_truncated: false, lengths, samples: 1 };
  return { ...facts, policy_version_end: 3, error: null, ...change };
}

function group(rollouts: readonly RolloutFacts[], change: Partial<GroupFacts> = {}): GroupFacts {
  return { dispatch_version: 2, rollouts, ...change };
}

const FAILED = rollout(null, { outcome: "failed", error: "provider", lengths: null, samples: 0 });
const arrived = [
  group([rollout(1), rollout(0, { is_truncated: true }), FAILED]),
  group([rollout(1, { samples: 0 }), rollout(1, { samples: 0 })]),
  group([rollout(0), rollout(0)]),
  group([FAILED]),
];
const shipped = arrived.slice(0, 2);

test("arrived and shipped rollouts have separate metrics", () => {
  const metrics = stepMetrics({ step: 5, arrived, shipped, dropped_stale: 4 });
  expect(metrics).toMatchObject({
    "train/agg/all/reward/mean": 0.5,
    "train/agg/all/reward/max": 1,
    "train/agg/all/reward/min": 0,
    "train/agg/effective/reward/mean": 0.5,
    "train/agg/all/num_output_tokens/mean": 10,
    "train/agg/all/num_input_tokens/mean": 20,
    "train/agg/all/num_total_tokens/p90": 30,
    "train/agg/all/num_turns/mean": 2,
    "train/agg/effective/num_branches/mean": 1,
    "train/agg/all/is_truncated": 1 / 8,
    "train/agg/all/is_trainable": 4 / 8,
    "train/agg/effective/is_trainable": 1,
    "train/agg/all/has_error": 2 / 8,
    "train/agg/all/error/provider": 2 / 8,
    "train/agg/all/cancelled": 0,
    "train/agg/all/solved_none": 1 / 3,
    "train/agg/all/solved_some": 1 / 3,
    "train/agg/all/solved_all": 1 / 3,
    "off_policy/dropped": 4,
  });
  expect(metrics).not.toHaveProperty("train/agg/effective/has_error");
  expect(metrics).not.toHaveProperty("train/calculator/all/reward/mean");
});

test("the interval of the mean reward is taken over groups, and absent for fewer than two", () => {
  const metrics = stepMetrics({ step: 5, arrived, shipped, dropped_stale: 0 });
  // The means of the three groups with a reward are 0.5, 1 and 0: mean 0.5, standard error 0.5 / √3, t(0.975, 2) 4.303.
  expect(metrics["train/agg/all/reward/ci95_low"]).toBeCloseTo(0.5 - (4.302653 * 0.5) / Math.sqrt(3), 5);
  expect(metrics["train/agg/all/reward/ci95_high"]).toBeCloseTo(0.5 + (4.302653 * 0.5) / Math.sqrt(3), 5);
  const one = stepMetrics({ step: 5, arrived: arrived.slice(0, 1), shipped: [], dropped_stale: 0 });
  expect(one).not.toHaveProperty("train/agg/all/reward/ci95_low");
});

test("the interval is around the mean of the rollouts, also if failures make groups unequal", () => {
  const [whole, rest] = [
    Array.from({ length: 8 }, () => rollout(1)),
    [rollout(0), ...Array.from({ length: 7 }, () => FAILED)],
  ];
  const unequal = Array.from({ length: 20 }, (_, at) => group(at < 10 ? whole : rest));
  const metrics = stepMetrics({ step: 5, arrived: unequal, shipped: [], dropped_stale: 0 });
  const [mean = 0, low = 0, high = 0] = ["mean", "ci95_low", "ci95_high"].map(
    (of) => metrics[`train/agg/all/reward/${of}`],
  );
  expect(mean).toBeCloseTo(80 / 90, 12);
  // Residuals of the groups: 8 − 8 · 8/9 = 8/9, and −8/9. t(0.975, 19) = 2.093024.
  const se = Math.sqrt((20 / 19) * 20 * (8 / 9) ** 2) / 90;
  expect(low).toBeCloseTo(mean - 2.093024 * se, 6);
  expect(high).toBeCloseTo(mean + 2.093024 * se, 6);
});

test("the lag is that of the shipped rollouts at this step", () => {
  const late = group([rollout(1), rollout(0, { policy_version_end: 2 })]);
  const fresh = group([rollout(1, { policy_version_end: 4 })], { dispatch_version: 4 });
  expect(stepMetrics({ step: 5, arrived: [], shipped: [late, fresh], dropped_stale: 0 })).toMatchObject({
    "off_policy/mean": 4 / 3,
    "off_policy/max": 2,
    "off_policy/in_flight/mean": 1 / 3,
    "off_policy/in_queue/mean": 1,
    "off_policy/in_queue/max": 2,
  });
});

test("rollouts that cannot be trained on are counted by cause, over all groups that arrived", () => {
  const one = group([rollout(1)], { untrainable: { no_tokens: 2, unpublished_version: 1 } });
  const other = group([rollout(1)], { untrainable: { unpublished_version: 3 } });
  const metrics = stepMetrics({ step: 1, arrived: [one, other], shipped: [], dropped_stale: 0 });
  expect(metrics).toMatchObject({
    ...{ "rollout/untrainable/no_tokens": 2, "rollout/untrainable/unpublished_version": 4 },
  });
});

test("turns that did not continue the previous tokens are counted as a fraction of all transitions", () => {
  const chatty = group([rollout(1)], { transitions: { clean: 6, forked: 1, realigned: 1 } });
  const metrics = stepMetrics({
    step: 1,
    arrived: [chatty, group([rollout(1)])],
    shipped: [],
    dropped_stale: 0,
  });
  expect(metrics).toMatchObject({ "rollout/fork_frac": 1 / 8, "rollout/realign_frac": 1 / 8 });
});

test("quantiles interpolate", () => {
  const rewards = Array.from({ length: 11 }, (_, at) => rollout(at));
  const metrics = stepMetrics({
    step: 1,
    arrived: [group(rewards)],
    shipped: [],
    dropped_stale: 0,
  });
  expect(metrics["train/agg/all/reward/p10"]).toBe(1);
  expect(metrics["train/agg/all/reward/p90"]).toBe(9);
  const two = stepMetrics({
    step: 1,
    arrived: [group([rollout(0), rollout(1)])],
    shipped: [],
    dropped_stale: 0,
  });
  expect(two["train/agg/all/reward/p90"]).toBeCloseTo(0.9, 12);
});

test("each member of a group has its own metrics, in every step; groups without a member have none", () => {
  const other = group([rollout(1)], { member: "guess-number" });
  const metrics = stepMetrics({
    step: 1,
    arrived: [group([rollout(0)], { member: "calculator" }), group([FAILED]), other],
    shipped: [other],
    dropped_stale: 0,
  });
  expect(metrics).toMatchObject({
    "train/agg/all/reward/mean": 0.5,
    "train/calculator/all/reward/mean": 0,
    "train/guess-number/all/reward/mean": 1,
    "train/guess-number/effective/reward/mean": 1,
  });
  expect(metrics).not.toHaveProperty("train/calculator/effective/reward/mean");
  const alone = stepMetrics({ step: 1, arrived: [other], shipped: [], dropped_stale: 0 });
  expect(alone["train/guess-number/all/reward/mean"]).toBe(1);
});

test("a metric without measurements is absent", () => {
  expect(stepMetrics({ step: 1, arrived: [], shipped: [], dropped_stale: 0 })).toEqual({
    "off_policy/dropped": 0,
  });
});

test("a group solved none if every reward is at most 0, all if every one is at least 1, and some in between", () => {
  const groups = [
    [0, -1],
    [0.1, 0],
    [0.5, 0.5],
    [1, 0.9],
    [1, 2],
  ].map((rewards) => group(rewards.map((one) => rollout(one))));
  const metrics = stepMetrics({ step: 1, arrived: groups, shipped: [], dropped_stale: 0 });
  const [none, some, all] = ["none", "some", "all"].map((kind) => metrics[`train/agg/all/solved_${kind}`]);
  expect([none, some, all]).toEqual([1 / 5, 3 / 5, 1 / 5]);
});
