/**
 * Invitations: a link with which a person becomes a member, once. Only the hash of its token is stored.
 *
 * Invariant. The person who made an invitation knows its link. So the link alone makes no existing person a member:
 * without a proof of identity, the person who accepts is a new person.
 */
import {
  and,
  count,
  desc,
  eq,
  exists,
  gt,
  isNotNull,
  isNull,
  lte,
  ne,
  notExists,
  notInArray,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import { LIMITS } from "../../contract/limits.ts";
import type { Database, HashedToken } from "../../kernel/db/database.ts";
import { type Remembered, rememberIf, violatedTable } from "../../kernel/db/idempotency-keys.ts";
import { type Page, pageOf, seconds } from "../../kernel/db/page.ts";
import { organizations } from "../../kernel/db/schema.ts";
import { inOrganization, unscoped } from "../../kernel/db/scoped.ts";
import { apiKeys, type InvitationRow, invitations, members, people } from "../tables.ts";
import type { InvitationView } from "../wire.ts";
import { dropEnded, isThere, mayHave, type NewKey } from "./api-keys.ts";
import { hasProved } from "./people.ts";

export type NewInvitation = Omit<InvitationRow, "org_id">;

export async function findInvitation(database: Database, orgId: string, id: string): Promise<InvitationRow | null> {
  const rows = await inOrganization(database, orgId).select(invitations, eq(invitations.id, id));
  return rows[0] ?? null;
}

/** Includes ended invitations. Ordered by creation time, then id; at most `page.limit`. */
export async function listInvitations(database: Database, orgId: string, page: Page): Promise<InvitationRow[]> {
  const owned = inOrganization(database, orgId);
  return await pageOf(invitations, page, (beyond) => owned.select(invitations, beyond));
}

/** `full`: the maximum of open invitations is reached. */
export async function insertInvitation(
  database: Database,
  orgId: string,
  invitation: NewInvitation,
  made: Remembered | null,
): Promise<"inserted" | "taken" | "full"> {
  const owned = inOrganization(database, orgId);
  const now = invitation.created_at;
  const waiting = owned.columns({ count: count() }, invitations, isOpen(now));
  const live = exists(owned.select(organizations, isNull(organizations.deleted_at)));
  const room = and(live, sql`${waiting} < ${LIMITS.openInvitations}`) ?? live;
  const inserted = exists(owned.select(invitations, eq(invitations.id, invitation.id)));
  const hasEnded = or(isNotNull(invitations.accepted_at), lte(invitations.expires_at, now));
  const latest = owned
    .columns({ id: invitations.id }, invitations, hasEnded)
    .orderBy(desc(invitations.created_at), desc(invitations.id))
    .limit(LIMITS.endedAccounts);
  try {
    const [rows] = await owned.batch([
      owned.insertIf(room, invitations, invitation).returning(),
      ...rememberIf(database, orgId, inserted, made),
      owned.delete(invitations, hasEnded, notInArray(invitations.id, latest)),
    ]);
    return rows.length > 0 ? "inserted" : "full";
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

export async function deleteInvitation(database: Database, orgId: string, id: string): Promise<boolean> {
  const rows = await inOrganization(database, orgId).delete(invitations, eq(invitations.id, id)).returning();
  return rows.length > 0;
}

/** The invitation with this token, ended or not, with its organisation; null if there is none. */
export async function findInvitationByHash(
  database: Database,
  token: HashedToken,
): Promise<{ readonly invitation: InvitationRow; readonly organization: string } | null> {
  const rows = await unscoped(database.at(token.database), "invitation by hash")
    .select({ invitation: invitations, organization: organizations.name })
    .from(invitations)
    .innerJoin(organizations, and(eq(organizations.id, invitations.org_id), isNull(organizations.deleted_at)))
    .where(eq(invitations.hash, token.hash));
  return rows[0] ?? null;
}

/** An invitation, with the role and the name for the person, and when they proved its address, if they did. */
export interface Accepted extends Pick<InvitationRow, "id" | "org_id" | "email" | "role"> {
  readonly name: string | null;
  readonly proven_at: number | null;
}

/**
 * Makes the person a member, gives them the key and marks the invitation as used, all or nothing. Returns false if it
 * was used or revoked meanwhile, the maximum is reached, or another person has proved the address. A person who is
 * already a member keeps the role.
 */
export async function acceptInvitation(
  database: Database,
  { id, org_id, email, role, name, proven_at }: Accepted,
  key: NewKey & { readonly person_id: string },
): Promise<boolean> {
  const owned = inOrganization(database, org_id);
  const [now, { person_id }] = [key.created_at, key];
  const open = exists(owned.select(invitations, eq(invitations.id, id), isOpen(now)));
  const member = owned.select(members, eq(members.person_id, person_id));
  const all = owned.columns({ count: count() }, members);
  const room = or(exists(member), sql`${all} < ${LIMITS.members}`);
  const given = isThere(owned, key.id);
  const everybody = unscoped(database.of(org_id), "invitation by hash");
  const known = everybody.select().from(people).where(eq(people.id, person_id));
  const other = everybody
    .select()
    .from(people)
    .where(and(hasProved(email), ne(people.id, person_id)));
  const alone = proven_at === null ? undefined : notExists(other);
  const person = sql`select ${person_id}, ${email}, ${now}, ${proven_at} where ${given} and ${notExists(known)}`;
  const [, , used] = await owned.batch([
    owned.insertIf(and(open, room, alone, mayHave(owned, key)) ?? open, apiKeys, key),
    owned.insertIf(and(given, notExists(member)) ?? given, members, { person_id, role, name, created_at: now }),
    owned.update(invitations, { accepted_at: now }, eq(invitations.id, id), given).returning(),
    everybody.insert(people).select(person),
    dropEnded(owned, now),
  ]);
  return used.length > 0;
}

function isOpen(now: number): SQL | undefined {
  return and(isNull(invitations.accepted_at), gt(invitations.expires_at, now));
}

/** An invitation on the wire, copied field by field: the hash must not be included. */
export function invitationViewOf(row: NewInvitation): InvitationView {
  return {
    object: "invitation",
    id: row.id,
    email: row.email,
    role: row.role,
    invited_by: row.invited_by,
    created_at: seconds(row.created_at),
    expires_at: seconds(row.expires_at),
    accepted_at: row.accepted_at === null ? null : seconds(row.accepted_at),
  };
}
