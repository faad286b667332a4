/**
 * Look-ups of API keys by hash, and of projects by id or name. A key look-up takes no scope, because the key determines
 * the scope of the request. Organisations and projects that are being deleted are not found.
 */
import { and, eq, isNotNull, isNull, or } from "drizzle-orm";
import type { OrganizationLimits, Role } from "../../contract/identity.ts";
import type { Database, HashedToken } from "../../kernel/db/database.ts";
import { organizations, projects } from "../../kernel/db/schema.ts";
import { inOrganization, unscoped } from "../../kernel/db/scoped.ts";
import { type ApiKeyRow, apiKeys, members } from "../tables.ts";

/** A key with its organisation's settings. */
export interface FoundKey {
  readonly key: ApiKeyRow;
  /** Values that differ from `DEFAULT_LIMITS`. */
  readonly limits: Partial<OrganizationLimits>;
  /** The role of the person who owns the key; null for a program's key, and for a person who is no longer a member. */
  readonly role: Role | null;
}

/** The key with this token, also if it is revoked or expired; null if there is none. */
export async function findKey(database: Database, token: HashedToken): Promise<FoundKey | null> {
  const rows = await unscoped(database.at(token.database), "key by hash")
    .select({ key: apiKeys, limits: organizations.limits, role: members.role })
    .from(apiKeys)
    .innerJoin(organizations, and(eq(organizations.id, apiKeys.org_id), isNull(organizations.deleted_at)))
    .leftJoin(projects, and(eq(projects.id, apiKeys.project_id), eq(projects.org_id, apiKeys.org_id)))
    .leftJoin(members, and(eq(members.org_id, apiKeys.org_id), eq(members.person_id, apiKeys.person_id)))
    .where(
      and(
        eq(apiKeys.hash, token.hash),
        isNull(projects.deleted_at),
        or(isNull(apiKeys.project_id), isNotNull(projects.id)),
      ),
    );
  return rows[0] ?? null;
}

/** The project of the organisation with this id or name; null if there is none, or if it is being deleted. */
export async function findProjectId(database: Database, orgId: string, nameOrId: string): Promise<string | null> {
  const named = or(eq(projects.id, nameOrId), eq(projects.name, nameOrId));
  const project = inOrganization(database, orgId);
  const rows = await project.columns({ id: projects.id }, projects, named, isNull(projects.deleted_at));
  return (rows.find(({ id }) => id === nameOrId) ?? rows[0])?.id ?? null;
}
