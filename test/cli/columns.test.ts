import { expect, test } from "vitest";
import { columns } from "../../src/cli/terminal/table.ts";
import { terminal } from "../../src/cli/terminal/terminal.ts";
import { displayWidth } from "../../src/cli/terminal/text.ts";
import { rule } from "../../src/cli/terminal/transcript.ts";

const HEADER = ["name", "reward"];
const ROWS = [
  ["calculator", "0.5"],
  ["gsm8k", ""],
];
const TABLE = `name         reward
──────────   ──────
calculator   0.5
gsm8k`;

test("a table that fits is printed in columns", () => {
  expect(columns(HEADER, ROWS)).toBe(TABLE);
  expect(columns(HEADER, ROWS, 19)).toBe(TABLE);
});

test("a table that a terminal would break is printed row by row, without empty fields", () => {
  expect(columns(HEADER, ROWS, 18)).toBe("name    calculator\nreward  0.5\n\nname  gsm8k");
});

test("a long text is cut in a column, and complete on its own line", () => {
  const rows = [["経験経験経験", "0.5"]];
  const widest = { name: 6 };
  expect(columns(HEADER, rows, 80, widest)).toBe("name    reward\n─────   ──────\n経験…   0.5");
  expect(columns(HEADER, rows, 12, widest)).toBe("name    経験経験経験\nreward  0.5");
});

test("a table may be as wide as its terminal, and has no limit elsewhere", () => {
  const stream = (isTTY: boolean) => ({ isTTY, columns: 60, write: () => true, on: () => 0 });
  const room = (stdout: boolean, json: boolean) =>
    terminal(json, { stdout: stream(stdout), stderr: stream(true), env: {}, on: () => 0 }).room;
  expect([room(true, false), room(false, false), room(false, true)]).toEqual([60, Number.POSITIVE_INFINITY, 60]);
});

test.each([80, 50, 30])("a rule of a transcript is no wider than %i columns", (width) => {
  const page = { width, paint: (_style: unknown, text: string) => text };
  const line = rule("Turn 2", "20 + 7 tokens · 34 ms · tool_calls · policy base", page);
  expect(displayWidth(line)).toBe(width);
});
