import { expect, test } from "vitest";
import { adjustByHolm } from "../../src/contract/holm.ts";

/** Recorded from statsmodels 0.15.0: `multipletests(ps, method="holm")[1]`. */
const RECORDED: readonly [readonly number[], readonly number[]][] = [
  [
    [0.01, 0.04, 0.03, 0.005],
    [0.03, 0.06, 0.06, 0.02],
  ],
  [
    [0.02, 0.02, 0.5],
    [0.06, 0.06, 0.5],
  ],
  [[0.3], [0.3]],
  [
    [0.6, 0.9, 0.7],
    [1, 1, 1],
  ],
  [
    [0.001, 0.0104, 0.2, 0.049, 0.05],
    [0.005, 0.0416, 0.2, 0.147, 0.147],
  ],
];

test.each(RECORDED)("Holm's correction of %j is that of statsmodels", (ps, adjusted) => {
  expect(adjustByHolm(ps)).toEqual(adjusted.map((p) => expect.closeTo(p, 12)));
});

test("a test that was not made stays null and is not counted", () => {
  expect(adjustByHolm([null, 0.02, null, 0.03])).toEqual([
    null,
    expect.closeTo(0.04, 12),
    null,
    expect.closeTo(0.04, 12),
  ]);
  expect(adjustByHolm([])).toEqual([]);
});
