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

/** A run names a fleet instead of an endpoint. */
export const fleets = sqliteTable(
  "fleets",
  {
    id: text().primaryKey(),
    ...projectColumns,
    /** Null for a deleted fleet, whose row stays for the runs that name it. */
    name: text(),
    /** How its replicas get new weights. */
    update: fleetUpdate().notNull(),
    prices: text({ mode: "json" }).$type<TokenPrices>(),
    /** Where the objects of its runs are placed, near its engines. */
    location_hint: text().$type<LocationHint>(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
    deleted_at: integer(),
  },
  (table) => [unique("fleets_name").on(table.org_id, table.project_id, table.name)],
);
export type FleetRow = typeof fleets.$inferSelect;

/** One engine of a fleet. Its current state is in the fleet object. */
export const replicas = sqliteTable(
  "replicas",
  {
    id: text().primaryKey(),
    ...projectColumns,
    fleet_id: text().notNull(),
    name: text().notNull(),
    /** Ends with /v1. */
    base_url: text().notNull(),
    /** The address for changing its weights; null: the server of `base_url`. */
    control_url: text(),
    /** AES-GCM, sealed before it is stored. */
    sealed_key: text(),
    api_key_last4: text(),
    sealed_control_key: text(),
    /** The most calls at once. */
    max_concurrent: integer().notNull(),
    /** Gets only calls of rollouts that it already serves. */
    draining: integer({ mode: "boolean" }).notNull(),
    /** The capabilities that its last probe found; null: it was never probed. */
    capabilities: text({ mode: "json" }).$type<ReplicaCapabilities>(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [unique("replicas_name").on(table.org_id, table.project_id, table.fleet_id, table.name)],
);
export type ReplicaRow = typeof replicas.$inferSelect;
