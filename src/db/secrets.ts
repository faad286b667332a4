/** Secrets of environments: names, and values sealed before they get here. */
import { eq, inArray, or } from "drizzle-orm";
import type { SecretView } from "../contract/endpoint.ts";
import type { Scope } from "../contract/scope.ts";
import { insertOnce, type Kept, type Remembered } from "./idempotency-keys.ts";
import { type Page, pageOf, seconds } from "./page.ts";
import { type SecretRow, secrets } from "./schema.ts";
import { inProject } from "./scoped.ts";

export type NewSecret = Omit<SecretRow, "org_id" | "project_id">;

/** Finds a secret by id or name. One's name may read like another's id, and then the id is meant. */
export async function findSecret(database: D1Database, scope: Scope, nameOrId: string): Promise<SecretRow | null> {
  const rows = await inProject(database, scope).select(
    secrets,
    or(eq(secrets.name, nameOrId), eq(secrets.id, nameOrId)),
  );
  return rows.find(({ id }) => id === nameOrId) ?? rows[0] ?? null;
}

/** The secrets that are set under these names. */
export async function secretsNamed(database: D1Database, scope: Scope, names: readonly string[]): Promise<SecretRow[]> {
  if (names.length === 0) return [];
  return await inProject(database, scope).select(secrets, inArray(secrets.name, [...names]));
}

/** Lists secrets by time of creation, then id; at most `page.limit` of them. */
export async function listSecrets(database: D1Database, scope: Scope, page: Page): Promise<SecretRow[]> {
  return await pageOf(secrets, page, (beyond) => inProject(database, scope).select(secrets, beyond));
}

export function insertSecret(
  database: D1Database,
  scope: Scope,
  secret: NewSecret,
  made: Remembered | null,
): Promise<Kept> {
  return insertOnce(database, scope, secrets, secret, made);
}

/** Null when there is no such secret any more. */
export async function updateSecret(
  database: D1Database,
  scope: Scope,
  id: string,
  changes: Pick<SecretRow, "sealed_value" | "updated_at">,
): Promise<SecretRow | null> {
  const rows = await inProject(database, scope).update(secrets, changes, eq(secrets.id, id)).returning();
  return rows[0] ?? null;
}

export async function deleteSecret(database: D1Database, scope: Scope, id: string): Promise<void> {
  await inProject(database, scope).delete(secrets, eq(secrets.id, id));
}

/** A secret in the shape of the wire: everything but its value. */
export function secretViewOf(secret: Pick<SecretRow, "id" | "name" | "created_at" | "updated_at">): SecretView {
  return {
    object: "secret",
    id: secret.id,
    name: secret.name,
    created_at: seconds(secret.created_at),
    updated_at: seconds(secret.updated_at),
  };
}
