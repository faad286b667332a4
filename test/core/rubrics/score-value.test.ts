import { expect, test } from "vitest";
import { causeOf, NoScoreError, toScore } from "../../../src/core/rubrics/score-value.ts";

function refusalOf(value: unknown): unknown {
  try {
    return toScore(value);
  } catch (thrown) {
    return thrown;
  }
}

test.each([
  [0.5, 0.5],
  [true, 1],
  [false, 0],
  ["0.7", 0.7],
  [" -1e2\n", -100],
  [".5", 0.5],
  ["2.", 2],
])("%j is the score %d", (value, score) => {
  expect(toScore(value)).toBe(score);
});

test.each([null, undefined, "", "one", "0x10", "1_000", "Infinity", "NaN", "1 2", {}, [1], 1n])(
  "%s is not a score",
  (value) => {
    expect(refusalOf(value)).toBeInstanceOf(NoScoreError);
    expect(causeOf(refusalOf(value))).toBe("scorer");
  },
);

test.each([Number.NaN, Infinity, -Infinity, "1e999"])("%s is a score that is not finite", (value) => {
  expect(causeOf(refusalOf(value))).toBe("non_finite");
});

test("any other error belongs to the scorer", () => {
  expect(causeOf(new Error("boom"))).toBe("scorer");
});
