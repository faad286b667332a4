/** The bill in docs/cost.md equals the output of `npm run bench:cost`, and every line of it is count × price. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { costTables } from "../../bench/bill.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/cost.md"), "utf8");
const UNITS: Readonly<Record<string, number>> = { million: 1e6, "GB-month": 1 };

/** Rows of the bills: name, price, and a count and its dollars for each kind of turns. */
function billed(): string[][] {
  const rows = PAGE.split("\n").map((line) => line.split("|").map((cell) => cell.trim().replaceAll("*", "")));
  return rows.filter((cells) => cells.length === 10 && / \/ /.test(cells[2] ?? "")).map((cells) => cells.slice(1, -1));
}

test("the page contains the tables that are printed", () => {
  for (const table of costTables().split("\n\n")) expect(PAGE).toContain(table);
});

test("every line of the bills is count × price", () => {
  const lines = billed();
  expect(lines.length).toBeGreaterThan(30);
  for (const [what, price = "", ...columns] of lines) {
    const [dollars, unit = ""] = price.split(" / ");
    for (let at = 0; at < columns.length; at += 2) {
      const count = Number(columns[at]?.replaceAll(",", ""));
      const product = (count * Number(dollars)) / (UNITS[unit] ?? Number.NaN);
      expect(Math.abs(product - Number(columns[at + 1])), what).toBeLessThan(0.0001);
    }
  }
});
