import { expect, test } from "vitest";
import { expectedOf, type PastRun } from "../../../src/core/costs/expected.ts";

const RUN: PastRun = {
  ...{ rollouts: 10, scored: 8, turns: 30, prompt_tokens: 4000, cached_tokens: 1000, completion_tokens: 2000 },
  judged: { prompt_tokens: 3000, completion_tokens: 500 },
  judge_micros: 50,
};

test("the expectation is the mean of all rollouts, between the smallest and the largest mean of a run", () => {
  const past = [RUN, { ...RUN, rollouts: 30, judge_micros: 450 }];
  expect(expectedOf(past, 100, ({ judge_micros }) => judge_micros)).toEqual({ expected: 1250, low: 500, high: 1500 });
});

test("one run gives no range, and no run gives no expectation", () => {
  const judges = ({ judge_micros }: PastRun) => judge_micros;
  expect(expectedOf([RUN], 100, judges)).toEqual({ expected: 500, low: null, high: null });
  expect(expectedOf([], 100, judges)).toBeNull();
  expect(expectedOf([{ ...RUN, judge_micros: null }], 100, judges)).toBeNull();
  expect(expectedOf([RUN], null, judges)).toBeNull();
});
