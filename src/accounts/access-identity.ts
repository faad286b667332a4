/**
 * People signed in by an identity header that the operator trusts: Cloudflare Access stands before the deployment and
 * says who it let through, in a signed assertion. Off unless the deployment names its team and its audience.
 *
 * Invariants. Nothing of an assertion counts before its signature, issuer, audience and end are checked against the
 * team's own keys. Those are kept for an hour and by value; an assertion under a key that is not among them has them
 * read anew, at most once a minute. A browser adds the assertion to whatever a page of any origin has it send: a request
 * that changes something and comes from another origin is nobody's.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from "jose";
import { type Caller, DEFAULT_LIMITS, PERMISSIONS_OF } from "../contract/identity.ts";
import { wholeText } from "../kernel/clients/bounded-body.ts";
import { wayOut } from "../kernel/kit/address.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import { membershipOf } from "./queries/people.ts";

export const ORGANIZATION_HEADER = "rollcall-organization";
export const ASSERTION_HEADER = "cf-access-jwt-assertion";
const KEPT_MS = 3_600_000;
const SOONEST_AGAIN_MS = 60_000;
const WAIT_MS = 5000;
const CERTS_BYTES = 256 * 1024;
const ASSERTION_CHARACTERS = 16_384;
/** Seconds that clocks may differ. */
const TOLERANCE_S = 30;

interface TeamKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly readAt: number;
}
/** By the team's address. */
const known = new LruCache<TeamKeys>(4);

/** In other letters two addresses may have one lower case: that of the Kelvin sign is k. */
const ASCII = /^[\x21-\x7e]+$/;

export interface Identity {
  /** In lower case. */
  readonly email: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Who the request's assertion says is asking; null without one that holds, and for a person who is no member. `several`:
 * a member of several organisations, who names none in the header Rollcall-Organization. `now`: epoch milliseconds.
 * Throws where the team's keys cannot be read.
 */
export async function callerOfAccess(env: Env, request: Request, now: number): Promise<Caller | "several" | null> {
  const identity = await identityOf(env, request, now);
  if (identity === null) return null;
  const caller = await findCallerOfPerson(env.DB, identity.email, request.headers.get(ORGANIZATION_HEADER));
  return caller === null || caller === "several" ? caller : { ...caller, expiresAt: identity.expiresAt };
}

/** What the person with this address, in lower case, may do in the organisation, or without one in the only one of theirs. */
async function findCallerOfPerson(
  database: D1Database,
  email: string,
  orgId: string | null,
): Promise<Caller | "several" | null> {
  const membership = await membershipOf(database, email, orgId);
  if (membership === null || membership === "several") return membership;
  const { org_id, person_id, role, limits } = membership;
  return {
    orgId: org_id,
    projectId: null,
    permissions: PERMISSIONS_OF[role],
    who: person_id,
    runId: null,
    expiresAt: null,
    perMinute: { own: null, organization: { ...DEFAULT_LIMITS, ...limits }.requests_per_minute },
  };
}

/** Whom the request's assertion names, member or not; null without one that holds. Throws as `callerOfAccess` does. */
export async function identityOf(env: Env, request: Request, now: number): Promise<Identity | null> {
  const team = env.ACCESS_TEAM_URL.replace(/\/+$/, "");
  const assertion = request.headers.get(ASSERTION_HEADER);
  if (team === "" || env.ACCESS_AUDIENCE === "" || assertion === null) return null;
  if (assertion.length > ASSERTION_CHARACTERS || comesFromElsewhere(request)) return null;
  const check = async (keys: TeamKeys) => await verified(assertion, keys, { team, audience: env.ACCESS_AUDIENCE, now });
  const kept = known.get(team);
  const keys = kept !== undefined && now < kept.readAt + KEPT_MS ? kept : await readKeys(env, team, now);
  const first = await check(keys);
  if (first !== "unknown key") return first;
  if (now < keys.readAt + SOONEST_AGAIN_MS) return null;
  const second = await check(await readKeys(env, team, now));
  return second === "unknown key" ? null : second;
}

/** A page of another origin had the browser send it. */
function comesFromElsewhere({ method, url, headers }: Request): boolean {
  if (method === "GET" || method === "HEAD") return false;
  const [origin, site] = [headers.get("origin"), headers.get("sec-fetch-site")];
  if (origin !== null && origin !== new URL(url).origin) return true;
  return site !== null && site !== "same-origin" && site !== "none";
}

async function verified(
  assertion: string,
  { find }: TeamKeys,
  { team, audience, now }: { readonly team: string; readonly audience: string; readonly now: number },
): Promise<Identity | "unknown key" | null> {
  try {
    const { payload } = await jwtVerify(assertion, find, {
      issuer: team,
      audience,
      algorithms: ["RS256"],
      requiredClaims: ["exp", "iat"],
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(now),
    });
    const { email, exp } = payload;
    // A service's assertion names no person.
    if (typeof email !== "string" || !ASCII.test(email) || exp === undefined) return null;
    return { email: email.toLowerCase(), expiresAt: exp * 1000 };
  } catch (thrown) {
    if (thrown instanceof errors.JWKSNoMatchingKey) return "unknown key";
    if (thrown instanceof errors.JOSEError) return null;
    throw thrown;
  }
}

async function readKeys(env: Env, team: string, now: number): Promise<TeamKeys> {
  const url = new URL(`${team}/cdn-cgi/access/certs`);
  const reply = await wayOut(env, null)(url, { signal: AbortSignal.timeout(WAIT_MS) });
  const text = await wholeText(reply, CERTS_BYTES);
  if (!reply.ok) throw new Error(`${url.href} answered with ${reply.status}`);
  // Throws where it is no set of keys.
  const keys = { find: createLocalJWKSet(JSON.parse(text) as JSONWebKeySet), readAt: now };
  known.set(team, keys);
  return keys;
}
