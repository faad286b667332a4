/** Prices and margins in docs/billing.md, compared with the charges in the code and the costs in docs/cost.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chargedDollars, marginTable } from "../../bench/margin.ts";
import { DEFAULT_PRICES } from "../../src/billing/default-prices.ts";

const page = (name: string) => readFileSync(join(import.meta.dirname, "../../docs", name), "utf8");
const PAGE = page("billing.md");
const { version, fees } = DEFAULT_PRICES;

/** "0.00006": the page's form of a price, without an exponent. */
const dollars = (micros: number) => (micros / 1_000_000).toFixed(6).replace(/0+$/, "");

test("the page lists the default prices of a deployment", () => {
  const listed = Array.from(PAGE.matchAll(/^\| [^|]+ \| (0\.\d+) \|$/gm), ([, price]) => price);
  expect(PAGE).toContain(`| the list a deployment begins with (${version}) | $ |`);
  expect(listed).toEqual(
    [
      ...[fees.rollout_micros, fees.thousand_turns_micros, fees.scoring_micros],
      ...[fees.push_micros, fees.gb_day_micros],
    ].map(dollars),
  );
});

test("the page lists the margin over each line of docs/cost.md, and none of them is below 0", () => {
  const table = marginTable();
  expect(PAGE).toContain(table);
  expect(PAGE).toContain(`are $${chargedDollars().toFixed(2)}: `);
  const lines = table
    .split("\n")
    .slice(2)
    .map((line) => line.split("|").map((cell) => cell.trim()));
  expect(lines.length).toBe(8);
  for (const [, size, atOnce, charged, paid, left] of lines) {
    expect(Number(charged)).toBeCloseTo(Number(paid) + Number(left), 9);
    expect(Number(left), `${size}, ${atOnce}`).toBeGreaterThan(0);
    const row = page("cost.md")
      .split("\n")
      .find((one) => one.startsWith(`| ${size} | ${atOnce} |`));
    expect(row?.split("|")[4]?.trim()).toBe(paid);
  }
});

test("storage is charged at no less than R2's price", () => {
  const [, asked] = /\| storage of R2, a month \| ([\d.]+) \/ GB-month \|/.exec(page("cost.md")) ?? [];
  const charged = (fees.gb_day_micros * 30) / 1_000_000;
  expect(PAGE.replaceAll(/\s+/g, " ")).toContain(`$${charged.toFixed(2)} a GB and month, twice what R2 asks`);
  expect(charged).toBeCloseTo(2 * Number(asked), 9);
});
