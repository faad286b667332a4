/** Tables of the deployment, which belong to no organisation: beside those of schema.ts. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { PriceList } from "../../contract/money.ts";

/**
 * What ended runs came to, of all organisations: triggers on `runs` add to it in the transaction of the end, so that who
 * watches reads a few rows and not every run. Unlike a run it is never deleted.
 */
export const totals = sqliteTable(
  "totals",
  {
    /** `runs` (how often one ended, by status), `dead_letters`, `spans_dropped`, `events_unposted`, or an outcome of rollouts. */
    kind: text().notNull(),
    /** The status, the cause, the class or the reason; empty where there is none. */
    name: text().notNull(),
    n: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.name] })],
);

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
