/** Tables of addresses that are told of events, and of what deliveries are signed with. */
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { projectColumns } from "../kernel/db/schema.ts";

/** Addresses that are told of events. What is to be delivered stands in the endpoint's object. */
export const webhookEndpoints = sqliteTable(
  "webhook_endpoints",
  {
    id: text().primaryKey(),
    ...projectColumns,
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
    ...projectColumns,
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
