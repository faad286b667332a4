import { expect, test } from "vitest";
import { cutTo, displayWidth, padTo, wrap } from "../../src/cli/terminal/text.ts";

test.each([
  ["abc", 3],
  ["", 0],
  ["漢字", 4],
  ["é", 1],
  ["e\u0301", 1],
  ["👍🏽", 2],
  ["\x1b[31mred\x1b[0m", 3],
])("%j takes its columns", (text, width) => {
  expect(displayWidth(text)).toBe(width);
});

test("text is cut with a mark and padded to a width", () => {
  expect([cutTo("calculator", 6), cutTo("calculator", 10), cutTo("漢字漢", 4), cutTo("ab", 0)]).toEqual([
    "calcu…",
    "calculator",
    "漢…",
    "",
  ]);
  expect(padTo("漢", 4)).toBe("漢  ");
});

test("lines break at spaces, long words anywhere, and the text's own lines stay", () => {
  expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrap("abcdefghij kl", 4)).toEqual(["abcd", "efgh", "ij", "kl"]);
  expect(wrap("a\n\n  b", 10)).toEqual(["a", "", "  b"]);
  expect(wrap("漢字", 1)).toEqual(["漢", "字"]);
});
