/**
 * Identifies the caller of a request.
 *
 * Invariants. A token that this deployment never issued is refused by its MAC, without a look-up; too many such tokens
 * from one address are answered with 429. A key is looked up by its SHA-256, so the database never contains a usable
 * key. Results are cached in this isolate for 2 s, and a key's for longer while the settings of its organisation have the
 * same version (kernel/kit/settings-cache.ts). So a key that is revoked, expires or loses its organisation is refused
 * everywhere within 5 s. If the disk is full and the database does not answer, the last result is used.
 */

import type { Caller } from "../contract/identity.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { bearerOf, unauthorized } from "../kernel/http/bearer.ts";
import { Refusal } from "../kernel/http/errors.ts";
import { type ApiContext, type Authentication, REMEMBERED_MS } from "../kernel/http/operation.ts";
import { refuseStranger } from "../kernel/http/strangers.ts";
import { LruCache } from "../kernel/kit/caches.ts";
import { hashToken, readTokenKind, sha256Hex } from "../kernel/kit/secrets.ts";
import { isCurrent, SettingsVersions } from "../kernel/kit/settings-cache.ts";
import { failedForStorage } from "../kernel/kit/storage-faults.ts";
import { ASSERTION_HEADER, callerOfAccess, ORGANIZATION_HEADER } from "./access-identity.ts";
import { callerOfKey, callerOfSession, callerOfTrainer } from "./callers.ts";
import { RequestCounts } from "./count-requests.ts";
import { findProjectId } from "./queries/keys.ts";
import { sessionCookie, sessionTokenOf } from "./session-cookie.ts";

const REMEMBERED = 2000;

/** The caller. Null: unknown. `several`: a person of several organisations who names none of them. */
type Found = Caller | "several" | null;

interface Remembered<T> {
  readonly value: T;
  readonly until: number;
  /** When it was looked up, and the version of the organisation's settings that was known then. */
  readonly readAt: number;
  readonly version: string | null;
}

/** Recent results, by name. */
class Memory<T> {
  readonly #now: () => number;
  readonly #versions: SettingsVersions;
  readonly #kept = new LruCache<Remembered<T>>(REMEMBERED);

  constructor(now: () => number, versions: SettingsVersions) {
    this.#now = now;
    this.#versions = versions;
  }

  /**
   * `orgOf`: the organisation whose settings the last result depends on, if it is still the result while they do not
   * change; null: it is looked up again.
   */
  async get(env: Env, name: string, orgOf: (known: T | null) => string | null, find: () => Promise<T>): Promise<T> {
    const known = this.#kept.get(name);
    const now = this.#now();
    if (known !== undefined && known.until > now) return known.value;
    const orgId = orgOf(known?.value ?? null);
    const heard = orgId === null ? null : await this.#versions.of(env, orgId, now);
    const version = heard?.version ?? null;
    if (known !== undefined && heard !== null && isCurrent(known, version, now)) {
      this.#keep(name, { ...known, until: heard.at + REMEMBERED_MS });
      return known.value;
    }
    try {
      const value = await find();
      this.#keep(name, { value, until: now + REMEMBERED_MS, readAt: now, version });
      return value;
    } catch (thrown) {
      if (known !== undefined && (await failedForStorage(env, thrown))) return known.value;
      throw thrown;
    }
  }

  #keep(name: string, found: Remembered<T>): void {
    const since = this.#kept.get(name);
    // Another look-up started later and has already ended: its result is newer.
    if (since === undefined || since.until <= found.until) this.#kept.set(name, found);
  }
}

/** Results that can change without a change of settings: an assertion of Access, a session, a trainer's token. */
const lookedUp = () => null;

function orgOfKey(known: Found): string | null {
  return known === null || known === "several" ? null : known.orgId;
}

class Callers implements Authentication {
  readonly #now: () => number;
  /** By the SHA-256 of the token, or of the assertion and the headers it depends on. Null: unknown. */
  readonly #callers: Memory<Found>;
  /** Ids of projects, by organisation and by the given id or name; null: there is none. */
  readonly #projects: Memory<string | null>;
  readonly #requests: RequestCounts;

  constructor(now: () => number) {
    this.#now = now;
    const versions = new SettingsVersions(REMEMBERED_MS, REMEMBERED_MS);
    this.#callers = new Memory(now, versions);
    this.#projects = new Memory(now, versions);
    this.#requests = new RequestCounts(now);
  }

  count(context: ApiContext, caller: Caller): Promise<void> {
    return this.#requests.count(context, caller);
  }

  projectId(env: Env, orgId: string, nameOrId: string): Promise<string | null> {
    const ofExisting = (id: string | null) => (id === null ? null : orgId);
    const find = () => findProjectId(databaseOf(env), orgId, nameOrId);
    return this.#projects.get(env, `${orgId}/${nameOrId}`, ofExisting, find);
  }

  isIdentified(context: ApiContext): boolean {
    const { env, req } = context;
    const isByAccess = req.header(ASSERTION_HEADER) !== undefined && env.ACCESS_TEAM_URL !== "";
    return req.header("authorization") !== undefined || sessionTokenOf(context) !== null || isByAccess;
  }

  async callerOf(context: ApiContext): Promise<Caller> {
    const caller = await this.#asked(context);
    if (caller === null) return await refuseStranger(context, unauthorized("no such key"));
    if (caller === "several") {
      const message = "you are a member of several organisations: name one in the header Rollcall-Organization";
      throw new Refusal({ code: "invalid_request", message, param: "Rollcall-Organization" });
    }
    if ((caller.session?.expiresAt ?? Number.POSITIVE_INFINITY) <= this.#now()) throw signedOut(context);
    if (caller.expiresAt === null || caller.expiresAt > this.#now()) return caller;
    throw unauthorized("this key has expired or was replaced");
  }

  /** Identified by the token; without a token by the browser's session, or by Cloudflare Access. Null: unknown. */
  async #asked(context: ApiContext): Promise<Found> {
    const { env, req } = context;
    const header = req.header("authorization");
    const session = header === undefined ? await this.#signedIn(context) : undefined;
    if (session) return session;
    const assertion = req.header(ASSERTION_HEADER);
    if (header === undefined && assertion !== undefined && env.ACCESS_TEAM_URL !== "") {
      // The result depends on all of these.
      const received = [
        assertion,
        req.method,
        ...[ORGANIZATION_HEADER, "origin", "sec-fetch-site"].map((one) => req.header(one)),
      ];
      const name = sha256Hex(JSON.stringify(received));
      return await this.#callers.get(env, name, lookedUp, () => callerOfAccess(env, req.raw, this.#now()));
    }
    // The session has expired, and the request has no other identity.
    if (session === null) return await refuseStranger(context, signedOut(context));
    const token = bearerOf(context, "key");
    const kind = readTokenKind(env, token);
    if (kind !== "rk" && kind !== "rct") return null;
    const hashed = hashToken(token);
    if (kind === "rct") {
      return await this.#callers.get(env, hashed.hash, lookedUp, () => callerOfTrainer(env, hashed));
    }
    return await this.#callers.get(env, hashed.hash, orgOfKey, () => callerOfKey(env, hashed));
  }

  /** The caller of the session in the cookie; null: unknown; undefined: there is no cookie. */
  async #signedIn(context: ApiContext): Promise<Found | undefined> {
    const token = sessionTokenOf(context);
    if (token === null) return undefined;
    const { env } = context;
    if (readTokenKind(env, token) !== "rks") return null;
    const hashed = hashToken(token);
    return await this.#callers.get(env, hashed.hash, lookedUp, () => callerOfSession(env, hashed));
  }
}

/** `now`: epoch milliseconds. */
export function openAuthentication(now: () => number): Authentication {
  return new Callers(now);
}

/** Removes the cookie of an expired session, since scripts cannot. */
function signedOut(context: ApiContext): Refusal {
  const headers = { "www-authenticate": "Bearer", "set-cookie": sessionCookie(context, null, 0) };
  const message = "this session has expired: sign in again";
  return new Refusal({ code: "unauthorized", message, param: null }, { headers });
}
