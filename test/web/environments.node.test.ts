import { expect, test } from "vitest";
import { splitMarkdown } from "../../src/web/pages/environments/split-markdown.ts";
import { readValidation } from "../../src/web/pages/environments/validation-record.ts";

const text = (parts: readonly string[]) => parts.join("").replaceAll(/\s+/g, "");

test("a Markdown text is cut between its blocks, and never within code or an item of a list", () => {
  const code = `\`\`\`js\nfirst\n\n~~~\n\n\`\`\`\`no\n\nlast\n\`\`\`\n`;
  const list = "- an item\n\n  its second paragraph\n";
  const whole = `# Title\n\nOne.\r\n\r\nTwo.\n\n${code}\n${list}\nEnd.`;
  expect(splitMarkdown(whole, 1)).toEqual(["# Title\n\n", "One.\n\n", "Two.\n\n", `${code}\n`, `${list}\n`, "End.\n"]);
  expect(splitMarkdown(whole, 10_000)).toHaveLength(1);
  for (const most of [1, 20, 60, 100]) {
    const parts = splitMarkdown(whole, most);
    expect(text(parts)).toBe(text([whole]));
    expect(parts.every((part) => part.length <= Math.max(most, code.length + 1))).toBe(true);
  }
});

test("a block of code that is not closed keeps the rest of the text, and an empty text has no parts", () => {
  expect(splitMarkdown("~~~\na\n\nb\n\n```\n\nc", 1)).toEqual(["~~~\na\n\nb\n\n```\n\nc\n"]);
  expect(splitMarkdown("\n\n \n", 10)).toEqual([]);
});

test("a record of a validation is read, and one of another shape is not guessed", () => {
  const record = {
    ...{ ok: false, examples: 3, equal_rows: 1, deterministic: null, rewards: { least: 1, most: 1 } },
    checks: [
      { name: "rewards", status: "error", message: "all equal" },
      { name: "new", status: "unheard of", message: 7 },
      { name: "judges", status: "unchecked", message: "never asked" },
    ],
    judgements: [{ judge: "default", question: 1, judgement: "right", reward: 1, error: null }],
    policies: { constant: { mean: 1, n: 3 }, gold: { mean: null, n: 0 } },
    failed_functions: [{ name: "right", count: 2, first: "no digits" }],
  };
  expect(readValidation(record)).toEqual({
    ...{ ok: false, examples: 3, equalRows: 1, deterministic: null, callsPerTurn: null },
    rewards: { least: 1, most: 1 },
    checks: [
      { name: "rewards", status: "error", message: "all equal" },
      { name: "new", status: "error", message: "" },
      { name: "judges", status: "unchecked", message: "never asked" },
    ],
    unchecked: ["judges"],
    judgements: [{ judge: "default", judgement: "right", reward: 1 }],
    policies: [
      { name: "constant", mean: 1, n: 3 },
      { name: "gold", mean: null, n: 0 },
    ],
    failed: [{ name: "right", count: 2, first: "no digits" }],
  });
  expect(readValidation({})).toBeNull();
  expect(readValidation({ ok: true, examples: 1, checks: {} })).toBeNull();
});
