/** Tables of fleets and their replicas. */
import { customType, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { LocationHint, ReplicaCapabilities } from "../contract/fleet.ts";
import type { TokenPrices } from "../contract/judgement.ts";
import { projectColumns } from "../kernel/db/schema.ts";
import { readUpdate, type StoredUpdate } from "./stored-update.ts";

const fleetUpdate = customType<{ data: StoredUpdate; driverData: string }>({
  dataType: () => "text",
  toDriver: (update) => JSON.stringify(update),
  fromDriver: (written) => readUpdate(JSON.parse(written)),
});

/** Engines that serve one policy: a run names the fleet where it would name an endpoint. */
export const fleets = sqliteTable(
  "fleets",
  {
    id: text().primaryKey(),
    ...projectColumns,
    /** Null for a deleted one, whose row stays for the runs that name it. */
    name: text(),
    /** How weights get onto its replicas. */
    update: fleetUpdate().notNull(),
    prices: text({ mode: "json" }).$type<TokenPrices>(),
    /** Where the objects of its runs are to live, near its engines. */
    location_hint: text().$type<LocationHint>(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    deleted_at: integer(),
  },
  (table) => [unique("fleets_name").on(table.org_id, table.project_id, table.name)],
);
export type FleetRow = typeof fleets.$inferSelect;

/** One engine of a fleet. How it is stands in the fleet's object. */
export const replicas = sqliteTable(
  "replicas",
  {
    id: text().primaryKey(),
    ...projectColumns,
    fleet_id: text().notNull(),
    name: text().notNull(),
    /** Up to and including /v1. */
    base_url: text().notNull(),
    /** Where its weights are changed; null: the server of `base_url`. */
    control_url: text(),
    /** AES-GCM, sealed before they got here. */
    sealed_key: text(),
    api_key_last4: text(),
    sealed_control_key: text(),
    /** Calls at once. */
    max_concurrent: integer().notNull(),
    /** Gets no calls of rollouts that it does not serve already. */
    draining: integer({ mode: "boolean" }).notNull(),
    /** What it was seen to be able to do when it was last probed; null: never. */
    capabilities: text({ mode: "json" }).$type<ReplicaCapabilities>(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [unique("replicas_name").on(table.org_id, table.project_id, table.fleet_id, table.name)],
);
export type ReplicaRow = typeof replicas.$inferSelect;
