import fc from "fast-check";
import { expect, test } from "vitest";
import { exactMcNemarP, PairedDifferences } from "../../../src/core/statistics/paired.ts";

function paired(first: readonly number[], second: readonly number[]): PairedDifferences {
  const differences = new PairedDifferences();
  for (const [at, value] of first.entries()) differences.add(value, second[at] ?? Number.NaN);
  return differences;
}

test("six tasks: the mean difference, its standard error, its interval and its p", () => {
  const differences = paired([0.75, 0.25, 1, 0.25, 0.75, 0.5], [0.5, 0.25, 0.75, 0.5, 0.25, 0.25]);
  const { mean, se, ci95, t, df, p } = differences.result();
  expect(mean).toBeCloseTo(0.166667, 6);
  expect(se).toBeCloseTo(0.105409, 6);
  expect(ci95?.[0]).toBeCloseTo(-0.104296, 6);
  expect(ci95?.[1]).toBeCloseTo(0.43763, 6);
  expect(t).toBeCloseTo(1.581139, 6);
  expect(p).toBeCloseTo(0.174688, 6);
  expect(df).toBe(5);
  expect([differences.wins, differences.losses, differences.ties]).toEqual([4, 1, 1]);
  expect(differences.mcnemarP()).toBeNull();
});

test("the smallest detectable difference, and the number of tasks that would decide this one, at 5 % and 80 % power", () => {
  // Miller 2024, 5: a variance of 4/9 and 198 tasks detect .1327; a difference of .05 needs 1396 tasks.
  const spread = Math.sqrt((4 / 9) * (197 / 198));
  const apart = (mean: number) => Array.from({ length: 198 }, (_, at) => mean + (at % 2 === 0 ? spread : -spread));
  const nothing = apart(0).map(() => 0);
  const small = paired(apart(0.05), nothing).detectable();
  expect(small).toMatchObject({ alpha: 0.05, power: 0.8, more_tasks: 1396 - 198 });
  expect(small.effect).toBeCloseTo(0.132733, 6);
  expect(paired(apart(-0.05), nothing).detectable().more_tasks).toBe(1396 - 198);
  expect(paired(apart(0.1), nothing).detectable().more_tasks).toBe(0);
  expect(paired(apart(-0.1), nothing).detectable().more_tasks).toBe(0);
  expect(paired(apart(0), nothing).detectable()).toMatchObject({ effect: small.effect, more_tasks: null });
});

test("an undecided difference of three tasks needs at least one more, and without variance there is no result", () => {
  expect(paired([0.3, 0.5, 0.9], [0, 0, 0]).result().ci95?.[0]).toBeLessThan(0);
  expect(paired([0.3, 0.5, 0.9], [0, 0, 0]).detectable().more_tasks).toBe(1);
  const unknown = { alpha: 0.05, power: 0.8, effect: null, more_tasks: null };
  expect(paired([1, 1], [0, 0]).detectable()).toEqual(unknown);
  expect(paired([1], [0]).detectable()).toEqual(unknown);
  expect(paired([1e-9, 1], [0, 1]).detectable().more_tasks).toBeGreaterThan(0);
});

test("the standard error of the difference agrees with the errors and the correlation of both sides", () => {
  const scores = fc.array(fc.tuple(fc.nat(4), fc.nat(4)), { minLength: 2, maxLength: 20 });
  fc.assert(
    fc.property(scores, (pairs) => {
      const [a, b] = [pairs.map(([one]) => one / 4), pairs.map(([, other]) => other / 4)];
      const mean = (values: number[]) => values.reduce((sum, x) => sum + x, 0) / values.length;
      const covariance = (x: number[], y: number[]) =>
        x.reduce((sum, value, at) => sum + (value - mean(x)) * ((y[at] ?? 0) - mean(y)), 0) / (x.length - 1);
      const variance = covariance(a, a) + covariance(b, b) - 2 * covariance(a, b);
      const se = paired(a, b).result().se ?? -1;
      expect(se * se * pairs.length).toBeCloseTo(Math.max(0, variance), 9);
    }),
  );
});

test.each([
  [9, 2, 0.06543],
  [5, 0, 0.0625],
  [3, 3, 1],
  [0, 0, 1],
  [2, 9, 0.06543],
])("with %d tasks won and %d lost McNemar's p is %d", (won, lost, p) => {
  expect(exactMcNemarP(won, lost)).toBeCloseTo(p, 5);
});

test("McNemar's p of thousands of tasks neither overflows nor underflows", () => {
  expect(exactMcNemarP(5000, 5000)).toBe(1);
  // By the normal approximation with continuity correction, 0.04658.
  expect(exactMcNemarP(5100, 4900)).toBeCloseTo(0.0466, 4);
  expect(exactMcNemarP(20_000, 0)).toBe(0);
});

test("McNemar's test is only for runs of zeros and ones", () => {
  expect(paired([1, 1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]).mcnemarP()).toBeCloseTo(0.0625, 12);
  expect(paired([1, 0.5], [0, 0]).mcnemarP()).toBeNull();
});

test("one pair only has a difference; equal differences have no t", () => {
  expect(paired([1], [0]).result()).toEqual({
    ...{ mean: 1, se: null, ci95: null, t: null, df: null, p: null },
  });
  expect(paired([1, 1, 1], [0, 0, 0]).result()).toEqual({
    ...{ mean: 1, se: 0, ci95: [1, 1], t: null, df: 2, p: null },
  });
  expect(paired([], []).result().mean).toBeNull();
});

test("means that differ only in the last digit are a tie", () => {
  const { ties, wins } = paired([0.1 + 0.2], [0.3]);
  expect([ties, wins]).toEqual([1, 0]);
});
