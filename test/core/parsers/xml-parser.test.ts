import { expect, test, vi } from "vitest";
import { XMLParser } from "../../../src/core/parsers/xml-parser.ts";

const parser = new XMLParser(["reasoning", ["code", "answer"]]);

function form(fields: readonly string[], text: string): number {
  return new XMLParser(fields).formatReward([{ role: "assistant", content: text }]);
}

/** Characters that string searches scan while `run` runs. */
function charactersScanned(run: () => void): number {
  const original = String.prototype.indexOf;
  let scanned = 0;
  const spy = vi.spyOn(String.prototype, "indexOf").mockImplementation(function (this: string, sought, from = 0) {
    const found = original.call(this, sought, from);
    scanned += (found === -1 ? this.length : found) - from;
    return found;
  });
  try {
    run();
  } finally {
    spy.mockRestore();
  }
  return scanned;
}

test("R-xml-0: a parser without fields is refused", () => {
  expect(() => new XMLParser([])).toThrow("at least one field");
});

test.each([
  ["an open tag and spaces", (n: number) => `<answer>${" ".repeat(n)}`],
  ["open tags only", (n: number) => "<answer>".repeat(n / 8)],
  ["pairs", (n: number) => "<answer></answer>".repeat(n / 16)],
  ["close tags only", (n: number) => "</answer>".repeat(n / 8)],
])("R-xml-1: twice as much text of %s is at most twice the work", (_what, text) => {
  const work = (length: number) =>
    charactersScanned(() => {
      parser.parse(text(length));
      parser.parse(text(length), { last: true });
      parser.parseAnswer(text(length));
      parser.formatReward([{ role: "assistant", content: text(length) }]);
    });
  const single = work(50_000);
  expect(single).toBeGreaterThan(0);
  expect(work(100_000)).toBeLessThanOrEqual(2.01 * single);
});

test("R-xml-2: a field's name is literal text, not a pattern", () => {
  const dotted = new XMLParser(["a.b"]);
  expect(dotted.parse("<axb>no</axb>")).toEqual({ "a.b": null });
  expect(dotted.parse("<a.b>yes</a.b>")).toEqual({ "a.b": "yes" });
});

test("every alternative has its own result: null if absent, empty if empty", () => {
  expect(parser.parse("<reasoning></reasoning><answer>\n 4 </answer>")).toEqual({
    reasoning: "",
    code: null,
    answer: "4",
  });
});

test("the first match counts, or the last with the option", () => {
  const text = "<answer>1</answer><answer>2</answer><answer>3";
  expect(parser.parse(text)["answer"]).toBe("1");
  expect(parser.parse(text, { last: true })["answer"]).toBe("2");
});

test("tags are exact: no spaces, no other case, no nesting", () => {
  expect(parser.parse("<answer >1</answer><ANSWER>2</ANSWER>")["answer"]).toBeNull();
  expect(parser.parse("<answer>a<answer>b</answer>c</answer>")["answer"]).toBe("a<answer>b");
});

test("the answer of a text is its last match; of messages, the first match of the newest reply", () => {
  expect(parser.parseAnswer("<answer>1</answer><answer>2</answer>")).toBe("2");
  const completion = [
    { role: "assistant", content: "<answer>1</answer>" },
    { role: "assistant", content: "<answer>2</answer><answer>3</answer>" },
    { role: "user", content: "<answer>4</answer>" },
    { role: "assistant", content: "no tag" },
  ] as const;
  expect(parser.parseAnswer(completion)).toBe("2");
  expect(parser.parseAnswer([])).toBeNull();
});

test("an empty answer in the newest reply has precedence over an older answer", () => {
  const completion = [
    { role: "assistant", content: "<answer>1</answer>" },
    { role: "assistant", content: "<answer></answer>" },
  ] as const;
  expect(parser.parseAnswer(completion)).toBe("");
});

test("another field may be the answer; a name that is not a field gives no answer", () => {
  expect(new XMLParser(["guess"], "guess").parseAnswer("<guess>5</guess>")).toBe("5");
  expect(new XMLParser(["guess"]).parseAnswer("<answer>5</answer>")).toBeNull();
});

test("values are written under canonical tags, the canonical key first", () => {
  expect(parser.format({ reasoning: "r", answer: 4 })).toBe("<reasoning>\nr\n</reasoning>\n<code>\n4\n</code>");
  expect(parser.format({ reasoning: "r", code: "c", answer: "a" })).toContain("<code>\nc\n</code>");
});

test("a missing value, or null under the canonical key, is an error naming the choices", () => {
  expect(() => parser.format({ reasoning: "r" })).toThrow("code, answer");
  expect(() => parser.format({ reasoning: "r", code: null, answer: "a" })).toThrow("code, answer");
});

test("the description of the format shows alternatives in brackets", () => {
  expect(parser.formatDescription()).toBe(
    "<reasoning>\n...\n</reasoning>\n<[ code | answer ]>\n...\n</[ code | answer ]>",
  );
});

test("fields are named by their first tag; an alternative may repeat another field's name", () => {
  expect(new XMLParser(["a", ["b", "a"]]).fields).toEqual(["a", "b"]);
});

test.each([
  ["two fields of one name", ["a", "a"]],
  ["a field without tags", [[]]],
  ["an empty tag", [""]],
])("%s is refused", (_what, fields) => {
  expect(() => new XMLParser(fields)).toThrow();
});

test.each([
  ["  <reasoning>r</reasoning>\n<answer>4</answer>  ", 1],
  ["hi <reasoning>r</reasoning><answer>4</answer>", 0.8],
  ["<reasoning>r</reasoning><answer>4", 0.8],
  ["<answer>4</answer>", 0.6],
  ["<reasoning>r", 0.4],
  ["", 0.2],
])("the format of %j scores %d", (text, worth) => {
  expect(form(["reasoning", "answer"], text)).toBeCloseTo(worth, 12);
});

test("the format score is the mean over replies, and 0 without a reply", () => {
  const replies = ["<reasoning>r</reasoning><answer>4</answer>", null];
  const completion = replies.map((content) => ({ role: "assistant", content }) as const);
  expect(new XMLParser(["reasoning", "answer"]).formatReward(completion)).toBeCloseTo(0.6, 12);
  expect(parser.formatReward([])).toBe(0);
});

test("a text by itself has no reply, so its format score is always 0", () => {
  const text = "<reasoning>r</reasoning><code>x</code>";
  expect(parser.formatReward(text)).toBe(0);
  expect(parser.formatReward([{ role: "assistant", content: text }])).toBe(1);
});
