/** Copies of an organisation's ledger: beside the tables of schema.ts, by the same rules. Its object is the authority. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** How far the copy of an organisation's ledger is (R2 has its entries). */
export const ledgerCopies = sqliteTable("ledger_copies", {
  org_id: text().primaryKey(),
  balance_micros: integer().notNull(),
  reserved_micros: integer().notNull(),
  /** The number of the last entry that is copied. */
  last_entry: integer().notNull(),
  copied_at: integer().notNull(),
  /** Since when the first entry without a copy has waited; null when all have one. */
  behind_since: integer(),
});
export type LedgerCopyRow = typeof ledgerCopies.$inferSelect;

/** Closed months (UTC) of an organisation's ledger: what a statement says, and a hash chained to the month before. */
export const ledgerMonths = sqliteTable(
  "ledger_months",
  {
    org_id: text().notNull(),
    /** `2026-11` */
    month: text().notNull(),
    first_entry: integer().notNull(),
    last_entry: integer().notNull(),
    opening_micros: integer().notNull(),
    closing_micros: integer().notNull(),
    /** What its entries did to each account. */
    accounts: text({ mode: "json" }).$type<Readonly<Record<string, number>>>().notNull(),
    sha256: text().notNull(),
    closed_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.month] })],
);
export type LedgerMonthRow = typeof ledgerMonths.$inferSelect;
