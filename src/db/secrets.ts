/** Secrets of environments: names, and values sealed before they get here. */
import { and, eq, inArray, or } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { SecretView } from "../contract/endpoint.ts";
import type { Scope } from "../contract/scope.ts";
import { insertOnce, type Remembered } from "./idempotency-keys.ts";
import { beyond, byTime, ownedBy, type Page, within } from "./page.ts";
import { type SecretRow, secrets } from "./schema.ts";

export type NewSecret = Omit<SecretRow, "org_id" | "project_id">;

/** By id or name; one's name may read like another's id, and the id is meant then. */
export async function findSecret(database: D1Database, scope: Scope, nameOrId: string): Promise<SecretRow | null> {
  const rows = await drizzle(database)
    .select()
    .from(secrets)
    .where(and(...within(secrets, scope), or(eq(secrets.name, nameOrId), eq(secrets.id, nameOrId))));
  return rows.find(({ id }) => id === nameOrId) ?? rows[0] ?? null;
}

/** Those of the names that are set. */
export async function secretsNamed(database: D1Database, scope: Scope, names: readonly string[]): Promise<SecretRow[]> {
  if (names.length === 0) return [];
  return drizzle(database)
    .select()
    .from(secrets)
    .where(and(...within(secrets, scope), inArray(secrets.name, [...names])));
}

/** By time of creation, then id; at most `page.limit` of them. */
export function listSecrets(database: D1Database, scope: Scope, page: Page): Promise<SecretRow[]> {
  return drizzle(database)
    .select()
    .from(secrets)
    .where(and(...within(secrets, scope), ...beyond(secrets, page)))
    .orderBy(...byTime(secrets, page.order))
    .limit(page.limit);
}

export function insertSecret(
  database: D1Database,
  scope: Scope,
  secret: NewSecret,
  made: Remembered | null,
): Promise<"inserted" | "taken"> {
  const row = { ...secret, ...ownedBy(scope) };
  return insertOnce(database, scope, drizzle(database).insert(secrets).values(row), made);
}

/** Null when there is no such secret any more. */
export async function updateSecret(
  database: D1Database,
  scope: Scope,
  id: string,
  changes: Pick<SecretRow, "sealed_value" | "updated_at">,
): Promise<SecretRow | null> {
  const rows = await drizzle(database)
    .update(secrets)
    .set(changes)
    .where(and(...within(secrets, scope), eq(secrets.id, id)))
    .returning();
  return rows[0] ?? null;
}

export async function deleteSecret(database: D1Database, scope: Scope, id: string): Promise<void> {
  await drizzle(database)
    .delete(secrets)
    .where(and(...within(secrets, scope), eq(secrets.id, id)));
}

/** A secret in the shape of the wire: everything but its value. */
export function secretViewOf(secret: Pick<SecretRow, "id" | "name" | "created_at" | "updated_at">): SecretView {
  return {
    object: "secret",
    id: secret.id,
    name: secret.name,
    created_at: Math.floor(secret.created_at / 1000),
    updated_at: Math.floor(secret.updated_at / 1000),
  };
}
