/**
 * People: invited, made members with their own key, given another role, removed. An invitation is used once: of two
 * concurrent requests, one succeeds. The person who made an invitation knows its link, so the link proves nothing about
 * the person who uses it. A person who proves no identity becomes a member as a new person.
 */

import { type Caller, PERMISSIONS_OF } from "../contract/identity.ts";
import { LIMITS } from "../contract/limits.ts";
import { ofOrganization } from "../contract/scope.ts";
import { mintId, mintToken } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { refuseDeleted } from "../kernel/kit/account-hooks.ts";
import { type CreateOptions, replay, toRemember } from "../kernel/kit/idempotency.ts";
import { hashToken, minting, readId, readTokenKind, sha256Hex } from "../kernel/kit/secrets.ts";
import { keyReused, LOST_RIGHT, type Result, refuse, refuseOneProject } from "../kernel/messages/refusal.ts";
import { notFound } from "../kernel/service/read-run.ts";
import { createdKeyOf, mintKey } from "./mint-key.ts";
import {
  acceptInvitation as acceptOnce,
  deleteInvitation,
  findInvitation,
  findInvitationByHash,
  insertInvitation,
  invitationViewOf,
} from "./queries/invitations.ts";
import { changeRole, findMember, personViewOf, personWhoProved, removeMember } from "./queries/people.ts";
import { whoStillMay } from "./queries/standing.ts";
import type { InvitationRow } from "./tables.ts";
import type {
  AcceptedInvitation,
  AcceptRequest,
  CreatedInvitation,
  InvitationRequest,
  PersonPatch,
  PersonView,
} from "./wire.ts";

const OPERATION = "createInvitation";
const INVITED_MS = 7 * 24 * 3600 * 1000;

export async function createInvitation(
  env: Env,
  caller: Caller,
  request: InvitationRequest,
  options: CreateOptions,
): Promise<Result<{ value: CreatedInvitation; replayed: boolean }>> {
  const refused = refuseOneProject(caller) ?? refuseLimited(env, caller);
  if (refused !== null) return refused;
  const before = await findRepeated(env, caller, options);
  if (before !== null) return before;
  const { now } = options;
  const mint = minting(env, now, caller.orgId);
  const token = mintToken("rki", mint);
  const invitation = {
    ...request,
    id: mintId("inv", mint),
    hash: sha256Hex(token),
    invited_by: caller.who,
    created_at: now,
    expires_at: now + INVITED_MS,
    accepted_at: null,
  };
  const remembered = toRemember(OPERATION, invitation.id, options);
  const outcome = await insertInvitation(databaseOf(env), caller.orgId, invitation, remembered);
  if (outcome === "taken") return (await findRepeated(env, caller, options)) ?? keyReused();
  if (outcome === "full") {
    const going = await refuseDeleted(env, caller.orgId);
    if (going !== null) return going;
    return refuse(
      "conflict",
      `the organisation already has ${LIMITS.openInvitations} open invitations, the maximum: delete some first`,
      null,
    );
  }
  const url = `${options.origin ?? ""}/join#${token}`;
  return { ok: true, value: { value: { ...invitationViewOf(invitation), token, url }, replayed: false } };
}

/** What the request proves about the person who accepts. */
export interface AcceptedBy {
  /** The person whose key or session the request contains, with the address in lower case; null: none. */
  readonly person: { readonly id: string; readonly email: string } | null;
  /** The address that Cloudflare Access confirms, in lower case; null: none. */
  readonly address: string | null;
}

/** Makes the holder of the token a member with a key: as the person they prove to be, otherwise as a new person. */
export async function acceptInvitation(
  env: Env,
  { token, name }: AcceptRequest,
  by: AcceptedBy,
  now: number,
): Promise<Result<AcceptedInvitation>> {
  const ours = readTokenKind(env, token) === "rki";
  const found = ours ? await findInvitationByHash(databaseOf(env), hashToken(token)) : null;
  if (found === null) return refuse("not_found", "this invitation does not exist", "token");
  const { invitation, organization } = found;
  const { org_id, email } = invitation;
  const over = ended(invitation, now) ?? (await withdrawn(env, invitation, now));
  if (over !== null) return over;
  const proven_at = by.address === email ? now : null;
  const known = proven_at === null ? knownBy(by, email) : await personWhoProved(databaseOf(env), email, org_id);
  const personId = known ?? mintId("per", minting(env, now));
  const before = known === null ? null : await findMember(databaseOf(env), org_id, known);
  const { role } = before ?? invitation;
  const attributes = {
    name: before?.name ?? name ?? email,
    scopes: PERMISSIONS_OF[role],
    project_id: null,
    requests_per_minute: null,
    created_by: personId,
    maker_id: null,
    expires_at: null,
  };
  const minted = mintKey(env, { ...attributes, person_id: personId }, { orgId: org_id, now });
  const key = { ...minted.row, person_id: personId };
  const accepted = await acceptOnce(databaseOf(env), { ...invitation, role, name, proven_at }, key);
  if (!accepted) return await whyNot(env, invitation, { now, personId, proven: proven_at !== null });
  const member = await findMember(databaseOf(env), org_id, personId);
  if (member === null) return refuse("conflict", "the membership was ended by another request", null);
  const value = {
    organization: { id: org_id, name: organization },
    person: personViewOf(member),
    key: createdKeyOf(key, minted.token),
  };
  return { ok: true, value };
}

export async function takeBackInvitation(env: Env, caller: Caller, id: string): Promise<Result<{ id: string }>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  if (await deleteInvitation(databaseOf(env), caller.orgId, id)) return { ok: true, value: { id } };
  return notFound("invitation", id);
}

/** The id of the signed-in person, if the invitation is addressed to that person; otherwise null. */
function knownBy({ person }: AcceptedBy, email: string): string | null {
  return person?.email === email ? person.id : null;
}

/** The person's keys follow the role within 5 s. Keys and invitations that they made and that exceed the role end. */
export async function changePerson(
  env: Env,
  caller: Caller,
  id: string,
  { role }: PersonPatch,
  now: number,
): Promise<Result<PersonView>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const changed = await changeRole(databaseOf(env), caller.orgId, { id, role, by: caller.who }, now);
  const member = await findMember(databaseOf(env), caller.orgId, id);
  if (member === null) return notFound("person", id);
  return changed ? { ok: true, value: personViewOf(member) } : await notChanged(env, caller, id, now);
}

/**
 * Ends the membership, revokes the person's keys in the organisation, and ends the keys and invitations that they made.
 */
export async function removePerson(env: Env, caller: Caller, id: string, now: number): Promise<Result<{ id: string }>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const member = await findMember(databaseOf(env), caller.orgId, id);
  if (member === null) return notFound("person", id);
  if (await removeMember(databaseOf(env), caller.orgId, { ...member, by: caller.who }, now))
    return { ok: true, value: { id } };
  const isThere = (await findMember(databaseOf(env), caller.orgId, id)) !== null;
  return isThere ? await notChanged(env, caller, id, now) : notFound("person", id);
}

/** The new key has no expiry or limit, so the calling key must have none. A signed-in person has no calling key. */
function refuseLimited(env: Env, { who, expiresAt, perMinute }: Caller): Result<never> | null {
  if (readId(env, who)?.kind === "person" || (expiresAt === null && perMinute.own === null)) return null;
  const message = "this key has an expiry or a request limit, so it cannot invite: use a key without them";
  return refuse("forbidden", message, null);
}

async function notChanged(env: Env, { orgId, who }: Caller, id: string, now: number): Promise<Result<never>> {
  const may = await whoStillMay(databaseOf(env), ofOrganization(orgId), who, "admin", now);
  if (may === null) return refuse("forbidden", LOST_RIGHT, null);
  return refuse("conflict", `${id} is the only owner: make somebody else an owner first`, "id");
}

function ended({ accepted_at, expires_at }: InvitationRow, now: number): Result<never> | null {
  if (accepted_at !== null) return refuse("conflict", "this invitation was already accepted", "token");
  if (expires_at <= now) return refuse("conflict", "this invitation has expired: ask for a new one", "token");
  return null;
}

/** The person who sent the invitation may no longer invite people. */
async function withdrawn(env: Env, { org_id, invited_by }: InvitationRow, now: number): Promise<Result<never> | null> {
  if ((await whoStillMay(databaseOf(env), ofOrganization(org_id), invited_by, "admin", now)) !== null) return null;
  return refuse(
    "conflict",
    "the person who sent this invitation may no longer invite people: ask for a new one",
    "token",
  );
}

/** Another request was faster, it was revoked, or the maximum is reached. `personId`: the intended member. */
async function whyNot(
  env: Env,
  { org_id, id, email }: InvitationRow,
  { now, personId, proven }: { readonly now: number; readonly personId: string; readonly proven: boolean },
): Promise<Result<never>> {
  const invitation = await findInvitation(databaseOf(env), org_id, id);
  if (invitation === null) return refuse("not_found", "this invitation does not exist", "token");
  const message = `the organisation already has the maximum of ${LIMITS.members} members or ${LIMITS.keys} keys`;
  const over = ended(invitation, now);
  if (over !== null) return over;
  const going = await refuseDeleted(env, org_id);
  if (going !== null) return going;
  const other = await personWhoProved(databaseOf(env), email, org_id);
  if (proven && other !== null && other !== personId) {
    return refuse("conflict", "the address accepted another invitation at the same time: try again", null);
  }
  return refuse("conflict", message, null);
}

async function findRepeated(env: Env, caller: Caller, options: CreateOptions) {
  const scope = ofOrganization(caller.orgId);
  const found = await replay(env, scope, OPERATION, options, (id) => findInvitation(databaseOf(env), caller.orgId, id));
  if (found === null || !found.ok) return found;
  const value = { ...invitationViewOf(found.value), token: null, url: null };
  return { ok: true, value: { value, replayed: true } } as const;
}
