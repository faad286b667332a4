/** Tokens of trainers. The look-up has no scope, because it is what gives a request its scope. */
import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { OrganizationLimits } from "../../contract/identity.ts";
import type { Scope } from "../../contract/scope.ts";
import { organizations, projects, runs, type TrainerTokenRow, trainerTokens } from "./schema.ts";
import { inProject, unscoped } from "./scoped.ts";

export interface FoundToken {
  readonly token: TrainerTokenRow;
  /** What differs from `DEFAULT_LIMITS`. */
  readonly limits: Partial<OrganizationLimits>;
}

/** The token that has this SHA-256 (hex), expired or not; or null. */
export async function findTrainerToken(database: D1Database, hash: string): Promise<FoundToken | null> {
  const rows = await unscoped(database, "trainer token by hash")
    .select({ token: trainerTokens, limits: organizations.limits })
    .from(trainerTokens)
    .innerJoin(organizations, and(eq(organizations.id, trainerTokens.org_id), isNull(organizations.deleted_at)))
    .innerJoin(projects, and(eq(projects.id, trainerTokens.project_id), isNull(projects.deleted_at)))
    .leftJoin(runs, eq(runs.id, trainerTokens.run_id))
    .where(and(eq(trainerTokens.hash, hash), isNull(runs.deleted_at)));
  return rows[0] ?? null;
}

/** Adds a token of the run. The one before it works until `before_expire_at`, epoch milliseconds, and older ones go. */
export async function replaceTrainerToken(
  database: D1Database,
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
