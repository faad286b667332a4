/** Queries for an organisation's keys: create, show, change, rotate, revoke. For look-ups by hash see keys.ts. */
import {
  and,
  count,
  desc,
  eq,
  exists,
  inArray,
  isNotNull,
  isNull,
  lte,
  notInArray,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import { type Permission, rolesWith } from "../../contract/identity.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Database } from "../../kernel/db/database.ts";
import { type Remembered, rememberIf, violatedTable } from "../../kernel/db/idempotency-keys.ts";
import { type Page, pageOf, seconds } from "../../kernel/db/page.ts";
import { organizations, projects } from "../../kernel/db/schema.ts";
import { type InOrganization, inOrganization, type Write } from "../../kernel/db/scoped.ts";
import { type ApiKeyRow, apiKeys, members } from "../tables.ts";
import type { ApiKeyView } from "../wire.ts";
import { endSignIns } from "./end-sign-ins.ts";
import type { Reach } from "./projects.ts";
import { works } from "./working-keys.ts";

export type NewKey = Omit<ApiKeyRow, "org_id">;

export async function findApiKey(database: Database, reach: Reach, id: string): Promise<ApiKeyRow | null> {
  const rows = await inOrganization(database, reach.orgId).select(apiKeys, eq(apiKeys.id, id), ...reached(reach));
  return rows[0] ?? null;
}

/** Active and ended keys, ordered by creation time, then id; at most `page.limit`. */
export async function listApiKeys(database: Database, reach: Reach, page: Page): Promise<ApiKeyRow[]> {
  const owned = inOrganization(database, reach.orgId);
  return await pageOf(apiKeys, page, (beyond) => owned.select(apiKeys, beyond, ...reached(reach)));
}

/**
 * `refused`: the maximum of active keys is reached, the key's project is being deleted, or its maker may no longer
 * grant its scopes. `taken`: the Idempotency-Key was already used.
 */
export async function insertApiKey(
  database: Database,
  orgId: string,
  key: NewKey,
  made: Remembered | null,
): Promise<"inserted" | "refused" | "taken"> {
  const owned = inOrganization(database, orgId);
  try {
    const [rows] = await owned.batch([
      owned.insertIf(mayHave(owned, key), apiKeys, key).returning(),
      ...rememberIf(database, orgId, isThere(owned, key.id), made),
      dropEnded(owned, key.created_at),
    ]);
    return rows.length > 0 ? "inserted" : "refused";
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

/**
 * Replaces an active key by another. The old key ends at `ends` (epoch milliseconds) or at its own expiry, whichever is
 * earlier. All or nothing. `refused`: as above, or the old key is no longer active or was already rotated.
 */
export async function rotateApiKey(
  database: Database,
  orgId: string,
  { before, next, ends }: { readonly before: string; readonly next: NewKey; readonly ends: number },
  made: Remembered | null,
): Promise<"rotated" | "refused" | "taken"> {
  const owned = inOrganization(database, orgId);
  const [now, replaced] = [next.created_at, eq(apiKeys.id, before)];
  const current = exists(owned.select(apiKeys, replaced, isNull(apiKeys.rotated_to), works(now)));
  const inserted = isThere(owned, next.id);
  const sooner = sql`min(coalesce(${apiKeys.expires_at}, ${ends}), ${ends})`;
  try {
    const [rows] = await owned.batch([
      owned.insertIf(and(current, mayHave(owned, next)) ?? current, apiKeys, next).returning(),
      owned.update(apiKeys, { rotated_to: next.id, expires_at: sooner }, replaced, inserted),
      ...rememberIf(database, orgId, inserted, made),
      dropEnded(owned, now),
    ]);
    return rows.length > 0 ? "rotated" : "refused";
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

/** Null if the key was revoked or does not exist, or the caller may no longer change keys. */
export async function updateApiKey(
  database: Database,
  reach: Reach,
  id: string,
  changes: Partial<Pick<ApiKeyRow, "name" | "scopes" | "requests_per_minute" | "maker_id">>,
  by: { readonly who: string; readonly now: number },
): Promise<ApiKeyRow | null> {
  const owned = inOrganization(database, reach.orgId);
  const may = mayNow(owned, by.who, "admin", by.now);
  // An update must set at least one column.
  const rows = await owned
    .update(apiKeys, { id, ...changes }, eq(apiKeys.id, id), ...reached(reach), isNull(apiKeys.revoked_at), may)
    .returning();
  return rows[0] ?? null;
}

/** Also ends sign-ins made with the key. A key that is already revoked keeps its time. */
export async function revokeApiKey(database: Database, reach: Reach, id: string, now: number): Promise<void> {
  const owned = inOrganization(database, reach.orgId);
  const own = [eq(apiKeys.id, id), ...reached(reach)];
  const isOver = exists(owned.select(apiKeys, ...own, isNotNull(apiKeys.revoked_at)));
  await owned.batch([
    owned.update(apiKeys, { revoked_at: now }, ...own, isNull(apiKeys.revoked_at)),
    ...endSignIns(owned, { key_id: id, person_id: null }, isOver),
  ]);
}

function hasEnded(now: number): SQL | undefined {
  return or(isNotNull(apiKeys.revoked_at), lte(apiKeys.expires_at, now));
}

/** A new key is allowed: below the maximum, organisation and project exist, and its maker may grant its scopes. */
export function mayHave(
  owned: InOrganization,
  { project_id, created_at, ...key }: Pick<NewKey, "project_id" | "created_at" | "maker_id" | "scopes">,
): SQL {
  const working = owned.columns({ count: count() }, apiKeys, works(created_at));
  const open = exists(owned.select(organizations, isNull(organizations.deleted_at)));
  const project =
    project_id === null
      ? undefined
      : exists(owned.select(projects, eq(projects.id, project_id), isNull(projects.deleted_at)));
  return and(open, sql`${working} < ${LIMITS.keys}`, project, mayGive(owned, key)) ?? open;
}

function mayGive(owned: InOrganization, { maker_id, scopes }: Pick<NewKey, "maker_id" | "scopes">): SQL | undefined {
  if (maker_id === null) return undefined;
  const roles = rolesWith(scopes);
  // No role has this scope, so an operator granted it: membership is enough.
  const role = roles.length === 0 ? undefined : inArray(members.role, roles);
  return exists(owned.select(members, eq(members.person_id, maker_id), role));
}

/** The condition that a key or person has the scope `needed` now, according to the database and not to a cache. */
export function mayNow(owned: InOrganization, who: string, needed: Permission, now: number): SQL {
  const roles = inArray(members.role, rolesWith([needed]));
  if (who.startsWith("per_")) return exists(owned.select(members, eq(members.person_id, who), roles));
  const byRole = exists(owned.select(members, eq(members.person_id, apiKeys.person_id), roles));
  const held = sql`exists (select 1 from json_each(${apiKeys.scopes}) as held where held.value = ${needed})`;
  const may = and(held, or(isNull(apiKeys.person_id), byRole));
  return exists(owned.select(apiKeys, eq(apiKeys.id, who), works(now), may));
}

export function isThere(owned: InOrganization, id: string): SQL {
  return exists(owned.select(apiKeys, eq(apiKeys.id, id)));
}

/** Deletes ended keys, except the latest `LIMITS.endedAccounts`. */
export function dropEnded(owned: InOrganization, now: number): Write<ApiKeyRow> {
  const latest = owned
    .columns({ id: apiKeys.id }, apiKeys, hasEnded(now))
    .orderBy(desc(apiKeys.created_at), desc(apiKeys.id))
    .limit(LIMITS.endedAccounts);
  return owned.delete(apiKeys, hasEnded(now), notInArray(apiKeys.id, latest));
}

function reached({ projectId }: Reach): SQL[] {
  return projectId === null ? [] : [eq(apiKeys.project_id, projectId)];
}

/** A key on the wire, copied field by field: the hash must not be included. */
export function keyViewOf(key: NewKey): ApiKeyView {
  const at = (time: number | null) => (time === null ? null : seconds(time));
  return {
    object: "key",
    id: key.id,
    name: key.name,
    project_id: key.project_id,
    person_id: key.person_id,
    scopes: [...key.scopes],
    prefix: key.prefix,
    last4: key.last4,
    requests_per_minute: key.requests_per_minute,
    created_by: key.created_by,
    created_at: seconds(key.created_at),
    expires_at: at(key.expires_at),
    revoked_at: at(key.revoked_at),
    rotated_to: key.rotated_to,
  };
}
