/**
 * Computes the margin of a deployment's default prices over its costs in docs/cost.md: the table of docs/billing.md.
 */
import { chargeOf } from "../src/billing/charge.ts";
import { DEFAULT_PRICES } from "../src/billing/default-prices.ts";
import { sumOfLines } from "../src/core/costs/run-costs.ts";
import { costTables } from "./bill.ts";

const ROLLOUTS = 1000;
const TURNS = 10;
const MICROS = 1_000_000;

/** Dollars for 1,000 scored rollouts of ten turns, without the price of tokens. */
export function chargedDollars(): number {
  const { version, fees } = DEFAULT_PRICES;
  const none = { prompt_tokens: 0, completion_tokens: 0 };
  const one = {
    outcome: "scored",
    reason: null,
    error: null,
    left: true,
    call_timeout_s: 600,
    carried: false,
    turns: TURNS,
  } as const;
  const charged = chargeOf({ version, fees, policy: null, judges: {} }, { ...one, policy: none, judged: [] });
  return (sumOfLines(charged) * ROLLOUTS) / MICROS;
}

/** A row for each row of the first table of docs/cost.md: the cost with lognormal turns, and the rest of the charge. */
export function marginTable(): string {
  const charged = chargedDollars();
  const [head = "", , ...rows] = (costTables().split("\n\n")[0] ?? "").split("\n");
  const column = cellsOf(head).findIndex((cell) => cell.startsWith("lognormal"));
  const lines = rows.map((row) => {
    const cells = cellsOf(row);
    const paid = Number(cells[column]);
    const share = Math.round(((charged - paid) / charged) * 100);
    return `| ${cells[0]} | ${cells[1]} | ${charged.toFixed(3)} | ${paid.toFixed(3)} | ${(charged - paid).toFixed(3)} | ${share} % |`;
  });
  const header = "| trajectories | rollouts at once | charged, $ | paid, $ | left, $ | of the charge |";
  return [header, "| --- | --- | --- | --- | --- | --- |", ...lines].join("\n");
}

function cellsOf(row: string): string[] {
  return row
    .split("|")
    .map((cell) => cell.trim())
    .slice(1, -1);
}
