import { extractBoxedAnswer } from "@rollcall/math-equivalence";
import { expect, test } from "vitest";
import { extractHashAnswer } from "../../../src/core/parsers/parser.ts";

test("the last box counts, and its braces are matched", () => {
  expect(extractBoxedAnswer("\\boxed{1} and \\boxed{\\frac{1}{2}}.")).toBe("\\frac{1}{2}");
});

test("without a closed box the whole text counts, or nothing if strict", () => {
  for (const text of ["no box", "\\boxed{never {closed}", ""]) {
    expect(extractBoxedAnswer(text)).toBe(text);
    expect(extractBoxedAnswer(text, true)).toBe("");
  }
});

test("an empty box is an empty answer", () => {
  expect(extractBoxedAnswer("\\boxed{}")).toBe("");
});

test("an unclosed last box hides an earlier closed one", () => {
  expect(extractBoxedAnswer("\\boxed{1} \\boxed{2", true)).toBe("");
});

test("the hash answer is the text after the first ####, up to the second", () => {
  expect(extractHashAnswer("so it is\n#### 18 ")).toBe("18");
  expect(extractHashAnswer("a #### b #### c")).toBe("b");
  expect(extractHashAnswer("####")).toBe("");
  expect(extractHashAnswer("no mark ")).toBe("no mark ");
});
