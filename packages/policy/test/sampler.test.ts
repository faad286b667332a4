import { seededRandom } from "rollcall/helpers";
import { expect, test } from "vitest";
import { type SamplingOptions, sampleToken } from "../sampler.ts";

const probabilities = [0.05, 0.4, 0.1, 0.3, 0.15];
const logits = Float32Array.from(probabilities, Math.log);
const plain: SamplingOptions = { temperature: 1, topP: 1, topK: -1, minP: 0, topLogprobs: 0 };

/** How often each id is drawn in 20,000 draws. */
function shares(options: Partial<SamplingOptions>, forbidden: number[] = []): number[] {
  const random = seededRandom("sampler");
  const counts = probabilities.map(() => 0);
  for (let draw = 0; draw < 20_000; draw += 1) {
    const { id } = sampleToken(logits, { ...plain, ...options }, random, { forbidden });
    counts[id] = (counts[id] ?? 0) + 1 / 20_000;
  }
  return counts;
}

function expectShares(actual: number[], expected: number[]): void {
  for (const [id, share] of expected.entries()) {
    if (share === 0) expect(actual[id]).toBe(0);
    else expect(Math.abs((actual[id] ?? 0) - share)).toBeLessThan(0.02);
  }
}

test("at temperature 1 tokens are drawn with the model's probabilities", () => {
  expectShares(shares({}), probabilities);
});

test("a temperature sharpens or flattens the distribution and its log probabilities", () => {
  const squared = probabilities.map((share) => share ** 2);
  const total = squared.reduce((sum, share) => sum + share, 0);
  expectShares(
    shares({ temperature: 0.5 }),
    squared.map((share) => share / total),
  );
  const { id, logprob } = sampleToken(logits, { ...plain, temperature: 0.5 }, () => 0.5);
  expect(logprob).toBeCloseTo(Math.log((squared[id] ?? 0) / total), 5);
});

test("greedy takes the likeliest token, the lowest id if several are equal, and reports its log probability without temperature", () => {
  const greedy = { ...plain, temperature: 0 };
  const { id, logprob } = sampleToken(logits, greedy, () => 0.99);
  expect(id).toBe(1);
  expect(logprob).toBeCloseTo(Math.log(0.4), 5);
  expect(sampleToken(new Float32Array([1, 3, 3]), greedy, () => 0.99).id).toBe(1);
  expect(sampleToken(logits, greedy, () => 0.99, { forbidden: [1] }).id).toBe(3);
});

test.each([
  ["top-k 2", { topK: 2 }, [0, 4 / 7, 0, 3 / 7, 0]],
  ["top-p 0.7", { topP: 0.69 }, [0, 4 / 7, 0, 3 / 7, 0]],
  ["top-p 0.71", { topP: 0.71 }, [0, 0.4 / 0.85, 0, 0.3 / 0.85, 0.15 / 0.85]],
  ["min-p 0.3", { minP: 0.3 }, [0, 0.4 / 0.85, 0, 0.3 / 0.85, 0.15 / 0.85]],
  ["top-k 3 with top-p 0.5", { topK: 3, topP: 0.5 }, [0, 4 / 7, 0, 3 / 7, 0]],
  ["a top-p of almost nothing", { topP: 0.001 }, [0, 1, 0, 0, 0]],
])("%s leaves out the other tokens", (_, options, expected) => {
  expectShares(shares(options), expected);
});

test("truncation does not change log probabilities", () => {
  const { id, logprob } = sampleToken(logits, { ...plain, topK: 1 }, () => 0.5);
  expect(id).toBe(1);
  expect(logprob).toBeCloseTo(Math.log(0.4), 5);
});

test("the likeliest tokens are reported in order, whatever was drawn", () => {
  const { top } = sampleToken(logits, { ...plain, topLogprobs: 3, topK: 1 }, () => 0.5);
  expect(top.map(({ id }) => id)).toEqual([1, 3, 4]);
  expect(top[1]?.logprob).toBeCloseTo(Math.log(0.3), 5);
  const all = sampleToken(logits, { ...plain, topLogprobs: 20 }, () => 0.5).top;
  expect(all).toHaveLength(5);
});

test("a forbidden token is never drawn", () => {
  expectShares(shares({}, [1, 3]), [0.05 / 0.3, 0, 0.1 / 0.3, 0, 0.15 / 0.3]);
});

test("next to a forbidden token with all the probability, the others keep their shares", () => {
  const peaked = Float32Array.from([0, 50, 2, 3]);
  const cold = { ...plain, temperature: 0.01 };
  for (const options of [cold, { ...cold, topP: 0.5 }, { ...cold, topK: 1 }, { ...cold, minP: 1 }]) {
    expect(sampleToken(peaked, options, () => 0.5, { forbidden: [1] }).id).toBe(3);
  }
});

test("the ends of the random range draw the first and the last token", () => {
  expect(sampleToken(logits, plain, () => 0).id).toBe(0);
  expect(sampleToken(logits, plain, () => 1 - 2 ** -53).id).toBe(4);
});
