/** Tables of webhook endpoints and their signing secrets. */
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { projectColumns } from "../kernel/db/schema.ts";

/** Endpoints that receive events. Their deliveries are in the endpoint's object. */
export const webhookEndpoints = sqliteTable(
  "webhook_endpoints",
  {
    id: text().primaryKey(),
    ...projectColumns,
    url: text().notNull(),
    description: text().notNull(),
    /** Event names; null: all events. */
    events: text({ mode: "json" }).$type<readonly string[]>(),
    /** When and why the endpoint was disabled; null: enabled. */
    disabled_at: integer(),
    disabled_reason: text(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [index("webhook_endpoints_by_time").on(table.org_id, table.project_id, table.created_at, table.id)],
);
export type WebhookEndpointRow = typeof webhookEndpoints.$inferSelect;

/** The signing secrets of an endpoint: several during a rotation. */
export const webhookSecrets = sqliteTable(
  "webhook_secrets",
  {
    id: text().primaryKey(),
    ...projectColumns,
    webhook_id: text().notNull(),
    /** AES-GCM, sealed before it is stored. */
    sealed_secret: text().notNull(),
    /** When it expires; null: it is the newest. */
    expires_at: integer(),
    created_at: integer().notNull(),
  },
  (table) => [index("webhook_secrets_by_endpoint").on(table.org_id, table.project_id, table.webhook_id)],
);
export type WebhookSecretRow = typeof webhookSecrets.$inferSelect;
