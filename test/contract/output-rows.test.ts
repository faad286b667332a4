import { expect, test } from "vitest";
import { remainingInputs } from "../../src/contract/output-rows.ts";

test("a finished row fills one place of its example, and the first inputs fill the rest", () => {
  expect(remainingInputs([0, 0, 1, 1], [0], 2)).toEqual([0, 1, 1]);
  expect(remainingInputs([1, 0, 1, 0], [0, 1, 1], 2)).toEqual([0]);
});

test("remaining inputs come example by example, in the order of their first occurrence", () => {
  expect(remainingInputs([1, 0, 1, 0], [], 2)).toEqual([1, 1, 0, 0]);
  expect(remainingInputs([0, 1, 2, 0, 1, 2], [1, 0], 2)).toEqual([0, 1, 2, 2]);
});

test("inputs beyond an example's places are not run", () => {
  expect(remainingInputs([0, 0, 0, 1], [], 2)).toEqual([0, 0, 1]);
  expect(remainingInputs([0, 0, 0], [0], 2)).toEqual([0]);
});

test("surplus rows and rows of other examples change nothing", () => {
  expect(remainingInputs([0, 1], [0, 0, 0, 7], 1)).toEqual([1]);
  expect(remainingInputs([], [0], 1)).toEqual([]);
});
