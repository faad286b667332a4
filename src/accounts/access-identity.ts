/**
 * Identifies people by an identity header that the operator trusts: Cloudflare Access in front of the deployment sends
 * a signed assertion that names the person. Off unless the deployment sets its team and its audience.
 *
 * Invariants. An assertion is used only after its signature, issuer, audience and expiry are checked with the team's
 * own keys. These keys are cached for an hour; if an assertion has an unknown key, they are read again, at most once a
 * minute. A browser adds the assertion to every request, even from a page of another origin. A request that changes
 * something and comes from another origin therefore has no identity.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from "jose";
import { type Caller, DEFAULT_LIMITS, PERMISSIONS_OF } from "../contract/identity.ts";
import { wholeText } from "../kernel/clients/bounded-body.ts";
import { type Database, databaseOf } from "../kernel/db/database.ts";
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
/** The tolerated difference between clocks, in seconds. */
const TOLERANCE_S = 30;

interface TeamKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly readAt: number;
}
/** By the team's address. */
const known = new LruCache<TeamKeys>(4);

/** Addresses must be ASCII: outside ASCII, two addresses can have the same lower case. The Kelvin sign becomes k. */
const ASCII = /^[\x21-\x7e]+$/;

export interface Identity {
  /** In lower case. */
  readonly email: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * The caller named by the request's assertion. Null if there is no valid assertion, or the person is not a member.
 * `several`: the person is a member of several organisations, and the header Rollcall-Organization names none. `now`:
 * epoch milliseconds. Throws if the team's keys cannot be read.
 */
export async function callerOfAccess(env: Env, request: Request, now: number): Promise<Caller | "several" | null> {
  const identity = await identityOf(env, request, now);
  if (identity === null) return null;
  const caller = await findCallerOfPerson(databaseOf(env), identity.email, request.headers.get(ORGANIZATION_HEADER));
  return caller === null || caller === "several" ? caller : { ...caller, expiresAt: identity.expiresAt };
}

/** The caller for this address (in lower case). Without `orgId`, the person must have exactly one organisation. */
async function findCallerOfPerson(
  database: Database,
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

/** The person in the request's assertion, a member or not. Null without a valid one. Throws as `callerOfAccess`. */
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

/** The request was sent by a page of another origin. */
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
    // The assertion of a service token names no person.
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
  // Throws if the reply is not a key set.
  const keys = { find: createLocalJWKSet(JSON.parse(text) as JSONWebKeySet), readAt: now };
  known.set(team, keys);
  return keys;
}
