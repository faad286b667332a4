import { expect, test } from "vitest";
import { MaybeThinkParser, ThinkParser } from "../../../src/core/parsers/parser.ts";

const strict = new ThinkParser();
const lenient = new MaybeThinkParser();

function form(text: string): number {
  return strict.formatReward([{ role: "assistant", content: text }]);
}

test.each([
  ["<think>a</think> b ", "b", "b"],
  ["a</think>b", "b", "b"],
  ["<think>a</think>b<think>c</think>d", "d", "d"],
  [" no ", "", "no"],
  ["<think>a", "", "<think>a"],
])("%j gives %j strictly and %j leniently", (text, strictly, leniently) => {
  expect(strict.parse(text)).toBe(strictly);
  expect(lenient.parse(text)).toBe(leniently);
});

test.each([
  ["<think>a</think>b", 1],
  [" \n<think>a</think> ", 1],
  ["<think>a</think>", 0],
  ["x<think>a</think>b", 0],
  ["<think>a</think>b</think>c", 0],
  ["<think><think>a</think>b", 0],
  ["no", 0],
])("the format of %j scores %d", (text, worth) => {
  expect(form(text)).toBe(worth);
});

test("the format score is the mean over replies, and 0 without a reply", () => {
  const completion = [
    { role: "assistant", content: "<think>a</think>b" },
    { role: "user", content: "u" },
    { role: "assistant", content: "bad" },
  ] as const;
  expect(strict.formatReward(completion)).toBe(0.5);
  expect(strict.formatReward([])).toBe(0);
  expect(lenient.formatReward([])).toBe(1);
});

test("an extractor gets the text after the thinking", () => {
  const parser = new ThinkParser((text) => (text.startsWith("is ") ? text.slice(3) : null));
  expect(parser.parseAnswer("<think>a</think> is 4")).toBe("4");
  expect(parser.parseAnswer("<think>a</think> 4")).toBeNull();
});
