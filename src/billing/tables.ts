/** Tables of prices, budgets and use. What is charged has the object of the organisation for its authority. */
import { integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { ChargeLines, PriceList } from "../contract/money.ts";
import { projectColumns } from "../kernel/db/schema.ts";

/** What may be charged in a month (UTC), for an organisation, one of its projects or one of its keys. */
export const budgets = sqliteTable(
  "budgets",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    target_kind: text().$type<"organization" | "project" | "key">().notNull(),
    /** The id of the organisation, the project, or the key or person that begins runs. */
    target_id: text().notNull(),
    limit_micros: integer().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [unique("budgets_target").on(table.org_id, table.target_kind, table.target_id)],
);
export type BudgetRow = typeof budgets.$inferSelect;

/** What was used in an hour (UTC): a copy of the organisation's books, written over each time. */
export const usageHours = sqliteTable(
  "usage_hours",
  {
    ...projectColumns,
    /** Epoch seconds of its beginning. */
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

/** Versions of what the platform asks for its work; none is ever changed. The one a deployment begins with is code. */
export const priceLists = sqliteTable("price_lists", {
  version: text().primaryKey(),
  /** Epoch seconds. */
  effective_from: integer().notNull(),
  prices: text({ mode: "json" }).$type<Pick<PriceList, "fees" | "models">>().notNull(),
  created_at: integer().notNull(),
  created_by: text().notNull(),
});
export type PriceListRow = typeof priceLists.$inferSelect;
