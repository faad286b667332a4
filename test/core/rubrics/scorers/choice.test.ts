import { expect, test } from "vitest";
import { scorers } from "../../../../src/core/rubrics/scorers/scorers.ts";

const LETTERS = "ABCDEFGHIJ";

/** The letters of which a reply scores 1. */
function chosen(reply: string): string {
  return [...LETTERS].filter((letter) => scorers.choice.score(reply, letter) === 1).join("");
}

test.each([
  // The letter alone.
  ["c", "C"],
  ["C)", "C"],
  ["(c)", "C"],
  ["C.", "C"],
  ["**C**", "C"],
  ["__C__", "C"],
  ["`C`", "C"],
  ['"C"', "C"],
  ["Ｃ", "C"],
  ["（ｃ）", "C"],
  ["\u200bC\u00a0", "C"],
  ["option c", "C"],
  ["Answer choice C", "C"],
  // The letter with its text.
  ["C: Oslo", "C"],
  ["C - Oslo", "C"],
  ["**C. Oslo**", "C"],
  ["(C) Oslo, for (B) is in Sweden", "C"],
  ["C, because B is in Sweden", "C"],
  ["C; B is in Sweden", "C"],
  ["C\nB is in Sweden.", "C"],
  // Boxes and tags.
  ["\\boxed{c}", "C"],
  ["\\boxed{\\textbf{(C)}\\ 34}", "C"],
  ["\\boxed{\\mathrm{C}}", "C"],
  ["$\\boxed{\\text{Option C}}$", "C"],
  ["\\boxed{C} in the form \\boxed{}", "C"],
  ["<answer>C. Oslo</answer>", "C"],
  ["<Answer>\nThe answer is c.\n</Answer>", "C"],
  // Decisions.
  ["answer is (c)", "C"],
  ["**Answer**: C", "C"],
  ["Final answer: **(C)**", "C"],
  ["ANSWER: OPTION C", "C"],
  ["The right choice is C, not B.", "C"],
  ["The best option for a trip to B is therefore C.", "C"],
  ["The answer should be option “C”.", "C"],
  ["The answer is $C$.", "C"],
  ["The correct answer is A because a bus drives.", "A"],
  ["I would go with option C.", "C"],
  ["Let us choose C.", "C"],
  ["The answer, then, would most likely be C", "C"],
  ["答案是Ｃ。", "C"],
  ["正确答案：C", "C"],
  ["The answer is B? No, the answer is C.", "C"],
  ["The answer is C. I am sure that B is in Sweden.", "C"],
  // What is said of a letter.
  ["Of the four, option C is correct.", "C"],
  ["C (Oslo) is clearly the right answer.", "C"],
  // Letters at the end.
  ["Oslo is in Norway.\n\nC. Oslo", "C"],
  ["Oslo is in Norway.\n**C**", "C"],
  ["A. Bergen\nB. Malmö\nC. Oslo\n\nc", "C"],
  ["Oslo is in Norway, so it is C.", "C"],
  ["Oslo is in Norway. Therefore, C.", "C"],
  ["Norway -> C", "C"],
  ["I think it's C because Oslo is in Norway.", "C"],
])("in %j the choice is %s", (reply, letter) => {
  expect(chosen(reply)).toBe(letter);
});

test.each([
  "",
  "Both cities are far away.",
  "Based on the map, it is on the left.",
  "A bus drives.",
  "I think so.",
  "I'd say it is far.",
  "Answer: I think it is far",
  "The answer is a bus.",
  "The answer is A bus.",
  "The answer is e.g. a bus",
  "The answer is not C.",
  "I would not pick C.",
  "Is the answer C?",
  "Option C is wrong.",
  "Neither B nor C is correct.",
  "Vitamin C helps.",
  "B or C",
  "(B) and (C)",
  "Answer: B, C",
  "The answer is either B or C.",
  "\\boxed{B, C}",
  "<answer>B and C</answer>",
  "It may be (B) or (C).",
])("in %j there is no choice", (reply) => {
  expect(chosen(reply)).toBe("");
});

test("only letters that there are can be chosen", () => {
  const score = (reply: string) => scorers.choice.score(reply, "B", { choices: "ABC" });
  expect(score("B\n(D)")).toBe(1);
  expect(score("The answer is B. The answer is X.")).toBe(1);
});

test("hostile replies are read in linear work", () => {
  const pieces = [
    "A ",
    "(A) ",
    "A or ",
    "answer to ",
    "option is ",
    "A is correct ",
    "**A",
    "\\text",
    "<answer>",
    "I ",
    "\n",
  ];
  for (const piece of pieces) expect(() => scorers.choice.score(piece.repeat(50_000), "B")).not.toThrow();
});
