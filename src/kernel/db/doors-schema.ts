/** Tables of fleets, and of the doors of training: beside those of schema.ts, by the same rules. */
import { customType, index, integer, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { LocationHint, ReplicaCapabilities } from "../../contract/fleet.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { TokenPrices } from "../../contract/judgement.ts";
import { readUpdate, type StoredUpdate } from "./fleet-update.ts";

const scope = {
  org_id: text().notNull(),
  project_id: text().notNull(),
};

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
    ...scope,
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
    ...scope,
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

/** Addresses that are told of events. What is to be delivered stands in the endpoint's object. */
export const webhookEndpoints = sqliteTable(
  "webhook_endpoints",
  {
    id: text().primaryKey(),
    ...scope,
    url: text().notNull(),
    description: text().notNull(),
    /** Names of events; null: all. */
    events: text({ mode: "json" }).$type<readonly string[]>(),
    /** Set when it gets nothing any more, and why. */
    disabled_at: integer(),
    disabled_reason: text(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [index("webhook_endpoints_by_time").on(table.org_id, table.project_id, table.created_at, table.id)],
);
export type WebhookEndpointRow = typeof webhookEndpoints.$inferSelect;

/** What deliveries to an endpoint are signed with: more than one while it is being changed. */
export const webhookSecrets = sqliteTable(
  "webhook_secrets",
  {
    id: text().primaryKey(),
    ...scope,
    webhook_id: text().notNull(),
    /** AES-GCM, sealed before it got here. */
    sealed_secret: text().notNull(),
    /** From when on nothing is signed with it; null: it is the newest. */
    expires_at: integer(),
    created_at: integer().notNull(),
  },
  (table) => [index("webhook_secrets_by_endpoint").on(table.org_id, table.project_id, table.webhook_id)],
);
export type WebhookSecretRow = typeof webhookSecrets.$inferSelect;

/** Addresses at which somebody else's webhook begins a run. What came stands in the trigger's object. */
export const triggers = sqliteTable(
  "triggers",
  {
    id: text().primaryKey(),
    ...scope,
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
