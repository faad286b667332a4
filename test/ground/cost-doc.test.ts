/** The bill in docs/cost.md: every line is count × price, and the last one their sum. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const PAGE = join(import.meta.dirname, "../../docs/cost.md");

interface Line {
  readonly what: string;
  readonly count: number;
  readonly dollars: string;
  readonly price: number;
}

function bill(): { lines: Line[]; total: string } {
  const rows = readFileSync(PAGE, "utf8")
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter((cells) => cells.length === 7);
  const [_head, _rule, ...body] = rows;
  const lines = body.slice(0, -1).map((cells): Line => {
    const [, what = "", price, count = "", dollars = ""] = cells;
    return { what, price: Number(price), count: Number(count.replaceAll(",", "")), dollars };
  });
  return { lines, total: (body.at(-1)?.[4] ?? "").replaceAll("*", "") };
}

test("the bill of the cost page multiplies and adds up", () => {
  const { lines, total } = bill();
  expect(lines.length).toBeGreaterThan(10);
  for (const { what, price, count, dollars } of lines) {
    expect(((count * price) / 1e6).toFixed(4), what).toBe(dollars);
  }
  expect(lines.reduce((sum, { dollars }) => sum + Number(dollars), 0).toFixed(4)).toBe(total);
});
