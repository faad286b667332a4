/** The table of triggers. */
import { integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { JsonObject } from "../contract/json.ts";
import { projectColumns } from "../kernel/db/schema.ts";
import type { TriggerSchedule } from "./wire.ts";

/** Addresses where another platform's webhook starts a run. The deliveries are in the trigger's object. */
export const triggers = sqliteTable(
  "triggers",
  {
    id: text().primaryKey(),
    ...projectColumns,
    name: text().notNull(),
    scheme: text().$type<"standard" | "github" | "huggingface">().notNull(),
    /** AES-GCM, sealed before it is stored. */
    sealed_secret: text().notNull(),
    /** The run to start, in the form of POST /v1/runs. */
    run: text({ mode: "json" }).$type<JsonObject>().notNull(),
    /** Paths in the payload, by the field of the run that they fill. */
    map: text({ mode: "json" }).$type<Readonly<Record<string, string>>>().notNull(),
    /** The values that the payload must have, by path. */
    when: text({ mode: "json" }).$type<JsonObject>().notNull(),
    concurrency: text().$type<"allow" | "queue" | "coalesce">().notNull(),
    /** When it starts runs by itself; null: never. */
    schedule: text({ mode: "json" }).$type<TriggerSchedule>(),
    /** The owner and payer of its runs: `key_…` or `per_…`. */
    created_by: text().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    disabled_at: integer(),
  },
  (table) => [unique("triggers_name").on(table.org_id, table.project_id, table.name)],
);
export type TriggerRow = typeof triggers.$inferSelect;
