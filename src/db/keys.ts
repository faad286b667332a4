/**
 * API keys and the tokens of trainers. Their look-ups have no scope, because they are what gives a request its scope.
 */
import { eq, isNull } from "drizzle-orm";
import type { Scope } from "../contract/scope.ts";
import { type ApiKeyRow, apiKeys, type TrainerTokenRow, trainerTokens } from "./schema.ts";
import { inOrganization, inProject, unscoped } from "./scoped.ts";

/** The key whose token has this SHA-256 (hex), or null. */
export async function findKey(database: D1Database, hash: string): Promise<ApiKeyRow | null> {
  const rows = await unscoped(database, "key by hash").select().from(apiKeys).where(eq(apiKeys.hash, hash));
  return rows[0] ?? null;
}

/** Adds a key. The same token added again changes nothing. */
export async function insertKey(database: D1Database, key: ApiKeyRow): Promise<void> {
  await inOrganization(database, key.org_id).insert(apiKeys, key).onConflictDoNothing({ target: apiKeys.hash });
}

/** The token that has this SHA-256 (hex), expired or not; or null. */
export async function findTrainerToken(database: D1Database, hash: string): Promise<TrainerTokenRow | null> {
  const rows = await unscoped(database, "trainer token by hash")
    .select()
    .from(trainerTokens)
    .where(eq(trainerTokens.hash, hash));
  return rows[0] ?? null;
}

/** Adds a token of the run. Those before it work until `before_expire_at`, epoch milliseconds. */
export async function replaceTrainerToken(
  database: D1Database,
  scope: Scope,
  token: Pick<TrainerTokenRow, "hash" | "run_id" | "created_at">,
  before_expire_at: number,
): Promise<void> {
  const project = inProject(database, scope);
  const latest = [eq(trainerTokens.run_id, token.run_id), isNull(trainerTokens.expires_at)];
  await project.batch([
    project.update(trainerTokens, { expires_at: before_expire_at }, ...latest),
    project.insert(trainerTokens, { ...token, expires_at: null }),
  ]);
}
