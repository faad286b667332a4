/** A table of the deployment, which belongs to no organisation: beside schema.ts, whose tables do. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/**
 * What ended runs came to, of all organisations: triggers on `runs` add to it in the transaction of the end, so that who
 * watches reads a few rows and not every run. Unlike a run it is never deleted.
 */
export const totals = sqliteTable(
  "totals",
  {
  {
    /** `runs` (how often one ended, by status), `dead_letters`, `spans_dropped`, or an outcome of rollouts. */
    kind: text().notNull(),
    /** The status, the cause, the class or the reason; empty where there is none. */
    name: text().notNull(),
    n: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.name] })],
);
