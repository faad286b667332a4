/** Usage and statements as CSV (RFC 4180), for whoever opens them in a spreadsheet. Amounts are micro-dollars. */
import { CHARGE_LINES } from "./money.ts";
import type { StatementView } from "./statement.ts";
import { USE_COUNTS, type UsageBucket } from "./usage.ts";

type Cell = string | number | null | undefined;

/** What a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

const NAMES = ["project_id", "key_id", "environment", "model", "kind"] as const;
const LINE_COLUMNS = CHARGE_LINES.map((line) => `${line}_micros`);
const USAGE_COLUMNS = ["start_time", "end_time", ...NAMES, ...USE_COUNTS, "cost_micros", ...LINE_COLUMNS];

/** A line for each group of each bucket. */
export function usageCsv(buckets: readonly UsageBucket[]): string {
  const rows = buckets.flatMap(({ start_time, end_time, results }) =>
    results.map(({ object: _, lines, ...result }) => {
      const charged = Object.entries(lines).map(([line, micros]) => [`${line}_micros`, micros]);
      return { start_time, end_time, ...result, ...Object.fromEntries(charged) };
    }),
  );
  return csvText(USAGE_COLUMNS, rows);
}

/** A line for each account, between the opening and the closing balance. */
export function statementCsv({ month, opening_micros, closing_micros, lines }: StatementView): string {
  const rows = [
    { month, account: "opening balance", micros: opening_micros },
    ...lines.map((line) => ({ month, ...line })),
    { month, account: "closing balance", micros: closing_micros },
  ];
  return csvText(["month", "account", "micros"], rows);
}

/** A header and a line for each row; what a row lacks is empty. */
function csvText(columns: readonly string[], rows: readonly Readonly<Record<string, Cell>>[]): string {
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((cells) => `${cells.map(cellText).join(",")}\r\n`).join("");
}

/** A text that begins as a formula does gets an apostrophe before it: spreadsheets show it, and run nothing. */
function cellText(cell: Cell): string {
  if (typeof cell !== "string") return cell === null || cell === undefined ? "" : String(cell);
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
