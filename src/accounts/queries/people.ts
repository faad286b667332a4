/**
 * People and their memberships. A person may belong to several organisations or to none. Their role in an organisation
 * determines what they and their keys may do there. An address alone identifies only the person who proved it, never
 * someone else who was invited with it. A person of organisations in several D1 databases has a row in each of these.
 */
import { and, eq, exists, inArray, isNotNull, isNull, ne, notExists, or, type SQL, sql } from "drizzle-orm";
import {
  type OrganizationLimits,
  PERMISSIONS,
  PERMISSIONS_OF,
  permits,
  ROLES,
  type Role,
} from "../../contract/identity.ts";
import type { Database } from "../../kernel/db/database.ts";
import { type Page, pageOf, seconds } from "../../kernel/db/page.ts";
import { organizations } from "../../kernel/db/schema.ts";
import { type InOrganization, inOrganization, unscoped } from "../../kernel/db/scoped.ts";
import { apiKeys, invitations, members, people } from "../tables.ts";
import type { PersonView } from "../wire.ts";
import { mayNow } from "./api-keys.ts";
import { endSignIns } from "./end-sign-ins.ts";

/** A person as a member of one organisation. `created_at`: when the membership started. */
export interface Member {
  readonly id: string;
  readonly email: string;
  /** Whether Cloudflare Access confirmed the address. */
  readonly email_proven: boolean;
  readonly name: string | null;
  readonly role: Role;
  readonly created_at: number;
}

const MEMBER = {
  id: members.person_id,
  email: people.email,
  email_proven: sql<boolean>`${people.proven_at} is not null`.mapWith(Boolean),
  name: members.name,
  role: members.role,
  created_at: members.created_at,
};

function membersOf(owned: InOrganization, ...conditions: (SQL | undefined)[]) {
  return owned.joined(MEMBER, [members, people], eq(people.id, members.person_id), ...conditions);
}

export async function findMember(database: Database, orgId: string, personId: string): Promise<Member | null> {
  const rows = await membersOf(inOrganization(database, orgId), eq(members.person_id, personId));
  return rows[0] ?? null;
}

/** Ordered by the start of membership, then id; at most `page.limit`. */
export async function listMembers(database: Database, orgId: string, page: Page): Promise<Member[]> {
  const owned = inOrganization(database, orgId);
  const place = { id: members.person_id, created_at: members.created_at };
  return await pageOf(place, page, (beyond) => membersOf(owned, beyond));
}

/**
 * Changes a role; the person's keys follow. Keys and invitations that the person made and may no longer make are ended,
 * and so are invitations to their own address with a higher role. `by`: the key or person that asks. Returns false if
 * the caller may no longer do this, or the person is not a member, or is the only owner, who cannot be changed.
 */
export async function changeRole(
  database: Database,
  orgId: string,
  { id: personId, role, by }: Pick<Member, "id" | "role"> & { readonly by: string },
  now: number,
): Promise<boolean> {
  const owned = inOrganization(database, orgId);
  const their = eq(members.person_id, personId);
  const mayAsk = mayNow(owned, by, "admin", now);
  const allowed = role === "owner" ? mayAsk : and(mayAsk, leavesAnOwner(owned, personId));
  const has = exists(owned.select(members, their, eq(members.role, role)));
  const isMember = eq(people.id, members.person_id);
  const address = owned.joined({ email: people.email }, [members, people], isMember, their);
  const toThem = and(
    inArray(invitations.email, address),
    inArray(invitations.role, ROLES.slice(0, ROLES.indexOf(role))),
  );
  const invites = permits(PERMISSIONS_OF[role], "admin");
  const [changed] = await owned.batch([
    owned.update(members, { role }, their, allowed).returning(),
    owned.update(apiKeys, { scopes: PERMISSIONS_OF[role] }, eq(apiKeys.person_id, personId), has),
    owned.update(apiKeys, { revoked_at: now }, madeBy(personId), isNull(apiKeys.revoked_at), exceeds(role), has),
    endInvitations(owned, invites ? toThem : or(toThem, invitedBy(owned, personId)), has),
  ]);
  return changed.length > 0;
}

/** Keys that the person made for programs, also those made with such keys. */
function madeBy(personId: string): SQL {
  return eq(apiKeys.maker_id, personId);
}

/** Keys with a scope that the role does not have. */
function exceeds(role: Role): SQL {
  const allowed = JSON.stringify(PERMISSIONS.filter((one) => permits(PERMISSIONS_OF[role], one)));
  const held = sql`json_each(${apiKeys.scopes}) as held`;
  return sql`exists (select 1 from ${held} where held.value not in (select value from json_each(${allowed})))`;
}

/** Invitations that the person made, with any of their keys. */
function invitedBy(owned: InOrganization, personId: string): SQL | undefined {
  const keys = owned.columns({ id: apiKeys.id }, apiKeys, or(eq(apiKeys.person_id, personId), madeBy(personId)));
  return or(eq(invitations.invited_by, personId), inArray(invitations.invited_by, keys));
}

function endInvitations(owned: InOrganization, which: SQL | undefined, condition: SQL) {
  return owned.delete(invitations, isNull(invitations.accepted_at), which, condition);
}

/**
 * Ends the membership and revokes the person's keys in the organisation and the keys that they made for programs.
 * Deletes the invitations that they made, and invitations and sign-ins that would let them in. A person without any
 * other organisation is deleted. Returns false if they are not a member, or are the only owner, who cannot be removed.
 */
export async function removeMember(
  database: Database,
  orgId: string,
  { id, email, by }: Pick<Member, "id" | "email"> & { readonly by: string },
  now: number,
): Promise<boolean> {
  const owned = inOrganization(database, orgId);
  const their = eq(members.person_id, id);
  const gone = notExists(owned.select(members, their));
  const all = unscoped(database.of(orgId), "person by e-mail");
  const elsewhere = all
    .select()
    .from(members)
    .where(and(eq(members.person_id, id), ne(members.org_id, orgId)));
  const [removed] = await owned.batch([
    owned.delete(members, their, leavesAnOwner(owned, id), mayNow(owned, by, "admin", now)).returning(),
    owned.update(
      apiKeys,
      { revoked_at: now },
      or(eq(apiKeys.person_id, id), madeBy(id)),
      isNull(apiKeys.revoked_at),
      gone,
    ),
    endInvitations(owned, or(eq(invitations.email, email), invitedBy(owned, id)), gone),
    all.delete(people).where(and(eq(people.id, id), gone, notExists(elsewhere))),
    ...endSignIns(owned, { key_id: null, person_id: id }, gone),
  ]);
  return removed.length > 0;
}

/** The person is not an owner, or not the only one. */
function leavesAnOwner(owned: InOrganization, personId: string): SQL | undefined {
  const other = owned.select(members, eq(members.role, "owner"), ne(members.person_id, personId));
  return or(ne(members.role, "owner"), exists(other));
}

/** The condition that a person has proved this address (in lower case). */
export function hasProved(email: string): SQL | undefined {
  return and(eq(people.email, email), isNotNull(people.proven_at));
}

/**
 * The id of the person who proved this address (in lower case), or null: first as an organisation's D1 database has it.
 */
export async function personWhoProved(database: Database, email: string, orgId: string): Promise<string | null> {
  const own = database.of(orgId);
  for (const d1 of [own, ...database.all.filter((other) => other !== own)]) {
    const all = unscoped(d1, "person by e-mail");
    const [found] = await all.select({ id: people.id }).from(people).where(hasProved(email));
    if (found !== undefined) return found.id;
  }
  return null;
}

export interface Membership {
  readonly org_id: string;
  readonly person_id: string;
  readonly role: Role;
  /** Values that differ from `DEFAULT_LIMITS`. */
  readonly limits: Partial<OrganizationLimits>;
}

/**
 * The membership of the person who proved this address (in lower case), in the given organisation or else in their only
 * one. Null: there is none. `several`: there are several and none was named.
 */
export async function membershipOf(
  database: Database,
  email: string,
  orgId: string | null,
): Promise<Membership | "several" | null> {
  const found = await database.each((d1) => membershipsIn(d1, email, orgId));
  const [first = null, second] = found.flat();
  return second === undefined ? first : "several";
}

/** At most 2. */
async function membershipsIn(d1: D1Database, email: string, orgId: string | null): Promise<Membership[]> {
  const { org_id, person_id, role } = members;
  return await unscoped(d1, "person by e-mail")
    .select({ org_id, person_id, role, limits: organizations.limits })
    .from(people)
    .innerJoin(members, eq(members.person_id, people.id))
    .innerJoin(organizations, and(eq(organizations.id, members.org_id), isNull(organizations.deleted_at)))
    .where(and(hasProved(email), orgId === null ? undefined : eq(members.org_id, orgId)))
    .limit(2);
}

export function personViewOf({ id, email, email_proven, name, role, created_at }: Member): PersonView {
  return { object: "person", id, email, email_proven, name, role, created_at: seconds(created_at) };
}

/** Addresses of the organisation's owners, at most `limit`. */
export async function ownersOf(database: Database, orgId: string, limit: number): Promise<string[]> {
  const isOwner = eq(members.role, "owner");
  const rows = await inOrganization(database, orgId)
    .joined({ email: people.email }, [members, people], eq(people.id, members.person_id), isOwner)
    .limit(limit);
  return rows.map(({ email }) => email);
}

/** The number of people who are members only of this organisation. */
export async function countOwnPeople(database: Database, orgId: string): Promise<number> {
  return await unscoped(database.of(orgId), "operator").$count(people, onlyIn(database, orgId));
}

/** Deletes people who are members only of this organisation. */
export async function deleteOwnPeople(database: Database, orgId: string): Promise<void> {
  await unscoped(database.of(orgId), "operator").delete(people).where(onlyIn(database, orgId));
}

function onlyIn(database: Database, orgId: string): SQL | undefined {
  const all = unscoped(database.of(orgId), "operator");
  const here = all.select({ id: members.person_id }).from(members).where(eq(members.org_id, orgId));
  const elsewhere = all
    .select({ id: members.person_id })
    .from(members)
    .where(and(eq(members.person_id, people.id), ne(members.org_id, orgId)));
  return and(inArray(people.id, here), notExists(elsewhere));
}
