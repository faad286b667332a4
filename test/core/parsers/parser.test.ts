import { extractBoxedAnswer } from "@rollcall/math-equivalence";
import { expect, test } from "vitest";
import { Parser } from "../../../src/core/parsers/parser.ts";

test("without an extractor the whole text is the answer", () => {
  expect(new Parser().parseAnswer("s")).toBe("s");
  expect(new Parser().parse("s")).toBe("s");
});

test("the last reply counts, whatever follows it", () => {
  const completion = [
    { role: "assistant", content: "first" },
    { role: "assistant", content: "\\boxed{2}" },
    { role: "tool", content: "t", tool_call_id: "1" },
    { role: "user", content: "u" },
  ] as const;
  expect(new Parser(extractBoxedAnswer).parseAnswer(completion)).toBe("2");
});

test("a reply without content is an empty text; without a reply there is no answer", () => {
  expect(new Parser().parseAnswer([{ role: "assistant", content: null }])).toBe("");
  expect(new Parser().parseAnswer([{ role: "user", content: "u" }])).toBeNull();
  expect(new Parser().parseAnswer([])).toBeNull();
});

test("of content in parts, the texts are joined with a space and trimmed", () => {
  const image = { type: "image_url", image_url: { url: "https://a.test/b.png" } };
  const content = [{ type: "text", text: " a " }, image, { type: "text", text: "b" }];
  expect(new Parser().parseAnswer([{ role: "assistant", content }])).toBe("a  b");
  expect(new Parser().parseAnswer([{ role: "assistant", content: [image] }])).toBe("");
});

test("the base parser accepts any format", () => {
  expect(new Parser().formatReward([])).toBe(1);
});
