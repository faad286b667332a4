/** The bill in docs/cost.md: every line is count × price, and the last one their sum. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const PAGE = join(import.meta.dirname, "../../docs/cost.md");

interface Line {
  readonly what: string;
  readonly alarm: { readonly count: number; readonly dollars: string };
  readonly queue: { readonly count: number; readonly dollars: string };
  readonly price: number;
}

function bill(): { lines: Line[]; total: string[] } {
  const rows = readFileSync(PAGE, "utf8")
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter((cells) => cells.length === 9);
  const [_head, _rule, ...body] = rows;
  const lines = body.slice(0, -1).map((cells): Line => {
    const [, what = "", price, alarm = "", first = "", queue = "", second = ""] = cells;
    const count = (text: string) => Number(text.replaceAll(",", ""));
    return {
      what,
      price: Number(price),
      alarm: { count: count(alarm), dollars: first },
      queue: { count: count(queue), dollars: second },
    };
  });
  const last = body.at(-1) ?? [];
  return { lines, total: [last[4], last[6]].map((cell) => (cell ?? "").replaceAll("*", "")) };
}

test("the bill of the cost page multiplies and adds up", () => {
  const { lines, total } = bill();
  expect(lines.length).toBeGreaterThan(10);
  for (const { what, price, alarm, queue } of lines) {
    for (const { count, dollars } of [alarm, queue]) {
      expect(((count * price) / 1e6).toFixed(4), what).toBe(dollars);
    }
  }
  const sum = (of: (line: Line) => string) => lines.reduce((dollars, line) => dollars + Number(of(line)), 0).toFixed(4);
  expect([sum(({ alarm }) => alarm.dollars), sum(({ queue }) => queue.dollars)]).toEqual(total);
});
