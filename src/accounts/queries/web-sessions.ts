/**
 * Browser sessions of the web page, and the codes for signing in. Their look-ups take no scope, because they determine
 * the scope of the request. A session has no permissions of its own: a look-up returns its current key or person.
 */
import { and, desc, eq, exists, gt, inArray, isNotNull, isNull, lte, notInArray, or, type SQL, sql } from "drizzle-orm";
import type { OrganizationLimits, Role } from "../../contract/identity.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Database, HashedToken } from "../../kernel/db/database.ts";
import { type Page, pageOf, seconds } from "../../kernel/db/page.ts";
import { organizations, projects } from "../../kernel/db/schema.ts";
import { type Condition, type InOrganization, inOrganization, unscoped, type Write } from "../../kernel/db/scoped.ts";
import {
  type ApiKeyRow,
  apiKeys,
  members,
  type SignInCodeRow,
  signInCodes,
  type WebSessionRow,
  webSessions,
} from "../tables.ts";
import type { SessionView } from "../wire.ts";
import { isTheirs, type Whose } from "./end-sign-ins.ts";
import type { Reach } from "./projects.ts";
import { works } from "./working-keys.ts";

export type NewSession = Omit<WebSessionRow, "org_id">;
export type NewSignInCode = Omit<SignInCodeRow, "org_id">;

export interface FoundSession {
  readonly session: WebSessionRow;
  /** The session's key; null for a person's session, or if the key no longer exists. */
  readonly key: ApiKeyRow | null;
  /** Values that differ from `DEFAULT_LIMITS`. */
  readonly limits: Partial<OrganizationLimits>;
  /** The role of the owner of the session or its key; null for a program's key, and without a membership. */
  readonly role: Role | null;
}

/** The session whose cookie has this token, ended or not; null also if its owner is being deleted. */
export async function findSession(database: Database, token: HashedToken): Promise<FoundSession | null> {
  const person = sql`coalesce(${apiKeys.person_id}, ${webSessions.person_id})`;
  const rows = await unscoped(database.at(token.database), "session by hash")
    .select({ session: webSessions, key: apiKeys, limits: organizations.limits, role: members.role })
    .from(webSessions)
    .innerJoin(organizations, and(eq(organizations.id, webSessions.org_id), isNull(organizations.deleted_at)))
    .leftJoin(apiKeys, and(eq(apiKeys.id, webSessions.key_id), eq(apiKeys.org_id, webSessions.org_id)))
    .leftJoin(projects, and(eq(projects.id, apiKeys.project_id), eq(projects.org_id, webSessions.org_id)))
    .leftJoin(members, and(eq(members.org_id, webSessions.org_id), eq(members.person_id, person)))
    .where(
      and(
        eq(webSessions.hash, token.hash),
        isNull(projects.deleted_at),
        or(isNull(apiKeys.project_id), isNotNull(projects.id)),
      ),
    );
  return rows[0] ?? null;
}

/** The code, ended or not; null if it does not exist or was used. */
export async function findSignInCode(database: Database, code: HashedToken): Promise<SignInCodeRow | null> {
  const rows = await unscoped(database.at(code.database), "sign-in code by hash")
    .select({ code: signInCodes })
    .from(signInCodes)
    .innerJoin(organizations, and(eq(organizations.id, signInCodes.org_id), isNull(organizations.deleted_at)))
    .where(eq(signInCodes.hash, code.hash));
  return rows[0]?.code ?? null;
}

/** Adds a code; deletes ended and excess codes. Returns false if its key or person no longer has access. */
export async function insertSignInCode(database: Database, orgId: string, code: NewSignInCode): Promise<boolean> {
  const owned = inOrganization(database, orgId);
  const now = code.created_at;
  const latest = owned
    .columns({ hash: signInCodes.hash }, signInCodes, isTheirs(signInCodes, code))
    .orderBy(desc(signInCodes.created_at), desc(signInCodes.hash))
    .limit(LIMITS.signInCodesPerCaller);
  const [inserted] = await owned.batch([
    owned.insertIf(isLetIn(owned, code, now), signInCodes, code).returning({ hash: signInCodes.hash }),
    owned.delete(signInCodes, isTheirs(signInCodes, code), notInArray(signInCodes.hash, latest)),
    owned.delete(signInCodes, lte(signInCodes.expires_at, now)),
  ]);
  return inserted.length > 0;
}

/**
 * Starts a session and uses up its code, if one is given (by its SHA-256): both or neither, so of two requests with the
 * same code one succeeds. Deletes ended sessions and the oldest of too many. Returns false if the code was used or has
 * ended, or its key or person no longer has access.
 */
export async function beginSession(
  database: Database,
  orgId: string,
  session: NewSession,
  codeHash: string | null,
): Promise<boolean> {
  const owned = inOrganization(database, orgId);
  const now = session.created_at;
  const code = eq(signInCodes.hash, codeHash ?? "");
  const good = codeHash === null ? undefined : exists(owned.select(signInCodes, code, gt(signInCodes.expires_at, now)));
  const letIn = isLetIn(owned, session, now);
  const [inserted] = await owned.batch([
    owned.insertIf(and(letIn, good) ?? letIn, webSessions, session).returning({ id: webSessions.id }),
    owned.delete(signInCodes, code),
    dropOldest(owned, session),
    owned.delete(webSessions, lte(webSessions.expires_at, now)),
  ]);
  return inserted.length > 0;
}

/** The sessions of an organisation that a caller may see and end. */
export interface SessionReach extends Reach {
  /** The key or person whose sessions are visible; for a person, also sessions of their keys. Null: all sessions. */
  readonly whose: string | null;
}

export async function findWebSession(
  database: Database,
  reach: SessionReach,
  id: string,
): Promise<WebSessionRow | null> {
  const owned = inOrganization(database, reach.orgId);
  const rows = await owned.select(webSessions, eq(webSessions.id, id), reached(owned, reach));
  return rows[0] ?? null;
}

/** Sessions ordered by start time, then id; at most `page.limit`. */
export async function listWebSessions(database: Database, reach: SessionReach, page: Page): Promise<WebSessionRow[]> {
  const owned = inOrganization(database, reach.orgId);
  return await pageOf(webSessions, page, (beyond) => owned.select(webSessions, beyond, reached(owned, reach)));
}

/** Returns false if there is no such session. */
export async function deleteWebSession(database: Database, reach: SessionReach, id: string): Promise<boolean> {
  const owned = inOrganization(database, reach.orgId);
  const rows = await owned
    .delete(webSessions, eq(webSessions.id, id), reached(owned, reach))
    .returning({ id: webSessions.id });
  return rows.length > 0;
}

/** Deletes at most `limit` sessions and `limit` codes of an organisation that ended before. True: there may be more. */
export async function dropSignIns(database: Database, orgId: string, before: number, limit: number): Promise<boolean> {
  const owned = inOrganization(database, orgId);
  const dropped = await owned.batch([
    dropSome(owned, webSessions, before, limit),
    dropSome(owned, signInCodes, before, limit),
  ]);
  return dropped.some(({ meta }) => meta.changes >= limit);
}

function dropSome(
  owned: InOrganization,
  table: typeof webSessions | typeof signInCodes,
  before: number,
  limit: number,
) {
  const first = owned.columns({ at: sql`rowid` }, table, lte(table.expires_at, before)).limit(limit);
  return owned.delete(table, sql`rowid in ${first}`);
}

function dropOldest(owned: InOrganization, whose: Whose): Write<WebSessionRow> {
  const latest = owned
    .columns({ id: webSessions.id }, webSessions, isTheirs(webSessions, whose))
    .orderBy(desc(webSessions.created_at), desc(webSessions.id))
    .limit(LIMITS.sessionsPerCaller);
  return owned.delete(webSessions, isTheirs(webSessions, whose), notInArray(webSessions.id, latest));
}

/** The condition that the key is active, or the person is a member, and the organisation is not being deleted. */
function isLetIn(owned: InOrganization, { key_id, person_id }: Whose, now: number): SQL {
  const open = exists(owned.select(organizations, isNull(organizations.deleted_at)));
  const key = () => owned.select(apiKeys, eq(apiKeys.id, key_id ?? ""), works(now));
  const person = () => owned.select(members, eq(members.person_id, person_id ?? ""));
  return sql`${open} and ${exists(key_id === null ? person() : key())}`;
}

function reached(owned: InOrganization, { projectId, whose }: SessionReach): Condition {
  const inProject = projectId === null ? undefined : eq(webSessions.project_id, projectId);
  if (whose === null) return inProject;
  const keys = owned.columns({ id: apiKeys.id }, apiKeys, eq(apiKeys.person_id, whose));
  const theirs = [eq(webSessions.key_id, whose), eq(webSessions.person_id, whose), inArray(webSessions.key_id, keys)];
  return and(inProject, or(...theirs));
}

/** A session on the wire, copied field by field: the hash must not be included. */
export function sessionViewOf(row: NewSession): SessionView {
  const { id, key_id, person_id, project_id, created_at, expires_at } = row;
  const times = { created_at: seconds(created_at), expires_at: seconds(expires_at) };
  return { object: "session", id, key_id, person_id, project_id, ...times };
}
