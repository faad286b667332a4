import fc from "fast-check";
import { expect, test } from "vitest";
import { passAtK, passHatK } from "../../../src/core/statistics/pass-at-k.ts";
import { RunningSummary, type ScoredRow, type Summary, wilson95 } from "../../../src/core/statistics/statistics.ts";

function rowsOf(tasks: readonly (readonly (number | null)[])[]): ScoredRow[] {
  return tasks.flatMap((rewards, group) => rewards.map((reward) => ({ group, reward, metrics: {} })));
}

/** `attempts`: per task; by default the largest number. */
function summarize(rows: readonly ScoredRow[], attempts = most(rows)): Summary {
  const summary = new RunningSummary(attempts);
  for (const row of rows) summary.add(row);
  return summary.result();
}

function most(rows: readonly ScoredRow[]): number {
  const sizes = Object.values(Object.groupBy(rows, ({ group }) => group)).map((of) => of?.length);
  return Math.max(1, ...sizes.map((size) => size ?? 0));
}

/** A task of n attempts of which c passed. */
function attempts(n: number, c: number): number[] {
  return Array.from({ length: n }, (_, at) => (at < c ? 1 : 0));
}

test("five tasks of four attempts: mean of task means, its standard error and its interval", () => {
  const tasks = [
    [1, 1, 0, 1],
    [0, 0, 0, 1],
    [1, 1, 1, 1],
    [0, 1, 0, 0],
    [1, 0, 1, 1],
  ];
  const { reward } = summarize(rowsOf(tasks));
  expect(reward.mean).toBeCloseTo(0.6, 12);
  expect(reward.se).toBeCloseTo(0.15, 12);
  expect(reward.ci95?.[0]).toBeCloseTo(0.183533, 6);
  expect(reward.ci95?.[1]).toBeCloseTo(1.016467, 6);
  expect(reward).toMatchObject({ n: 20, n_tasks: 5 });
});

test("with unequal numbers of attempts each task still has the same weight", () => {
  const { reward } = summarize(rowsOf([[1, 1, 0], [0, 0], [1, 1, 1, 1], [0]]));
  expect(reward.mean).toBeCloseTo(0.416667, 6);
  expect(reward.se).toBeCloseTo(0.25, 12);
});

test("unscored attempts are left out, never read as 0", () => {
  const { reward } = summarize(rowsOf([[1, null], [null, null], [1]]));
  expect(reward).toMatchObject({ mean: 1, n: 2, n_tasks: 2, se: 0 });
});

test("without scores everything is null, not 0", () => {
  for (const tasks of [[], [[null]]]) {
    const summary = summarize(rowsOf(tasks));
    const none = { mean: null, se: null, ci95: null, wilson95: null, range: null };
    expect(summary.reward).toEqual({ ...none, n: 0, n_tasks: 0 });
    expect(summary.pass_at_k).toEqual({});
  }
});

test("an interval beyond all rewards is not clipped; the smallest and largest reward are reported, too", () => {
  const rewards = [[0.5, 1], [1, null], [1], [1], [1], [1]];
  const { mean, ci95, range } = summarize(rowsOf(rewards)).reward;
  expect(mean).toBeCloseTo(5.75 / 6, 12);
  expect(ci95?.[1]).toBeGreaterThan(1);
  expect(range).toEqual([0.5, 1]);
  expect(summarize(rowsOf([[-2], [null], [3.5]])).reward.range).toEqual([-2, 3.5]);
});

test("with fewer than two tasks there is a mean but no standard error and no interval", () => {
  const { reward } = summarize(rowsOf([[1, 0, 1]]));
  expect(reward.mean).toBeCloseTo(2 / 3, 12);
  expect(reward).toMatchObject({ se: null, ci95: null });
});

test("missing values of one metric do not affect the others", () => {
  const summary = summarize([
    { group: 0, reward: 1, metrics: { a: 1, b: 4 } },
    { group: 0, reward: null, metrics: { a: 3, b: null } },
    { group: 1, reward: 1, metrics: { a: 4 } },
  ]);
  expect(summary.metrics["a"]).toEqual({ mean: 3, se: 1, n: 3 });
  expect(summary.metrics["b"]).toEqual({ mean: 4, se: null, n: 1 });
});

test.each([
  [1, [0.2, 0.4, 0.8, 1], [0.2, 0, 0, 0]],
  [2, [0.4, 0.7, 1, 1], [0.4, 0.1, 0, 0]],
])("of five attempts with %d passed, pass@k and pass^k are exact", (c, at, hat) => {
  const ks = [1, 2, 4, 5];
  for (const [index, k] of ks.entries()) {
    expect(passAtK(5, c, k)).toBeCloseTo(at[index] ?? -1, 12);
    expect(passHatK(5, c, k)).toBeCloseTo(hat[index] ?? -1, 12);
  }
});

test("pass@k and pass^k are means over tasks", () => {
  const summary = summarize(rowsOf([0, 1, 2, 5].map((c) => attempts(5, c))));
  expect(Object.keys(summary.pass_at_k)).toEqual(["1", "2", "4", "5"]);
  expect(summary.pass_at_k["1"]).toBeCloseTo(0.4, 12);
  expect(summary.pass_at_k["2"]).toBeCloseTo(0.525, 12);
  expect(summary.pass_at_k["4"]).toBeCloseTo(0.7, 12);
  expect(summary.pass_hat_k["1"]).toBeCloseTo(0.4, 12);
  expect(summary.pass_hat_k["2"]).toBeCloseTo(0.275, 12);
  expect(summary.pass_hat_k["4"]).toBeCloseTo(0.25, 12);
  expect(summary.pass_at_k["5"]).toBeCloseTo(0.75, 12);
  const errors = ["1", "2", "4"].map((k) => summary.pass_k[k]?.at_se ?? -1);
  for (const [at, se] of [0.216025, 0.2136, 0.238048].entries()) {
    expect(errors[at]).toBeCloseTo(se, 6);
  }
});

test("for six attempts pass@k is given for k = 1, 2, 4 and 6, and is null if no task has so many scored", () => {
  const summary = summarize(rowsOf([[1, 0, 0, null, null, null], attempts(2, 1)]), 6);
  expect(summary.pass_at_k).toEqual({
    "1": expect.closeTo((1 / 3 + 1 / 2) / 2, 12),
    "2": expect.closeTo(5 / 6, 12),
    ...{ "4": null, "6": null },
  });
  expect(summary.pass_k["2"]).toMatchObject({ n_tasks: 2, n_too_few: 0, hat_se: 0 });
  expect(summary.pass_k["4"]).toEqual({ n_tasks: 0, n_too_few: 2, at_se: null, hat_se: null });
});

test("an attempt passes from 0.5 on", () => {
  const summary = summarize(rowsOf([[0.5, 0.49999]]));
  expect(summary.pass_at_k).toEqual({ "1": 0.5, "2": 1 });
  expect(summary.pass_hat_k).toEqual({ "1": 0.5, "2": 0 });
});

test("a task with fewer than k scored attempts is not part of pass@k", () => {
  const summary = summarize(
    rowsOf([
      [1, 0],
      [0, null],
      [0, 0],
    ]),
  );
  expect(summary.pass_at_k["1"]).toBeCloseTo(0.5 / 3, 12);
  expect(summary.pass_at_k["2"]).toBe(0.5);
});

test("with one attempt a task there is no pass@k", () => {
  const summary = summarize(rowsOf([[1], [0]]));
  expect(summary.pass_at_k).toEqual({});
  expect(summary.pass_hat_k).toEqual({});
});

test("many attempts do not overflow", () => {
  expect(passAtK(100_000, 1, 50_000)).toBeCloseTo(0.5, 9);
  expect(passHatK(100_000, 99_999, 50_000)).toBeCloseTo(0.5, 9);
});

test("rows in any order give the same result as in order, at any time", () => {
  const value = fc.option(fc.double({ min: 0, max: 1, noNaN: true }));
  const row = fc.record({ group: fc.nat(4), reward: value, metrics: fc.record({ m: value }) });
  fc.assert(
    fc.property(fc.array(row, { maxLength: 24 }), fc.nat(24), (rows, asked) => {
      const running = new RunningSummary(most(rows));
      for (const [at, next] of rows.entries()) {
        if (at === asked) expectClose(running.result(), rows.slice(0, at), most(rows));
        running.add(next);
      }
      expectClose(running.result(), rows, most(rows));
    }),
  );
});

function expectClose(result: Summary, rows: readonly ScoredRow[], of: number): void {
  const inOrder = summarize(
    rows.toSorted((a, b) => a.group - b.group),
    of,
  );
  const numbers = (summary: Summary) =>
    JSON.stringify(summary, (_, value) => (typeof value === "number" ? Number(value.toFixed(9)) + 0 : value));
  expect(JSON.parse(numbers(result))).toEqual(JSON.parse(numbers(inOrder)));
}

test("the standard error equals the clustered one if all tasks have the same number of attempts", () => {
  const task = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(fc.array(task, { minLength: 2, maxLength: 12 }), (tasks) => {
      const { reward } = summarize(rowsOf(tasks));
      const mean = tasks.flat().reduce((sum, value) => sum + value, 0) / (3 * tasks.length);
      const squares = tasks.map((values) => values.reduce((sum, value) => sum + value - mean, 0) ** 2);
      const sum = squares.reduce((total, square) => total + square, 0);
      const factor = tasks.length / (tasks.length - 1);
      expect(reward.mean).toBeCloseTo(mean, 9);
      expect(reward.se).toBeCloseTo(Math.sqrt(factor * sum) / (3 * tasks.length), 9);
    }),
  );
});

test.each([
  [17, 20, 0.639581, 0.947631],
  [850, 1000, 0.826531, 0.87079],
  [0, 10, 0, 0.277533],
  [10, 10, 0.722467, 1],
])("Wilson's interval of %d of %d goes from %d to %d", (passed, n, low, high) => {
  const interval = wilson95(passed / n, n);
  expect(interval[0]).toBeCloseTo(low, 6);
  expect(interval[1]).toBeCloseTo(high, 6);
});

test("a rate has Wilson's interval; scores between 0 and 1, or several attempts at a task, have none", () => {
  const rate = summarize(rowsOf(attempts(10, 10).map((reward) => [reward])));
  expect(rate.reward.ci95).toEqual([1, 1]);
  expect(rate.reward.wilson95?.[0]).toBeCloseTo(0.722467, 6);
  expect(summarize(rowsOf([[1], [0.5]])).reward.wilson95).toBeNull();
  expect(summarize(rowsOf([[1, 1], [0]])).reward.wilson95).toBeNull();
  expect(summarize(rowsOf([[1, null], [0]])).reward.wilson95).toEqual(wilson95(0.5, 2));
});
