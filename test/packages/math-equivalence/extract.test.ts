import { expect, test } from "vitest";
import { extractMathAnswer, extractMathTarget } from "../../../packages/math-equivalence/extract.ts";

test.each([
  ["first \\boxed{1}, then \\boxed{2}", "2"],
  ["so \\boxed{\\frac{1}{\\sqrt{2}}} #### 9", "\\frac{1}{\\sqrt{2}}"],
  ["<think>\\boxed{3}</think> it is \\boxed{4}", "4"],
  ["<think>\\boxed{3}</think> it is 4", "4"],
  ["<think> \\boxed{3}", null],
  ["I said 7. <think>or 8", "7"],
  ["16 - 3 = 13\n#### 1,234\nDone.", "1,234"],
  ["#### 3\n#### 4", "4"],
  ["Thus $x=5$.", "x=5"],
  ["Thus $$x=5$$", "x=5"],
  ["Between $1$ and $2$", "2"],
  ["Answer: \\(\\frac{1}{2}\\)", "\\frac{1}{2}"],
  ["Therefore \\[ x^2 \\]", "x^2"],
  ["x+1", "x+1"],
  ["I thought long.\n**42**", "42"],
  ["Answer: -5", "-5"],
  ["So the answer is 42.", "42"],
  ["The probability is 3/4 as shown", "3/4"],
  ["It costs $1,600.50 in all", "1,600.50"],
  ["there are 5 apples and 6 pears", "6"],
  ["that makes -7 in all", "-7"],
  ["it is 50% of them", "50%"],
  ["no idea at all", null],
  ["", null],
])("the answer of %j is %j", (reply, answer) => {
  expect(extractMathAnswer(reply)).toBe(answer);
});

test.each([
  ["it is 4", null],
  ["#### 4", null],
  ["\\boxed{}", null],
  ["\\boxed{4", null],
  ["\\boxed{ 4 }", "4"],
])("where only a box counts the answer of %j is %j", (reply, answer) => {
  expect(extractMathAnswer(reply, true)).toBe(answer);
});

test.each([
  ["We get \\boxed{x+1}. QED", "x+1"],
  ["5 * 2 = 10\n#### 10", "10"],
  [" \\frac{1}{2} ", "\\frac{1}{2}"],
  ["7 apples or 8", "7 apples or 8"],
])("the target of the row's answer %j is %j", (answer, target) => {
  expect(extractMathTarget(answer)).toBe(target);
});

test("a last line copied from the question holds no answer, a part of it may", () => {
  const question = "Read this.\nWhat is $(1+i)^2$ for x?";
  expect(extractMathAnswer(" What is $(1+i)^2$ for x? ", false, question)).toBe("2");
  expect(extractMathAnswer("It is $(1+i)^2$", false, question)).toBe("(1+i)^2");
  expect(extractMathAnswer("x", false, question)).toBe("x");
});

test("hostile replies are read in linear work", () => {
  for (const piece of ["\\(", "$", "1,", "<think>", "\\boxed{", "####", "a ", ".5/", "\\boxed{}"]) {
    const reply = piece.repeat(20_000);
    expect(() => extractMathAnswer(reply)).not.toThrow();
  }
});
