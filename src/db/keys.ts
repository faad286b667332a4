/** API keys. The one look-up without a scope lives here, because it is what gives a request its scope. */
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { Scope } from "../contract/scope.ts";
import { type ApiKeyRow, apiKeys } from "./schema.ts";

/** The key whose token has this SHA-256 (hex), or null. */
export async function findKey(database: D1Database, hash: string): Promise<ApiKeyRow | null> {
  const rows = await drizzle(database).select().from(apiKeys).where(eq(apiKeys.hash, hash));
  return rows[0] ?? null;
}

/** Adds a key. The same token added again changes nothing. */
export async function insertKey(
  database: D1Database,
  scope: Scope,
  key: Omit<ApiKeyRow, "org_id" | "project_id">,
): Promise<void> {
  await drizzle(database)
    .insert(apiKeys)
    .values({ ...key, org_id: scope.orgId, project_id: scope.projectId })
    .onConflictDoNothing({ target: apiKeys.hash });
}
