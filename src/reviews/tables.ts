/** The table of reviews. */
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Mark } from "../contract/agreement.ts";
import type { ReviewValue } from "../contract/row-review.ts";

/** What one person or key wrote about one rollout. */
export const reviews = sqliteTable(
  "reviews",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    project_id: text().notNull(),
    run_id: text().notNull(),
    rollout_id: text().notNull(),
    /** `key_…` or `per_…`. */
    created_by: text().notNull(),
    mark: text().$type<Mark>(),
    note: text(),
    /** With the rollout's own values, which never change. */
    values: text({ mode: "json" }).$type<readonly ReviewValue[]>().notNull(),
    why: text(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("reviews_by_rollout").on(table.org_id, table.project_id, table.rollout_id, table.created_by),
    index("reviews_by_run").on(table.org_id, table.project_id, table.run_id, table.created_at),
  ],
);
export type ReviewRow = typeof reviews.$inferSelect;
