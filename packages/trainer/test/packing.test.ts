import { expect, test } from "vitest";
import { packRows } from "../row-batch.ts";

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
