import { expect, test } from "vitest";
import { tQuantile975, tTwoSidedP } from "../../../src/core/statistics/spread.ts";

test.each([
  [1, 12.706205],
  [2, 4.302653],
  [3, 3.182446],
  [4, 2.776445],
  [5, 2.570582],
  [9, 2.262157],
  [19, 2.093024],
  [29, 2.04523],
  [99, 1.984217],
  [Infinity, 1.959964],
])("with %d degrees of freedom the quantile is %d", (df, quantile) => {
  expect(Math.abs(tQuantile975(df) - quantile)).toBeLessThan(1e-6);
});

test("the quantile falls with every degree of freedom, also where the method changes", () => {
  for (let df = 1; df < 200; df += 1) {
    expect(tQuantile975(df + 1)).toBeLessThan(tQuantile975(df));
  }
  expect(tQuantile975(10 ** 9)).toBeCloseTo(tQuantile975(Infinity), 8);
});

// Found by integrating the density numerically, on both sides of the change from sum to series.
test.each([
  [50, 2.0085591121],
  [60, 2.000297822],
  [120, 1.9799304051],
  [1000, 1.9623390808],
])("with %d degrees of freedom it is %d to nine places", (df, quantile) => {
  expect(Math.abs(tQuantile975(df) - quantile)).toBeLessThan(1e-9);
});

test("degrees of freedom below 1 or not whole are a RangeError", () => {
  for (const df of [0, -1, 1.5, Number.NaN]) expect(() => tQuantile975(df)).toThrow(RangeError);
});

test.each([
  [1.581139, 5, 0.174688],
  [-1.581139, 5, 0.174688],
  [0, 3, 1],
  [12.706205, 1, 0.05],
  [2.093024, 19, 0.05],
  [1.959964, 1e6, 0.05],
])("a t of %d with %d degrees of freedom has p %d", (t, df, p) => {
  expect(tTwoSidedP(t, df)).toBeCloseTo(p, 6);
});

test("a very large t has p 0, not a negative one", () => {
  expect(tTwoSidedP(1e9, 30)).toBe(0);
});
