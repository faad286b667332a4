/** The table of links to reports. */
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** A link with which anybody can read a run's report. */
export const reportLinks = sqliteTable(
  "report_links",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    project_id: text().notNull(),
    run_id: text().notNull(),
    /** SHA-256 of the token in the link, in hex. */
    hash: text().notNull().unique(),
    /** `key_…` or `per_…`. */
    created_by: text().notNull(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
  },
  (table) => [index("report_links_by_run").on(table.org_id, table.project_id, table.run_id, table.created_at)],
);
export type ReportLinkRow = typeof reportLinks.$inferSelect;
