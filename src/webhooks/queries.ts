/** Queries for webhook endpoints and their signing secrets. */
import { asc, count, desc, eq, exists, gt, inArray, isNull, lte, or, type SQL, sql } from "drizzle-orm";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { insertWithin, isThere, type Kept, type NewRow, type Remembered } from "../kernel/db/idempotency-keys.ts";
import { type Page, pageOf } from "../kernel/db/page.ts";
import { inOrganization, inProject } from "../kernel/db/scoped.ts";
import { type WebhookEndpointRow, type WebhookSecretRow, webhookEndpoints, webhookSecrets } from "./tables.ts";

export type NewWebhook = Omit<WebhookEndpointRow, "org_id" | "project_id">;
export type NewWebhookSecret = Omit<WebhookSecretRow, "org_id" | "project_id">;
/** An endpoint and the events it wants: names, or `run.*`; null: all. */
export type Listening = Pick<WebhookEndpointRow, "id" | "events">;

export async function findWebhook(database: Database, scope: Scope, id: string): Promise<WebhookEndpointRow | null> {
  const rows = await inProject(database, scope).select(webhookEndpoints, eq(webhookEndpoints.id, id));
  return rows[0] ?? null;
}

/** Ordered by creation time, then id; at most `page.limit`. */
export async function listWebhooks(database: Database, scope: Scope, page: Page): Promise<WebhookEndpointRow[]> {
  return await pageOf(webhookEndpoints, page, (beyond) => inProject(database, scope).select(webhookEndpoints, beyond));
}

/** Enabled endpoints of the project. */
export async function webhooksListening(database: Database, scope: Scope): Promise<Listening[]> {
  const { id, events, disabled_at } = webhookEndpoints;
  return await inProject(database, scope)
    .columns({ id, events }, webhookEndpoints, isNull(disabled_at))
    .limit(LIMITS.webhooksPerProject);
}

/** All endpoints of the project, also disabled ones: for its deletion. */
export async function webhooksOfProject(database: Database, scope: Scope, limit: number): Promise<string[]> {
  const rows = await inProject(database, scope)
    .columns({ id: webhookEndpoints.id }, webhookEndpoints)
    .orderBy(sql`${webhookEndpoints.id}`)
    .limit(limit);
  return rows.map(({ id }) => id);
}

/**
 * Enabled endpoints, in any project of the organisation, that name this event family (`budget`) or one of its events.
 */
export async function webhooksNaming(
  database: Database,
  orgId: string,
  family: string,
  limit: number,
): Promise<(Listening & { readonly project_id: string })[]> {
  const { id, project_id, events, disabled_at, created_at } = webhookEndpoints;
  const naming = sql`exists (select 1 from json_each(${events}) where value like ${`${family}.%`})`;
  return await inOrganization(database, orgId)
    .columns({ id, project_id, events }, webhookEndpoints, isNull(disabled_at), naming)
    .orderBy(asc(created_at), asc(id))
    .limit(limit);
}

/**
 * Inserts an endpoint and its first secret, both or neither. `full`: the project has the maximum number of endpoints.
 * `taken`: the Idempotency-Key was already used.
 */
export function insertWebhook(
  database: Database,
  scope: Scope,
  { webhook, secret }: { readonly webhook: NewRow<typeof webhookEndpoints>; readonly secret: NewWebhookSecret },
  made: Remembered | null,
): Promise<Kept | "full"> {
  const project = inProject(database, scope);
  const beside = [project.insertIf(isThere(project, webhookEndpoints, webhook.id), webhookSecrets, secret)];
  const atMost = LIMITS.webhooksPerProject;
  return insertWithin(database, scope, webhookEndpoints, webhook, made, { atMost, beside });
}

/** Null if the endpoint does not exist. */
export async function updateWebhook(
  database: Database,
  scope: Scope,
  id: string,
  changes: Partial<Omit<NewWebhook, "id" | "created_at">>,
): Promise<WebhookEndpointRow | null> {
  const rows = await inProject(database, scope)
    .update(webhookEndpoints, changes, eq(webhookEndpoints.id, id))
    .returning();
  return rows[0] ?? null;
}

/** Disables an endpoint for its object. An endpoint that is already disabled does not change. */
export async function disableWebhook(
  database: Database,
  scope: Scope,
  id: string,
  { at, reason }: { readonly at: number; readonly reason: string },
): Promise<void> {
  const changes = { disabled_at: at, disabled_reason: reason, updated_at: at };
  const { id: column, disabled_at } = webhookEndpoints;
  await inProject(database, scope).update(webhookEndpoints, changes, eq(column, id), isNull(disabled_at));
}

/** The endpoint and its secrets: all or none. */
export async function deleteWebhook(database: Database, scope: Scope, id: string): Promise<void> {
  const project = inProject(database, scope);
  await project.batch([
    project.delete(webhookSecrets, eq(webhookSecrets.webhook_id, id)),
    project.delete(webhookEndpoints, eq(webhookEndpoints.id, id)),
  ]);
}

/** The secrets that are valid at that time, the newest first. */
export async function secretsOfWebhook(
  database: Database,
  scope: Scope,
  id: string,
  now: number,
): Promise<WebhookSecretRow[]> {
  return await inProject(database, scope)
    .select(webhookSecrets, eq(webhookSecrets.webhook_id, id), signs(now))
    .orderBy(desc(webhookSecrets.created_at), desc(webhookSecrets.id));
}

/**
 * Adds a new secret. The previous ones are valid until `ends`, or their own earlier expiry; expired ones are deleted.
 * `full`: the maximum of valid secrets is reached.
 */
export async function rotateWebhookSecret(
  database: Database,
  scope: Scope,
  { secret, ends }: { readonly secret: NewWebhookSecret; readonly ends: number },
): Promise<"rotated" | "full" | "gone"> {
  const project = inProject(database, scope);
  const [now, ofIt] = [secret.created_at, eq(webhookSecrets.webhook_id, secret.webhook_id)];
  const signing = project.columns({ count: count() }, webhookSecrets, ofIt, signs(now));
  const there = project.columns(
    { id: webhookEndpoints.id },
    webhookEndpoints,
    eq(webhookEndpoints.id, secret.webhook_id),
  );
  const sooner = sql`min(coalesce(${webhookSecrets.expires_at}, ${ends}), ${ends})`;
  const [, rows] = await project.batch([
    project.delete(webhookSecrets, ofIt, lte(webhookSecrets.expires_at, now)),
    project
      .insertIf(sql`${exists(there)} and ${signing} < ${LIMITS.webhookSecrets}`, webhookSecrets, secret)
      .returning({ id: webhookSecrets.id }),
    project.update(webhookSecrets, { expires_at: sooner }, ofIt, sql`${webhookSecrets.id} != ${secret.id}`, rotated()),
  ]);
  if (rows.length === 1) return "rotated";
  return (await there).length === 0 ? "gone" : "full";

  function rotated(): SQL {
    return exists(project.columns({ id: webhookSecrets.id }, webhookSecrets, eq(webhookSecrets.id, secret.id)));
  }
}

export type SecretEnd = Pick<WebhookSecretRow, "webhook_id" | "expires_at">;

/** The expiry times of valid secrets of several endpoints, without the secrets. */
export async function secretEndsOfWebhooks(
  database: Database,
  scope: Scope,
  ids: readonly string[],
  now: number,
): Promise<SecretEnd[]> {
  if (ids.length === 0) return [];
  const { webhook_id, expires_at } = webhookSecrets;
  return await inProject(database, scope)
    .columns({ webhook_id, expires_at }, webhookSecrets, inArray(webhook_id, [...ids]), signs(now))
    .orderBy(desc(webhookSecrets.created_at), desc(webhookSecrets.id));
}

function signs(now: number): SQL | undefined {
  return or(isNull(webhookSecrets.expires_at), gt(webhookSecrets.expires_at, now));
}
