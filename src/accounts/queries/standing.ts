/** The current permissions of a key, its successor, or a person that requested or created something earlier. */
import { eq, isNull } from "drizzle-orm";
import { inBoth, PERMISSIONS_OF, type Permission, permits } from "../../contract/identity.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "../../kernel/db/database.ts";
import { organizations } from "../../kernel/db/schema.ts";
import { inOrganization } from "../../kernel/db/scoped.ts";
import { type ApiKeyRow, apiKeys } from "../tables.ts";
import { findMember } from "./people.ts";

/** The most rotations of a key that are followed. */
const MOST_ROTATIONS = 32;

/** The person, or the key's current successor, if it still has the scope in the project; else null. `now`: ms. */
export async function whoStillMay(
  database: Database,
  { orgId, projectId }: Scope,
  who: string,
  needed: Permission,
  now: number,
): Promise<string | null> {
  const open = await inOrganization(database, orgId).select(organizations, isNull(organizations.deleted_at));
  if (open.length === 0) return null;
  if (who.startsWith("per_")) {
    const member = await findMember(database, orgId, who);
    return member !== null && permits(PERMISSIONS_OF[member.role], needed) ? who : null;
  }
  const key = await latestOf(database, orgId, who);
  if (key === null || key.revoked_at !== null || (key.expires_at !== null && key.expires_at <= now)) return null;
  if (key.project_id !== null && key.project_id !== projectId) return null;
  const scopes = await scopesOf(database, key);
  return permits(scopes, needed) ? key.id : null;
}

/** The person responsible for what a key or a person makes: the key's owner or its maker. Null: no person is. */
export async function personBehind(database: Database, orgId: string, who: string): Promise<string | null> {
  if (who.startsWith("per_")) return who;
  const { person_id, maker_id } = apiKeys;
  const [key] = await inOrganization(database, orgId).columns({ person_id, maker_id }, apiKeys, eq(apiKeys.id, who));
  return key?.person_id ?? key?.maker_id ?? null;
}

async function latestOf(database: Database, orgId: string, id: string): Promise<ApiKeyRow | null> {
  let key: ApiKeyRow | null = null;
  let next: string | null = id;
  for (let times = 0; next !== null && times < MOST_ROTATIONS; times += 1) {
    const rows: ApiKeyRow[] = await inOrganization(database, orgId).select(apiKeys, eq(apiKeys.id, next));
    // If the successor was deleted, it had ended.
    key = rows[0] ?? null;
    next = key?.rotated_to ?? null;
  }
  return key;
}

async function scopesOf(database: Database, { org_id, person_id, scopes }: ApiKeyRow): Promise<readonly Permission[]> {
  if (person_id === null) return scopes;
  const member = await findMember(database, org_id, person_id);
  return member === null ? [] : inBoth(scopes, PERMISSIONS_OF[member.role]);
}
