import fc from "fast-check";
import { expect, test } from "vitest";
import { Advantage } from "../../../src/contract/training-request.ts";
import {
  advantagesOf,
  creditGroup,
  estimatorOf,
  type GroupRules,
  penalise,
} from "../../../src/core/training/advantage.ts";

const REWARDS = [1, 0, 0, 1, 1];
const PENALTY = { output: 0.25, input: 0.1, turns: 0.1 };
const named = (advantage: object) => Advantage.parse(advantage);

function close(actual: readonly (number | null)[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length);
  for (const [at, value] of expected.entries()) expect(actual[at]).toBeCloseTo(value, 6);
}

test.each([
  ["mean", { name: "mean" }, [0.4, -0.6, -0.6, 0.4, 0.4]],
  ["TRL's, in step", { name: "mean_std" }, [0.730163, -1.095245, -1.095245, 0.730163, 0.730163]],
  [
    "TRL's, asynchronous",
    { name: "mean_std", sd: "population", eps: 1e-8 },
    [0.816497, -1.224745, -1.224745, 0.816497, 0.816497],
  ],
  ["verl's", { name: "mean_std", eps: 1e-6, singleton: "raw" }, [0.730295, -1.095443, -1.095443, 0.730295, 0.730295]],
  ["leave one out", { name: "rloo" }, [0.5, -0.75, -0.75, 0.5, 0.5]],
  ["max-RL", { name: "max_rl" }, [0.666667, -1, -1, 0.666667, 0.666667]],
])("%s gives the recorded advantages", (_name, advantage, expected) => {
  close(advantagesOf(named(advantage), REWARDS), expected);
});

test("the length penalty subtracts a fraction of the group's mean, as recorded", () => {
  const output = [10, 20, 40, 30, 20];
  const total = [110, 140, 160, 150, 120];
  const turns = [1, 2, 4, 2, 1];
  const members = REWARDS.map((reward, at) => ({
    reward,
    lengths: { output: output[at] ?? 0, total: total[at] ?? 0, turns: turns[at] ?? 0 },
  }));
  const shares = [0.170833, 0.275, 0.45, 0.3375, 0.233333];
  close(
    penalise(PENALTY, members),
    REWARDS.map((reward, at) => reward - 0.6 * (shares[at] ?? 0)),
  );
  const rules: GroupRules = {
    advantage: { name: "mean" },
    length_penalty: PENALTY,
    min_group_size: 2,
    zero_variance: "drop",
  };
  const credited = creditGroup(rules, members);
  close(credited.advantages, [0.4735, -0.589, -0.694, 0.3735, 0.436]);
  expect(credited.mean).toBeCloseTo(0.6, 12);
  const unscored = { reward: null, lengths: { output: 9000, total: 9999, turns: 50 } };
  const among = creditGroup(rules, [...members, unscored]);
  expect(among.advantages).toEqual([...credited.advantages, null]);
  expect(among).toMatchObject({ verdict: "train", survivors: 5, mean: credited.mean });
});

const LENGTH_WEIGHTED = named({ name: "mean", length_weighted_baseline: true });

test("a length-weighted baseline is the mean of the rewards, weighted by sampled tokens", () => {
  // (10 * 1 + 30 * 0 + 60 * 0) / 100 = 0.1, and (100 * 1 + 300 * 0) / 400 = 0.25.
  close(advantagesOf(LENGTH_WEIGHTED, [1, 0, 0], [10, 30, 60]), [0.9, -0.1, -0.1]);
  close(advantagesOf(LENGTH_WEIGHTED, [1, 0], [100, 300]), [0.75, -0.25]);
  expect(advantagesOf(LENGTH_WEIGHTED, [1, null, 0], [100, 9000, 300])).toEqual([0.75, null, -0.25]);
});

test("with equal lengths, or without any, a length-weighted baseline is the plain mean", () => {
  const plain = advantagesOf(named({ name: "mean" }), REWARDS);
  close(advantagesOf(LENGTH_WEIGHTED, REWARDS, [7, 7, 7, 7, 7]), plain as number[]);
  expect(advantagesOf(LENGTH_WEIGHTED, REWARDS, [0, 0, 0, 0, 0])).toEqual(plain);
  expect(advantagesOf(LENGTH_WEIGHTED, REWARDS)).toEqual(plain);
});

test("with a length-weighted baseline, the advantages times the sampled tokens sum to 0", () => {
  const member = fc.record({ reward: fc.double({ min: -1, max: 1, noNaN: true }), output: fc.nat(5000) });
  fc.assert(
    fc.property(fc.array(member, { minLength: 2, maxLength: 16 }), (group) => {
      fc.pre(group.some(({ output }) => output > 0));
      const members = group.map(({ reward, output }) => ({ reward, lengths: { output, total: output, turns: 1 } }));
      const { advantages } = creditGroup({ ...RULES, advantage: LENGTH_WEIGHTED }, members);
      const tokens = group.reduce((sum, { output }) => sum + output, 0);
      const weighted = group.reduce((sum, { output }, at) => sum + output * (advantages[at] ?? 0), 0);
      expect(Math.abs(weighted / tokens)).toBeLessThan(1e-9);
    }),
  );
});

test("a single rollout has the advantage 0, or its reward if that is configured", () => {
  expect(advantagesOf(named({ name: "mean" }), [0.7])).toEqual([0]);
  expect(advantagesOf(named({ name: "mean_std" }), [0.7])).toEqual([0]);
  expect(advantagesOf(named({ name: "mean_std", singleton: "raw" }), [null, 0.7])).toEqual([null, 0.7]);
  expect(advantagesOf(named({ name: "rloo" }), [0.7])).toEqual([0]);
  expect(advantagesOf(named({ name: "rloo", singleton: "raw" }), [0.7])).toEqual([0.7]);
});

test("max-RL gives 0 if the mean is not positive, and `none` gives no advantages", () => {
  expect(advantagesOf(named({ name: "max_rl" }), [-1, 0])).toEqual([0, 0]);
  expect(advantagesOf(named({ name: "none" }), [1, 0])).toEqual([null, null]);
});

const reward = fc.double({ min: -1, max: 1, noNaN: true });
const anyAdvantage = fc.constantFrom(
  named({ name: "mean" }),
  named({ name: "mean_std" }),
  named({ name: "mean_std", sd: "population", eps: 1e-6, singleton: "raw" }),
  named({ name: "rloo" }),
  named({ name: "max_rl" }),
);

test("members without a reward have no advantage and do not change the others'", () => {
  const rewards = fc.array(fc.option(reward), { maxLength: 12 });
  fc.assert(
    fc.property(anyAdvantage, rewards, (advantage, some) => {
      const all = advantagesOf(advantage, some);
      const given = some.filter((one) => one !== null);
      expect(all.filter((one) => one !== null)).toEqual(advantagesOf(advantage, given));
      expect(all.map((one) => one === null)).toEqual(some.map((one) => one === null));
    }),
  );
});

test("the advantages of a group sum to 0, and are exactly 0 if all rewards are equal", () => {
  const group = fc.array(fc.integer({ min: 0, max: 10 }), { minLength: 2, maxLength: 16 });
  fc.assert(
    fc.property(anyAdvantage, group, reward, (advantage, tenths, same) => {
      const rewards = tenths.map((count) => count / 10);
      const sum = advantagesOf(advantage, rewards).reduce<number>((total, one) => total + (one ?? 0), 0);
      expect(Math.abs(sum)).toBeLessThan(1e-6);
      expect(
        advantagesOf(
          advantage,
          rewards.map(() => same),
        ),
      ).toEqual(rewards.map(() => 0));
    }),
  );
});

test("rewards that differ only by rounding are equal: every estimator gives advantage 0, and the group does not train", () => {
  const equal = [0.1 + 0.2, 0.3, 0.6 / 2, 0.1 * 3];
  const large = [1e9 * (0.1 + 0.2), 1e9 * 0.3];
  const small = [0.3 - 0.2 - 0.1, 0];
  for (const rewards of [equal, large, small]) {
    expect(new Set(rewards).size).toBeGreaterThan(1);
    for (const name of ["mean", "mean_std", "rloo", "max_rl"]) {
      expect(advantagesOf(named({ name }), rewards)).toEqual(rewards.map(() => 0));
    }
    for (const name of ["mean", "none"] as const) {
      expect(creditGroup({ ...RULES, advantage: { name } }, scored(...rewards)).verdict).toBe("zero_variance");
    }
  }
  const population = named({ name: "mean_std", sd: "population", eps: 1e-12 });
  expect(advantagesOf(population, [0.3, 0.3 + 1e-9]).map((one) => Math.round(one ?? 0))).toEqual([-1, 1]);
});

const scored = (...rewards: (number | null)[]) => rewards.map((one) => ({ reward: one }));
const RULES: GroupRules = {
  advantage: { name: "mean" },
  length_penalty: null,
  min_group_size: 2,
  zero_variance: "drop",
};

test("a group trains if enough members are left and their rewards differ", () => {
  expect(creditGroup(RULES, scored(1, 0, null))).toEqual({
    verdict: "train",
    survivors: 2,
    mean: 0.5,
    advantages: [0.5, -0.5, null],
  });
  expect(creditGroup(RULES, scored(1, null, null)).verdict).toBe("too_few");
  expect(creditGroup({ ...RULES, min_group_size: 1 }, scored(null))).toMatchObject({
    verdict: "too_few",
    survivors: 0,
    mean: null,
  });
  expect(creditGroup(RULES, scored(0.3, 0.3, null)).verdict).toBe("zero_variance");
  expect(creditGroup({ ...RULES, zero_variance: "refill" }, scored(1, 1)).verdict).toBe("zero_variance");
  expect(creditGroup({ ...RULES, zero_variance: "keep" }, scored(1, 1))).toMatchObject({
    verdict: "train",
    advantages: [0, 0],
  });
});

test("if the trainer computes the advantages, a group trains if its rewards differ", () => {
  const rules: GroupRules = { ...RULES, advantage: { name: "none" } };
  expect(creditGroup(rules, scored(1, 0)).verdict).toBe("train");
  expect(creditGroup(rules, scored(1, 1)).verdict).toBe("zero_variance");
});

test("with a length penalty, members with equal rewards and unequal lengths train", () => {
  const lengths = [10, 20].map((output) => ({ output, total: 100, turns: 1 }));
  const members = lengths.map((each) => ({ reward: 1, lengths: each }));
  expect(creditGroup({ ...RULES, length_penalty: PENALTY }, members).verdict).toBe("train");
});

test("a batch records which estimator made its advantages", () => {
  expect(estimatorOf(named({ name: "mean_std" }), PENALTY)).toEqual({
    name: "mean_std",
    version: 1,
    params: { sd: "sample", eps: 1e-4, singleton: "zero", length_penalty: PENALTY },
  });
  expect(estimatorOf({ name: "mean" }, null)).toEqual({ name: "mean", version: 1, params: {} });
});
