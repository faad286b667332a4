import { expect, test } from "vitest";
import { comparableResults, countOpen, placeText, settingsOf } from "../../src/contract/comparable-results.ts";
import type { ModelResults } from "../../src/contract/environment-results.ts";

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

test("a table is described by its arguments and judges, and by its digest only if the version has several", () => {
  const judge = { default: { model: "large", sampling: { temperature: 0 } } };
  const rows = [
    row("a", { args: { max: 9 }, changes: { judges: judge } }),
    row("b", { args: null, changes: { judges: null, digest: `sha256:${"f".repeat(64)}` } }),
    row("c", { version: "2.0.0" }),
  ];
  expect(comparableResults(rows, "").map(settingsOf)).toEqual([
    ["code sha256:1", '{"max":9}', 'judge default: large {"temperature":0}'],
    ["code sha256:ffffffffffff", "with long arguments", "with long settings of judges"],
    [],
  ]);
});

test("a place is a number or a range, and what is not ended is counted from what was planned", () => {
  expect([placeText([1, 1]), placeText([1, 3]), placeText(null)]).toEqual(["1", "1 to 3", null]);
  const ended = { scored: 5, failed: 2, unscored: 1, cancelled: 1 };
  expect(countOpen({ planned: 12, ...ended })).toBe(3);
  expect(countOpen({ planned: 8, ...ended })).toBe(0);
});
