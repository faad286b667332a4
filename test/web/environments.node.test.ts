import { expect, test } from "vitest";
import type { ModelResults } from "../../src/contract/environment-results.ts";
import { comparableResults } from "../../src/web/pages/environments/ranks.ts";
import { splitMarkdown } from "../../src/web/pages/environments/split-markdown.ts";
import { readValidation } from "../../src/web/pages/environments/validation-record.ts";

interface Given {
  readonly ci95?: readonly [number, number] | null;
  readonly version?: string;
  readonly args?: ModelResults["environment_args"];
  readonly changes?: Partial<ModelResults>;
  readonly id?: string;
}

function row(model: string, given: Given, measured = true) {
  const { ci95 = null, version = "1.0.0", args = {}, id = model, changes } = given;
  return {
    ...{ model, version, environment_args: args, digest: "sha256:1", judges: {}, dataset: null, latest: [{ id }] },
    measured: measured ? { id, reward: { ci95, wilson95: null } } : null,
    ...changes,
  } as unknown as ModelResults;
}

const placesOf = (rows: readonly ModelResults[]) =>
  comparableResults(rows, "1.0.0").map((table) => table.rows.map(({ row: { model }, places }) => [model, places]));

test("models whose intervals overlap share their places, and one without an interval may have any", () => {
  const rows = [row("a", { ci95: [0.8, 0.9] }), row("b", { ci95: [0.4, 0.7] }), row("c", { ci95: [0.5, 0.6] })];
  expect(placesOf(rows)).toEqual([
    [
      ["a", [1, 1]],
      ["b", [2, 3]],
      ["c", [2, 3]],
    ],
  ]);
  expect(placesOf([...rows, row("one task", {}), row("no score", {}, false)])[0]).toEqual([
    ["a", [1, 2]],
    ["b", [2, 4]],
    ["c", [2, 4]],
    ["one task", [1, 4]],
    ["no score", null],
  ]);
});

test("equal rewards of a few tasks have an interval of no width, which makes no place certain", () => {
  const rows = [row("two equal tasks", { ci95: [1, 1] }), row("many tasks", { ci95: [0.95, 0.99] })];
  expect(placesOf(rows)).toEqual([
    [
      ["two equal tasks", [1, 2]],
      ["many tasks", [1, 2]],
    ],
  ]);
});

test("only rows of the same version and arguments are in one table, that of the shown version first", () => {
  const rows = [
    row("a", { version: "2.0.0" }),
    row("b", { args: { x: 1, y: 2 } }),
    row("c", { args: { y: 2, x: 1 } }),
    row("d", {}),
    ...[row("e", { args: null }), row("f", { args: null })],
  ];
  const models = comparableResults(rows, "1.0.0").map((table) => table.rows.map(({ row: { model } }) => model));
  expect(models).toEqual([["b", "c"], ["d"], ["e"], ["f"], ["a"]]);
});

test("results of other code, judges or datasets are in tables of their own", () => {
  const rows = [
    row("a", {}),
    row("b", { changes: { judges: { default: { model: "large", sampling: {} } } } }),
    row("c", { changes: { judges: { default: { model: "small", sampling: {} } } } }),
    row("d", { changes: { dataset: "ds_1" } }),
    row("e", { changes: { judges: null } }),
    row("f", { changes: { judges: null } }),
    row("g", { changes: { weights_of: "run_1" } }),
  ];
  const tablesOf = (all: readonly ModelResults[]) =>
    comparableResults(all, "1.0.0").map(({ rows: ranked, rebuilt }) => [ranked.map((one) => one.row.model), rebuilt]);
  expect(tablesOf(rows).map(([models]) => models)).toEqual([["a", "g"], ["b"], ["c"], ["d"], ["e"], ["f"]]);
  const rebuilt = [row("h", { changes: { digest: "sha256:2" } }), row("a", {}), row("i", { version: "2.0.0" })];
  expect(tablesOf(rebuilt)).toEqual([
    [["h"], true],
    [["a"], true],
    [["i"], false],
  ]);
});

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
    ],
    policies: { constant: { mean: 1, n: 3 }, gold: { mean: null, n: 0 } },
    failed_functions: [{ name: "right", count: 2, first: "no digits" }],
  };
  expect(readValidation(record)).toEqual({
    ...{ ok: false, examples: 3, equalRows: 1, deterministic: null, callsPerTurn: null },
    rewards: { least: 1, most: 1 },
    checks: [
      { name: "rewards", status: "error", message: "all equal" },
      { name: "new", status: "error", message: "" },
    ],
    policies: [
      { name: "constant", mean: 1, n: 3 },
      { name: "gold", mean: null, n: 0 },
    ],
    failed: [{ name: "right", count: 2, first: "no digits" }],
  });
  expect(readValidation({})).toBeNull();
  expect(readValidation({ ok: true, examples: 1, checks: {} })).toBeNull();
});
