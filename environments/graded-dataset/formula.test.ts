import { expect, test } from "vitest";
import { parseFormula } from "./formula.ts";

const values = new Map([
  ["a", 0.5],
  ["b_2", 3],
]);

test.each([
  ["1 + 2 * 3", 7],
  ["(1 + 2) * 3", 9],
  ["8 / 4 / 2", 1],
  ["10 - 4 - 3", 3],
  ["2 ^ 3 ^ 2", 512],
  ["-2 ^ 2", -4],
  ["2 ^ -1", 0.5],
  ["--a", 0.5],
  [".5e1 + 1.", 6],
  ["min(a, b_2, 1) + max(a, b_2)", 3.5],
  ["abs(-a) + floor(2.7) + ceil(0.2)", 3.5],
  ["exp(log(b_2)) + sqrt(4)", 5],
])("%s is %d", (text, value) => {
  expect(parseFormula(text).evaluate(values)).toBeCloseTo(value, 12);
});

test("a formula lists the graders it names, and without a value it is not finite", () => {
  expect(parseFormula("a + min(b_2, a)").names).toEqual(["a", "b_2"]);
  expect(parseFormula("1 / 0").evaluate(values)).toBe(Infinity);
  expect(parseFormula("log(0 - 1)").evaluate(values)).toBeNaN();
});

test.each([
  ["", "ends too early"],
  ["a b_2", "has b_2 where none can stand"],
  ["(a", "ends too early: ) is missing"],
  ["sqrt(1, 2)", "sqrt takes one number"],
  ["max()", "has ) where none can stand"],
  ["a; b", "cannot be read from ; b"],
  ["process.exit(1)", "cannot be read from .exit(1)"],
  ["(".repeat(60), "is nested more than 50 deep"],
  ["-".repeat(60), "is nested more than 50 deep"],
  ["1+".repeat(2000), "has over 2000 characters"],
])("%j is refused: %s", (text, why) => {
  expect(() => parseFormula(text)).toThrow(why);
});
