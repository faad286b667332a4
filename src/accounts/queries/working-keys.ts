/** Which keys are active, and the revocation of all keys of a project or organisation. */
import { and, eq, gt, isNull, or, type SQL, sql } from "drizzle-orm";
import type { Database } from "../../kernel/db/database.ts";
import { type Condition, inOrganization, type Rows, type Write } from "../../kernel/db/scoped.ts";
import { type ApiKeyRow, apiKeys } from "../tables.ts";
import type { Reach } from "./projects.ts";

/** The condition that a key is active at that time. */
export function works(now: number): SQL | undefined {
  return and(isNull(apiKeys.revoked_at), or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, now)));
}

export function operatorKeys(database: Database, orgId: string, now: number): Rows<{ id: string }> {
  const mayAll = sql`instr(${apiKeys.scopes}, '"operator"')`;
  return inOrganization(database, orgId).columns({ id: apiKeys.id }, apiKeys, works(now), mayAll);
}

/** Revokes the keys of a project, or of a whole organisation. */
export function revokeKeys(
  database: Database,
  { orgId, projectId }: Reach,
  at: number,
  condition?: Condition,
): Write<ApiKeyRow> {
  const own = projectId === null ? undefined : eq(apiKeys.project_id, projectId);
  return inOrganization(database, orgId).update(
    apiKeys,
    { revoked_at: at },
    own,
    isNull(apiKeys.revoked_at),
    condition,
  );
}
