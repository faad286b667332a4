/** Tables of prices, budgets and usage. The authoritative ledger is in the organisation's object. */
import { integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { ChargeLines, PriceList } from "../contract/money.ts";
import { projectColumns } from "../kernel/db/schema.ts";

/** The most that may be charged in a month (UTC), for an organisation, a project, or a key or person. */
export const budgets = sqliteTable(
  "budgets",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    target_kind: text().$type<"organization" | "project" | "key">().notNull(),
    /** The id of the organisation, the project, or the key or person that starts runs. */
    target_id: text().notNull(),
    limit_micros: integer().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [unique("budgets_target").on(table.org_id, table.target_kind, table.target_id)],
);
export type BudgetRow = typeof budgets.$inferSelect;

/** Usage in an hour (UTC): a copy from the organisation's ledger, overwritten each time. */
export const usageHours = sqliteTable(
  "usage_hours",
  {
    ...projectColumns,
    /** Epoch seconds of the start of the hour. */
    hour: integer().notNull(),
    payer: text().notNull(),
    environment: text().notNull(),
    model: text().notNull(),
    /** `eval`, `training` or `storage`. */
    kind: text().notNull(),
    counts: text({ mode: "json" }).$type<Readonly<Record<string, number>>>().notNull(),
    /** Micro-dollars by line. */
    lines: text({ mode: "json" }).$type<ChargeLines>().notNull(),
  },
  (table) => [
    primaryKey({
      columns: [table.org_id, table.project_id, table.hour, table.payer, table.environment, table.model, table.kind],
    }),
  ],
);
export type UsageHourRow = typeof usageHours.$inferSelect;

/** Versions of the platform's prices; a version never changes. The first version of a deployment is code. */
export const priceLists = sqliteTable("price_lists", {
  version: text().primaryKey(),
  /** Epoch seconds. */
  effective_from: integer().notNull(),
  prices: text({ mode: "json" }).$type<Pick<PriceList, "fees" | "models">>().notNull(),
  created_at: integer().notNull(),
  created_by: text().notNull(),
});
export type PriceListRow = typeof priceLists.$inferSelect;
