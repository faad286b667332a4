import { expect, test } from "vitest";
import { layOut, packRows } from "../row-batch.ts";

test("the longest sample goes first, each into the first row with enough space", () => {
  const lengths = [5, 3, 9, 4, 7, 2, 6];
  const rows = packRows(lengths, 12).map((row) => row.map((index) => lengths[index]));
  expect(rows).toEqual([
    [9, 3],
    [7, 5],
    [6, 4, 2],
  ]);
});

test("a sample longer than a row is refused", () => {
  expect(() => packRows([3, 13], 12)).toThrow("13");
});

test("a sample's own weight multiplies the weight of its trained tokens only", () => {
  const sample = { ids: [1, 2, 3, 4], mask: [0, 0, 1, 1], logprobs: [0, 0, -1, -1], advantage: 0.5 };
  const [batch] = layOut([{ ...sample, weight: 3 }, sample], 0.25);
  const weights = [...(batch?.weights ?? [])].filter((weight) => weight !== 0);
  expect(weights.toSorted()).toEqual([0.25, 0.25, 0.75, 0.75]);
  expect(new Set(batch?.advantages)).toEqual(new Set([0, 0.5]));
});
