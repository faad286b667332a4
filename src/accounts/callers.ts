/** The caller for a key, a trainer's token or a browser's session. Each is looked up by its SHA-256. */

import { type Caller, DEFAULT_LIMITS, inBoth, PERMISSIONS_OF } from "../contract/identity.ts";
import { databaseOf, type HashedToken } from "../kernel/db/database.ts";
import { findTrainerToken } from "../kernel/db/trainer-tokens.ts";
import type { ApiContext } from "../kernel/http/operation.ts";
import { hashToken, readTokenKind } from "../kernel/kit/secrets.ts";
import { findApiKey } from "./queries/api-keys.ts";
import { type FoundKey, findKey } from "./queries/keys.ts";
import { findMember, type Member } from "./queries/people.ts";
import { findSession } from "./queries/web-sessions.ts";
import { sessionTokenOf } from "./session-cookie.ts";

/** Null for a key that does not exist, was revoked, or belongs to a person who is no longer a member. */
export async function callerOfKey(env: Env, token: HashedToken): Promise<Caller | null> {
  const found = await findKey(databaseOf(env), token);
  return found === null ? null : ownerOf(found);
}

/** The caller of the session's key or person, with their current permissions; null if these no longer exist. */
export async function callerOfSession(env: Env, token: HashedToken): Promise<Caller | null> {
  const found = await findSession(databaseOf(env), token);
  if (found === null) return null;
  const { key, limits, role } = found;
  const { id, org_id, key_id, person_id, expires_at } = found.session;
  const session = { id, expiresAt: expires_at };
  if (key_id !== null) {
    const owner = key === null ? null : ownerOf({ key, limits, role });
    return owner === null ? null : { ...owner, session };
  }
  if (role === null || person_id === null) return null;
  const { requests_per_minute } = { ...DEFAULT_LIMITS, ...limits };
  return {
    ...{ orgId: org_id, projectId: null, who: person_id, runId: null, session },
    permissions: PERMISSIONS_OF[role],
    // A person's session ends at its own expiry.
    expiresAt: expires_at,
    perMinute: { own: null, organization: requests_per_minute },
  };
}

/**
 * The person whose key or session the request contains, with their address; null for a program or an unknown caller.
 * Throws a Refusal if a page of another site made the browser send the session.
 */
export async function personWhoAsks(context: ApiContext): Promise<Pick<Member, "id" | "email"> | null> {
  const { env } = context;
  const bearer = context.req.header("authorization");
  const token = bearer === undefined ? sessionTokenOf(context) : bearer.replace(/^Bearer +/i, "").trim();
  const [kind, find] = bearer === undefined ? (["rks", callerOfSession] as const) : (["rk", callerOfKey] as const);
  if (token === null || readTokenKind(env, token) !== kind) return null;
  const caller = await find(env, hashToken(token));
  const ends = [caller?.expiresAt, caller?.session?.expiresAt].map((at) => at ?? Number.POSITIVE_INFINITY);
  if (caller === null || Math.min(...ends) <= context.var.now()) return null;
  const { orgId, who } = caller;
  const key = who.startsWith("per_") ? null : await findApiKey(databaseOf(env), { orgId, projectId: null }, who);
  const id = key === null ? who : key.person_id;
  return id === null ? null : await findMember(databaseOf(env), orgId, id);
}

/** Null for an unknown token. */
export async function callerOfTrainer(env: Env, token: HashedToken): Promise<Caller | null> {
  const found = await findTrainerToken(databaseOf(env), token);
  if (found === null) return null;
  const { org_id, project_id, run_id, expires_at } = found.token;
  const limits = { ...DEFAULT_LIMITS, ...found.limits };
  return {
    orgId: org_id,
    projectId: project_id,
    permissions: ["trainer"],
    who: run_id,
    runId: run_id,
    expiresAt: expires_at,
    perMinute: { own: null, organization: limits.requests_per_minute },
  };
}

function ownerOf({ key, role, ...found }: FoundKey): Caller | null {
  if (key.revoked_at !== null) return null;
  const limits = { ...DEFAULT_LIMITS, ...found.limits };
  const whole = {
    orgId: key.org_id,
    projectId: key.project_id,
    who: key.id,
    runId: null,
    expiresAt: key.expires_at,
    perMinute: { own: key.requests_per_minute, organization: limits.requests_per_minute },
  };
  if (key.person_id === null) return { ...whole, permissions: key.scopes };
  return role === null ? null : { ...whole, permissions: inBoth(key.scopes, PERMISSIONS_OF[role]) };
}
