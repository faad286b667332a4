/** The table of triggers. */
import { integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { JsonObject } from "../contract/json.ts";
import { projectColumns } from "../kernel/db/schema.ts";

/** Addresses at which somebody else's webhook begins a run. What came stands in the trigger's object. */
export const triggers = sqliteTable(
  "triggers",
  {
    id: text().primaryKey(),
    ...projectColumns,
    name: text().notNull(),
    scheme: text().$type<"standard" | "github" | "huggingface">().notNull(),
    /** AES-GCM, sealed before it got here. */
    sealed_secret: text().notNull(),
    /** The run it begins, as POST /v1/runs takes it. */
    run: text({ mode: "json" }).$type<JsonObject>().notNull(),
    /** Fields of the run by the paths of the payload that fill them. */
    map: text({ mode: "json" }).$type<Readonly<Record<string, string>>>().notNull(),
    /** What the payload must hold at these paths. */
    when: text({ mode: "json" }).$type<JsonObject>().notNull(),
    concurrency: text().$type<"allow" | "queue" | "coalesce">().notNull(),
    /** Who made it, and pays for its runs: `key_…` or `per_…`. */
    created_by: text().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    disabled_at: integer(),
  },
  (table) => [unique("triggers_name").on(table.org_id, table.project_id, table.name)],
);
export type TriggerRow = typeof triggers.$inferSelect;
