import { expect, test } from "vitest";
import { allSeen, quotedText, ShownText, WebAddress } from "../../src/contract/shown-text.ts";

test.each([
  "\u0000",
  "\t",
  "\n",
  "\u001b[31m",
  "\u007f",
  "\u0085",
  "\ud800",
  "\udc00",
  "\u061c",
  "\u200e",
  "\u202a",
  "\u202e",
  "\u2029",
  "\u2069",
])("%j is refused in texts that people are shown", (mark) => {
  expect(ShownText.safeParse(`a${mark}b`).success).toBe(false);
  expect(WebAddress.safeParse(`http://gpu.example/a${mark}b`).success).toBe(false);
  expect(quotedText(`a${mark}b`, 100)).toMatch(/^a\\u[0-9a-f]{4}[ -~]*b$/);
});

test("every script and its joiners are accepted", () => {
  for (const text of ["", "naïve №1", "経験", "سلام", "क्‍ष", "👩‍🔬", "a\u00a0b"]) {
    expect(ShownText.parse(text)).toBe(text);
    expect(quotedText(text, 100)).toBe(text);
  }
});

test.each([
  "http://gpu.example/v1",
  "HTTPS://gpu.example:8443",
  "http://[::1]:8000/v1?key=a#b",
  "http://münchen.example/v1",
])("%s is an address", (address) => {
  expect(WebAddress.parse(address)).toBe(address);
});

test.each([
  "gpu.example/v1",
  "ftp://gpu.example",
  "http://",
  "http://a b/",
  " http://gpu.example",
  "http://gpu.example/ ",
  "http://u:p@gpu.example",
  "http:\\\\gpu.example",
  "http://gpu.example\\@10.0.0.1/",
  "javascript:alert(1)",
  "http://[::1",
])("%j is not an address", (address) => {
  expect(WebAddress.safeParse(address).success).toBe(false);
});

test("a quoted text is cut where it becomes unreadable", () => {
  expect(quotedText(`no ${"x".repeat(101)} there`, 1000)).toBe(`no ${"x".repeat(100)}… there`);
  expect(quotedText("word ".repeat(100), 20)).toBe("word word word word …");
  expect(quotedText("x".repeat(1_000_000), 1000)).toBe(`${"x".repeat(100)}…`);
});

test("a long text without spaces is shown whole, with invisible characters escaped", () => {
  expect(allSeen(`${"経".repeat(120)}\u202e`)).toBe(`${"経".repeat(120)}\\u202e`);
});
