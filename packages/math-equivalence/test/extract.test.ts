import { expect, test } from "vitest";
import { extractMarkedAnswer, extractMathAnswer, extractMathTarget } from "../extract.ts";

test.each([
  ["first \\boxed{1}, then \\boxed{2}", "2"],
  ["so \\boxed{\\frac{1}{\\sqrt{2}}} #### 9", "\\frac{1}{\\sqrt{2}}"],
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
])("if only a box counts the answer of %j is %j", (reply, answer) => {
  expect(extractMathAnswer(reply, true)).toBe(answer);
});

test.each([
  ["We get \\boxed{x+1}. QED", "x+1"],
  ["5 * 2 = 10\n#### 10", "10"],
  [" \\frac{1}{2} ", "\\frac{1}{2}"],
  ["7 apples or 8", "7 apples or 8"],
  ["#### the cat sat on it", "the cat sat on it"],
  ["#### Solution\nWe add.\n#### **7**", "7"],
  ["<answer>7</answer>", "7"],
])("the target of the row's answer %j is %j", (answer, target) => {
  expect(extractMathTarget(answer)).toBe(target);
});

test("a last line copied from the question is not an answer, a part of it may be", () => {
  const question = "Read this.\nWhat is $(1+i)^2$ for x?";
  expect(extractMathAnswer(" What is $(1+i)^2$ for x? ", false, question)).toBeNull();
  expect(extractMathAnswer("It is $(1+i)^2$", false, question)).toBe("(1+i)^2");
  expect(extractMathAnswer("x", false, question)).toBe("x");
});

test.each([
  ["He buys 4 pens at $3 apiece and pays $12.", "12"],
  ["Of the $450,000 she spent $125,000 and kept $325,000.", "325,000"],
  ["Tickets went up from US$8 to $11.", "11"],
  ["She pays \\$6 twice, hence \\$12.", "12"],
  ["Each one costs $2.50, so three of them cost $7.50", "7.50"],
  ["He adds $3 + $2 = $5 to the till in all.", "5"],
  ["With $n = 9$ eggs at a time she earns $18.", "18"],
  ["Therefore $40", "40"],
  ["That leaves him with -$40.", "-\\$40"],
])("dollar signs before amounts delimit no formula in %j", (reply, answer) => {
  expect(extractMathAnswer(reply)).toMatch(new RegExp(`^\\$?${answer}\\.?$`));
});

test.each([
  ["At $2 each, nine of them cost $9 \\times 2 = 18$.", "9 \\times 2 = 18"],
  ["Nine eggs at $2 are $18$ dollars.", "18"],
  ["We find $ y = 8 $.", "y = 8"],
  ["So $p + q = 1$ and hence $p = \\frac{1}{3}$.", "p = \\frac{1}{3}"],
  ["He has $5, and she has $x$ of them.", "x"],
  ["The speed is $60 \\text{ km per hour}$.", "60 \\text{ km per hour}"],
  ["It is\n\\[\nx = 5\n\\]", "x = 5"],
  ["It is\n$$\nx = 5\n$$", "x = 5"],
])("the formula in the last line of %j is %j", (reply, answer) => {
  expect(extractMathAnswer(reply)).toBe(answer);
});

test.each([
  ["#### **12**", "12"],
  ["##### _12_", "12"],
  ["#### 12 ####", "12"],
  ["####\n12", "12"],
  ["#### Final answer\n\n12", "12"],
  ["#### Answer: $12$\nAll 3 steps are above.", "12"],
  ["#### Final answer\n\nHe needs **12** of them.", "12"],
  ["#### Step 1\nWe add 4 and 5.\n\n#### Step 2\nWe have 12 of them.", "12"],
  ["#### 12\n\n#### Explanation\nWe add 5 and 7.", "12"],
  ["#### 1. Add\n5 + 7\n#### 2. Conclude\nThere are 12 of them.", "12"],
  ["#### Schritt 1\n5 + 7\n#### Schritt 2\n12", "12"],
  ["There are 12 of them.\n\n#### Step 3", "12"],
  ["### Final Answer\n\n**12**\n\nAsk me if any of the 2 steps is unclear.", "12"],
  ["**Final Answer**\n\\[\n12\n\\]", "12"],
  ["**Answer:** 12\n\nThis took 3 steps.", "12"],
  ["The answer is 12.\n\nWe used 2 rules for it.", "12"],
  ["Answer: we go step by step. 5 + 5 = 10.\nThen 10 + 2 = 12.", "10 + 2 = 12."],
  ["Thus, all in all w = 1 1/2 / 1/2 = 12 parts.", "12"],
  ["The answer is 12, since 5 + 7 gives it.\nAsk me about the 2 steps.", "12"],
  ["#### Étape 1 : compter\n5 et 7\n#### Étape 2 : ajouter\n12", "12"],
  ["#### Final answer\n> 12", "12"],
  ["It's 12", "12"],
  ["Step 1: 3 + 4 = 7\nStep 2: 7 + 5 = 12", "7 + 5 = 12"],
  ["It is 2**3 in all of\n2**3", "2**3"],
])("with marks, headings and bold letters, the answer of %j is %j", (reply, answer) => {
  expect(extractMathAnswer(reply)).toBe(answer);
});

test.each([
  ["<answer>12</answer>", "12"],
  ["<Answer>\n$x = 12$\n</ANSWER> after 3 steps", "$x = 12$"],
  ["<answer>11</answer>, or rather <answer>12</answer>", "12"],
  ["<answer>12</answer>, in the tags <answer></answer> you asked for", "12"],
  ["so it is <answer>12", "12"],
  ["<final_answer>**12**</final_answer>\nin 3 steps", "12"],
  ["<answer>There are 12.</answer> 13", "12"],
  ["<answer>5, 7</answer>", "5, 7"],
  ["<answer>11</answer> \\boxed{12}", "12"],
])("the tagged answer of %j is %j", (reply, answer) => {
  expect(extractMathAnswer(reply)).toBe(answer);
});

test.each([
  ["\\boxed{12} goes into \\boxed{}", "12"],
  ["\\boxed{12}, as \\boxed{\\text{ }}", "12"],
  ["\\boxed{12}, in the form \\boxed{...}", "12"],
  ["\\boxed{12} and \\boxed{13", "12"],
  ["\\boxed {12}", "12"],
  ["\\boxed{\\left\\{x : x > 1\\right.}", "\\left\\{x : x > 1\\right."],
])("a box that is blank or never closes hides no other: the answer of %j is %j", (reply, answer) => {
  expect(extractMathAnswer(reply, true)).toBe(answer);
  expect(extractMarkedAnswer(reply)).toBe(answer);
});

test.each([
  ["it is 12", null],
  ["Answer: 12", null],
  ["#### Step 2\n12", null],
  ["#### 12\n#### Check", "12"],
  ["#### Final answer: 12", "12"],
  ["#### 12 pens in all", "12 pens in all"],
])("if only a box or a mark counts the answer of %j is %j", (reply, answer) => {
  expect(extractMarkedAnswer(reply)).toBe(answer);
});

const HOSTILE = [
  "Answer:\n",
  "#### \n",
  "#### Step 1\n",
  "*a",
  "_a",
  "**a ",
  "`",
  "<answer>",
  "<answer",
  "$5 ",
  "$$\n",
];

test("hostile replies are read in linear work", () => {
  for (const piece of ["\\(", "$", "1,", "\\boxed{", "####", "a ", ".5/", "\\boxed{}", ...HOSTILE]) {
    const reply = piece.repeat(20_000);
    expect(() => extractMathAnswer(reply)).not.toThrow();
  }
});
