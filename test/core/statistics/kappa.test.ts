/** The expected values are those of scikit-learn 1.9.1 (κ) and statsmodels 0.15.0 (κ and its standard error). */
import { expect, test } from "vitest";
import { kappaOf, type Rating } from "../../../src/core/statistics/kappa.ts";
import { Z_975 } from "../../../src/core/statistics/spread.ts";

function pairs(first: readonly Rating[], second: readonly Rating[]): (readonly [Rating, Rating])[] {
  return first.map((value, at) => [value, second[at] ?? Number.NaN] as const);
}

function repeated(value: Rating, other: Rating, times: number): (readonly [Rating, Rating])[] {
  return Array.from({ length: times }, () => [value, other] as const);
}

test("two labels: statsmodels' kappa with its interval", () => {
  const rated = [
    ...repeated("yes", "yes", 20),
    ...repeated("yes", "no", 5),
    ...repeated("no", "yes", 10),
    ...repeated("no", "no", 15),
  ];
  const { n, agreement, weights, kappa, ci95, reason } = kappaOf(rated);
  expect([n, agreement, weights, reason]).toEqual([50, 0.7, "none", null]);
  expect(kappa).toBeCloseTo(0.4, 12);
  expect(ci95?.[0]).toBeCloseTo(0.151092290476661, 10);
  expect(ci95?.[1]).toBeCloseTo(0.6489077095233389, 10);
});

test("0 and 1 give the same as two labels, because one squared is one", () => {
  const rated = [...repeated(1, 1, 20), ...repeated(1, 0, 5), ...repeated(0, 1, 10), ...repeated(0, 0, 15)];
  const { weights, kappa, ci95 } = kappaOf(rated);
  expect(weights).toBe("quadratic");
  expect(kappa).toBeCloseTo(0.4, 12);
  expect(ci95?.[0]).toBeCloseTo(0.151092290476661, 10);
});

test("three labels: the distance of two labels does not matter", () => {
  const { kappa, ci95 } = kappaOf(
    pairs(["a", "b", "c", "a", "b", "c", "a", "a", "b", "c"], ["a", "b", "b", "a", "c", "c", "a", "b", "b", "c"]),
  );
  expect(kappa).toBeCloseTo(0.5522388059701492, 12);
  expect(ci95?.[0]).toBeCloseTo(0.13511965321297248, 10);
  expect(ci95?.[1]).toBeCloseTo(0.9693579587273259, 10);
});

test("numbers at equal distances: scikit-learn's kappa with quadratic weights", () => {
  const { kappa, ci95 } = kappaOf(
    pairs([0, 0.5, 1, 1, 0.5, 0, 0, 1, 0.5, 1, 0, 0.5], [0, 0.5, 0.5, 1, 1, 0, 0.5, 1, 0.5, 0, 0, 0]),
  );
  expect(kappa).toBeCloseTo(0.5, 12);
  expect(ci95?.[0]).toBeCloseTo(0.04347784344969713, 10);
  expect(ci95?.[1]).toBeCloseTo(0.9565221565503028, 10);
});

test("numbers at unequal distances: the weights are the squared differences, and the interval ends at 1", () => {
  const { kappa, ci95 } = kappaOf(pairs([0, 0.2, 1, 1, 0.2, 0, 0, 1, 0.2, 1], [0, 0.2, 0.2, 1, 1, 0, 0.2, 1, 0, 1]));
  expect(kappa).toBeCloseTo(0.6606786427145708, 12);
  expect(ci95?.[0]).toBeCloseTo(0.6606786427145708 - Z_975 * 0.20930018551973711, 10);
  expect(ci95?.[1]).toBe(1);
});

test("numbers far from 0 lose no digits", () => {
  const moved = (values: readonly number[]) => values.map((value) => 1e7 + value);
  const rated = pairs(moved([0, 0.5, 1, 1, 0.5, 0]), moved([0, 0.5, 0.5, 1, 1, 0]));
  const plain = pairs([0, 0.5, 1, 1, 0.5, 0], [0, 0.5, 0.5, 1, 1, 0]);
  expect(kappaOf(rated).kappa).toBeCloseTo(kappaOf(plain).kappa ?? Number.NaN, 9);
});

test("a rater who always gives the same value agrees only by chance", () => {
  expect(kappaOf(pairs([1, 0, 1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]))).toMatchObject({
    kappa: 0,
    agreement: 0.5,
  });
});

test("if all agree, κ is 1 and has no interval; the formula gives no width", () => {
  expect(kappaOf(pairs([0, 1, 1], [0, 1, 1]))).toMatchObject({ kappa: 1, ci95: null, agreement: 1, reason: null });
});

test("κ is null with a reason for fewer than two pairs, for one value only, and for values whose squares overflow", () => {
  expect(kappaOf([])).toMatchObject({ n: 0, agreement: null, kappa: null, ci95: null, reason: "too_few" });
  expect(kappaOf([[1, 0]])).toMatchObject({ n: 1, agreement: 0, kappa: null, reason: "too_few" });
  expect(kappaOf(pairs(["no", "no"], ["no", "no"]))).toMatchObject({ agreement: 1, kappa: null, reason: "one_value" });
  expect(kappaOf(pairs([0.1, 0.1, 0.1], [0.1, 0.1, 0.1]))).toMatchObject({ kappa: null, reason: "one_value" });
  expect(kappaOf(pairs([1e200, 0], [0, 1]))).toMatchObject({ kappa: null, reason: "too_large" });
});

test("numbers and labels of one judge together count as labels", () => {
  expect(kappaOf(pairs([7, "yes"], [7, "no"]))).toMatchObject({ weights: "none", agreement: 0.5 });
});
