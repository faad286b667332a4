/**
 * API keys and the tokens of trainers. Their look-ups have no scope, because they are what gives a request its scope.
 * Nothing is found of an organisation or a project whose deletion has begun.
 */
import { and, eq, isNotNull, isNull, or } from "drizzle-orm";
import type { OrganizationLimits, Role } from "../contract/identity.ts";
import type { Scope } from "../contract/scope.ts";
import {
  type ApiKeyRow,
  apiKeys,
  members,
  organizations,
  projects,
  runs,
  type TrainerTokenRow,
  trainerTokens,
} from "./schema.ts";
import { inOrganization, inProject, unscoped } from "./scoped.ts";

/** A key with what its organisation says about it. */
export interface FoundKey {
  readonly key: ApiKeyRow;
  /** What differs from `DEFAULT_LIMITS`. */
  readonly limits: Partial<OrganizationLimits>;
  /** Of the person whose key it is; null for a program's key, and for a person who is no member any more. */
  readonly role: Role | null;
}

/** The key whose token has this SHA-256 (hex), revoked and expired ones too; or null. */
export async function findKey(database: D1Database, hash: string): Promise<FoundKey | null> {
  const rows = await unscoped(database, "key by hash")
    .select({ key: apiKeys, limits: organizations.limits, role: members.role })
    .from(apiKeys)
    .innerJoin(organizations, and(eq(organizations.id, apiKeys.org_id), isNull(organizations.deleted_at)))
    .leftJoin(projects, and(eq(projects.id, apiKeys.project_id), eq(projects.org_id, apiKeys.org_id)))
    .leftJoin(members, and(eq(members.org_id, apiKeys.org_id), eq(members.person_id, apiKeys.person_id)))
    .where(
      and(eq(apiKeys.hash, hash), isNull(projects.deleted_at), or(isNull(apiKeys.project_id), isNotNull(projects.id))),
    );
  return rows[0] ?? null;
}

/** Adds a key. The same token added again changes nothing. */
export async function insertKey(database: D1Database, key: ApiKeyRow): Promise<void> {
  await inOrganization(database, key.org_id).insert(apiKeys, key).onConflictDoNothing({ target: apiKeys.hash });
}

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

/** The project of the organisation that has this id or name; null if there is none, or if it is being deleted. */
export async function findProjectId(database: D1Database, orgId: string, nameOrId: string): Promise<string | null> {
  const named = or(eq(projects.id, nameOrId), eq(projects.name, nameOrId));
  const project = inOrganization(database, orgId);
  const rows = await project.columns({ id: projects.id }, projects, named, isNull(projects.deleted_at));
  return (rows.find(({ id }) => id === nameOrId) ?? rows[0])?.id ?? null;
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
