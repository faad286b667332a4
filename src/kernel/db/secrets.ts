/** Secrets of environments: names, and values that were sealed before. */
import { eq, sql } from "drizzle-orm";
import type { SecretView } from "../../contract/endpoint.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { insertOnce, type Kept, type Remembered } from "./idempotency-keys.ts";
import { namedRows } from "./named-rows.ts";
import { seconds } from "./page.ts";
import { type SecretRow, secrets } from "./schema.ts";
import { inProject } from "./scoped.ts";

export type NewSecret = Omit<SecretRow, "org_id" | "project_id">;

export const { find: findSecret, list: listSecrets, update: updateSecret } = namedRows(secrets);

/** The secrets with these names; any number of names, so they are one parameter. */
export async function secretsNamed(database: Database, scope: Scope, names: readonly string[]): Promise<SecretRow[]> {
  if (names.length === 0) return [];
  return await inProject(database, scope).select(
    secrets,
    sql`${secrets.name} in (select value from json_each(${JSON.stringify(names)}))`,
  );
}

export function insertSecret(
  database: Database,
  scope: Scope,
  secret: NewSecret,
  made: Remembered | null,
): Promise<Kept> {
  return insertOnce(database, scope, secrets, secret, made);
}

export async function deleteSecret(database: Database, scope: Scope, id: string): Promise<void> {
  await inProject(database, scope).delete(secrets, eq(secrets.id, id));
}

/** A secret in the shape of the API: everything except its value. */
export function secretViewOf(secret: Pick<SecretRow, "id" | "name" | "created_at" | "updated_at">): SecretView {
  return {
    object: "secret",
    id: secret.id,
    name: secret.name,
    created_at: seconds(secret.created_at),
    updated_at: seconds(secret.updated_at),
  };
}
