import fc from "fast-check";
import { expect, test } from "vitest";
import { promptWeights } from "../../../src/core/training/loss-weights.ts";

test("each prompt's tokens weigh the mean number of tokens over its own", () => {
  // 100 tokens of 4 prompts: a mean of 25.
  expect(promptWeights([10, 50, 25, 15])).toEqual([2.5, 0.5, 1, 25 / 15]);
  expect(promptWeights([7])).toEqual([1]);
  expect(promptWeights([])).toEqual([]);
});

test("a prompt without trained tokens has no weight and changes no other's", () => {
  expect(promptWeights([0, 10, 30])).toEqual([0, 2, 20 / 30]);
  expect(promptWeights([0])).toEqual([0]);
});

const batch = fc.array(fc.array(fc.double({ min: -5, max: 5, noNaN: true }), { minLength: 1, maxLength: 40 }), {
  minLength: 1,
  maxLength: 12,
});

test("the weights of all tokens sum to their number, and the weighted token mean is the mean over prompts", () => {
  fc.assert(
    fc.property(batch, (prompts) => {
      const weights = promptWeights(prompts.map(({ length }) => length));
      const tokens = prompts.reduce((sum, { length }) => sum + length, 0);
      const sum = (losses: readonly number[]) => losses.reduce((total, loss) => total + loss, 0);
      const weight = sum(prompts.map(({ length }, at) => length * (weights[at] ?? 0)));
      expect(weight).toBeCloseTo(tokens, 6);
      const weighted = sum(prompts.map((losses, at) => (weights[at] ?? 0) * sum(losses))) / tokens;
      const overPrompts = sum(prompts.map((losses) => sum(losses) / losses.length)) / prompts.length;
      expect(weighted).toBeCloseTo(overPrompts, 9);
    }),
  );
});
