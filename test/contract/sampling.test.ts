import { expect, test } from "vitest";
import { seededRandom } from "../../src/contract/random.ts";
import {
  cacheSalt,
  evalSampling,
  mergeSampling,
  Sampling,
  trainingSampling,
  withCallSeed,
} from "../../src/contract/sampling.ts";

test("R-gen-12, D9: the run's sampling arguments are merged over the environment's, objects member by member", () => {
  const environment = { temperature: 1, extra_body: { x: 1, deep: { a: 1, b: [1, 2] } } };
  const run = { temperature: 0.5, extra_body: { y: 2, deep: { b: [3] } } };
  expect(mergeSampling(environment, run)).toEqual({
    temperature: 0.5,
    extra_body: { x: 1, y: 2, deep: { a: 1, b: [3] } },
  });
  expect(environment.extra_body).toEqual({ x: 1, deep: { a: 1, b: [1, 2] } });
});

test("a null of the run removes the environment's value", () => {
  const run = Sampling.parse({ temperature: null, extra_body: { x: null } });
  const merged = mergeSampling({ temperature: 1, top_p: 0.9, extra_body: { x: { deep: 1 } } }, run);
  expect(merged).toEqual({ temperature: null, top_p: 0.9, extra_body: { x: null } });
});

test.each(["model", "Messages", "input", "stream"])(
  "extra_body cannot have %s, which a run sets in another place",
  (field) => {
    const refused = Sampling.safeParse({ extra_body: { [field]: "x" } });
    expect(refused.error?.issues.map(({ path }) => path)).toEqual([["extra_body", field]]);
  },
);

const NEUTRAL = {
  ...{ temperature: 1, top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0 },
  logprobs: true,
};

test("a training run requests ids and logprobs, and leaves the weights' distribution unchanged", () => {
  expect(trainingSampling({}, { max_tokens: 64 }, "s")).toEqual({
    ...{ ...NEUTRAL, max_tokens: 64 },
    extra_body: { return_token_ids: true, repetition_penalty: 1, cache_salt: "s" },
  });
});

test("the arguments of environment and run have precedence over those of a training run, and a null removes one", () => {
  const taken = { cache_salt: null, repetition_penalty: null, own: null };
  const run = Sampling.parse({ temperature: 0.7, min_p: null, extra_body: taken });
  expect(trainingSampling({ temperature: 0.5, top_p: 0.9 }, run, "s")).toEqual({
    ...{ ...NEUTRAL, temperature: 0.7, top_p: 0.9, min_p: null },
    extra_body: { return_token_ids: true, own: null },
  });
});

test("the sampling in a batch has no salt", () => {
  expect(trainingSampling({}, {}, null).extra_body).toEqual({
    ...{ return_token_ids: true, repetition_penalty: 1 },
  });
});

test("different runs, resets and versions have different salts", () => {
  const weights = [
    { run_id: "run_a", generation: 0, version: 11 },
    { run_id: "run_a", generation: 1, version: 11 },
    { run_id: "run_a", generation: 0, version: 12 },
    { run_id: "run_a", generation: 11, version: 1 },
    { run_id: "run_a", generation: 1, version: 1 },
    { run_id: "run_b", generation: 0, version: 11 },
  ];
  const salts = weights.map(cacheSalt);
  expect(new Set(salts).size).toBe(weights.length);
  expect(salts[0]).toBe("run_a.0.11");
});

test("an eval of a training run has an eval's sampling, and the salt of its weights", () => {
  expect(evalSampling({ max_tokens: 8, extra_body: { own: 1 } }, "s")).toEqual({
    max_tokens: 8,
    extra_body: { own: 1, cache_salt: "s" },
  });
  const refused = { cache_salt: null, repetition_penalty: null };
  expect(evalSampling({ extra_body: refused }, "s")).toEqual({ extra_body: {} });
});

const PLACE = { group: 3, slot: 1, attempt: 0, turn: 2 };

test("each call has its own seed, the same for the same place, which any engine accepts", () => {
  const seedAt = (change: object, seed = 7) => withCallSeed({ seed }, { ...PLACE, ...change }).seed;
  expect(seedAt({})).toBe(seedAt({}));
  const others = [{ group: 4 }, { slot: 2 }, { attempt: 1 }, { turn: 3 }, { group: 1, slot: 3 }];
  const seeds = [seedAt({}), seedAt({}, 8), ...others.map((change) => seedAt(change))];
  expect(new Set(seeds).size).toBe(seeds.length);
  const many = Array.from({ length: 5000 }, (_, group) => seedAt({ group }) ?? -1);
  expect(many.every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31)).toBe(true);
});

test("without a seed none is sent, and one in extra_body is sent unchanged", () => {
  const asked = { temperature: 1, extra_body: { seed: 5 } };
  expect(withCallSeed(asked, PLACE)).toEqual(asked);
  expect(withCallSeed({ seed: null }, PLACE)).toEqual({ seed: null });
});

test("an engine's first numbers in different places are evenly distributed and independent", () => {
  const firsts = Array.from({ length: 10_000 }, (_, at) => {
    const { seed } = withCallSeed({ seed: 11 }, { ...PLACE, group: at >> 3, slot: at & 7 });
    return seededRandom("sample", seed ?? -1)();
  });
  const mean = firsts.reduce((sum, draw) => sum + draw, 0) / firsts.length;
  const products = firsts.slice(1).map((draw, at) => (draw - 0.5) * ((firsts[at] ?? 0) - 0.5));
  const correlation = (12 * products.reduce((sum, one) => sum + one, 0)) / products.length;
  // Four standard errors.
  expect(Math.abs(mean - 0.5)).toBeLessThan((4 * Math.sqrt(1 / 12)) / 100);
  expect(Math.abs(correlation)).toBeLessThan(4 / 100);
});
