/** Tokens of trainers. The lookup has no scope, because it gives a request its scope. */
import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { OrganizationLimits } from "../../contract/identity.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database, HashedToken } from "./database.ts";
import { organizations, projects, runs, type TrainerTokenRow, trainerTokens } from "./schema.ts";
import { inProject, unscoped } from "./scoped.ts";

export interface FoundToken {
  readonly token: TrainerTokenRow;
  /** The differences from `DEFAULT_LIMITS`. */
  readonly limits: Partial<OrganizationLimits>;
}

/** The token, expired or not; null if there is none. */
export async function findTrainerToken(database: Database, token: HashedToken): Promise<FoundToken | null> {
  const rows = await unscoped(database.at(token.database), "trainer token by hash")
    .select({ token: trainerTokens, limits: organizations.limits })
    .from(trainerTokens)
    .innerJoin(organizations, and(eq(organizations.id, trainerTokens.org_id), isNull(organizations.deleted_at)))
    .innerJoin(projects, and(eq(projects.id, trainerTokens.project_id), isNull(projects.deleted_at)))
    .leftJoin(runs, eq(runs.id, trainerTokens.run_id))
    .where(and(eq(trainerTokens.hash, token.hash), isNull(runs.deleted_at)));
  return rows[0] ?? null;
}

/**
 * Adds a token of the run. The previous token works until `before_expire_at` (epoch milliseconds); older ones are
 * deleted.
 */
export async function replaceTrainerToken(
  database: Database,
  scope: Scope,
  token: Pick<TrainerTokenRow, "hash" | "run_id" | "created_at">,
  before_expire_at: number,
): Promise<void> {
  const project = inProject(database, scope);
  const latest = [eq(trainerTokens.run_id, token.run_id), isNull(trainerTokens.expires_at)];
  const replaced = [eq(trainerTokens.run_id, token.run_id), isNotNull(trainerTokens.expires_at)];
  await project.batch([
    project.delete(trainerTokens, ...replaced),
    project.update(trainerTokens, { expires_at: before_expire_at }, ...latest),
    project.insert(trainerTokens, { ...token, expires_at: null }),
  ]);
}
