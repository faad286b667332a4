/**
 * Who asks, and whether they may.
 *
 * Invariants. A token that this deployment never made is refused by arithmetic: it costs no look-up, and too many of
 * them from one address are 429. A key is looked up by its SHA-256, so the database never holds one that works. What was
 * found stays in this isolate for 2 s: a key that is revoked, expires or loses its organisation is refused everywhere
 * within 5 s, and a request that lasts longer than those 2 s is asked again before it is answered. A trainer's token
 * is good for what is marked as a trainer's, of its own run; anything else of that run is forbidden to it, and another
 * run does not exist. On a full disk, where the database does not answer, what was found last holds.
 */
import type { MiddlewareHandler } from "hono";
import { DEFAULT_PROJECT } from "../contract/accounts.ts";
import { type Caller, permits } from "../contract/identity.ts";
import type { Scope } from "../contract/scope.ts";
import { findProjectId } from "../db/keys.ts";
import { RequestLeases, type Taken } from "../runtime/account/request-leases.ts";
import { LruCache } from "../runtime/kit/caches.ts";
import { logError } from "../runtime/kit/log.ts";
import { requestsObject } from "../runtime/kit/names.ts";
import { readId, readTokenKind, sha256Hex } from "../runtime/kit/secrets.ts";
import { failedForStorage } from "../runtime/kit/storage-faults.ts";
import { ASSERTION_HEADER, callerOfAccess, ORGANIZATION_HEADER } from "../runtime/service/access-identity.ts";
import { withAudit } from "./audit-log.ts";
import { bearerOf, unauthorized } from "./bearer.ts";
import { callerOfKey, callerOfSession, callerOfTrainer } from "./callers.ts";
import { Refusal } from "./errors.ts";
import { type ApiContext, type ApiTypes, type Operation, pathParam } from "./operation.ts";
import { keepPace } from "./pace.ts";
import { sessionCookie, sessionTokenOf } from "./session-cookie.ts";
import { refuseStranger } from "./strangers.ts";

/** How long what was found of a caller, or of a project's name, is remembered. */
export const REMEMBERED_MS = 2000;
/** Who counts requests and did not answer is not asked again for so long. */
const UNCOUNTED_MS = 1000;
const REMEMBERED = 2000;
/** CPU of a request whose operation states no `costMs`, in milliseconds. */
const ORDINARY_MS = 4;
/** What a project is known by: an id of ours, or a name. */
const NAME_OR_ID = /^[\w.-]{1,200}$/;
export const PROJECT_HEADER = "rollcall-project";

interface Remembered<T> {
  readonly value: T;
  readonly until: number;
}

/** Who asks. Null: nobody. `several`: a person of several organisations who names none of them. */
type Found = Caller | "several" | null;

/** What guards operations. All of them share one memory. */
export class Guard {
  readonly #now: () => number;
  /** By SHA-256 of the token, or of the assertion and what it is good for; null: it is nobody's. */
  readonly #callers = new LruCache<Remembered<Found>>(REMEMBERED);
  /** Ids of projects, by organisation and by what a caller named; null: there is none. */
  readonly #projects = new LruCache<Remembered<string | null>>(REMEMBERED);
  readonly #requests = new RequestLeases();
  /** Counters that did not answer, until when they are not asked. */
  readonly #uncounted = new LruCache<number>(REMEMBERED);

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Lets a request in that may do what the operation is, with its caller and its project; refuses any other. */
  of(operation: Operation): MiddlewareHandler<ApiTypes> {
    return async (context, next) => {
      const begun = this.#now();
      const caller = await this.#caller(context);
      await this.#count(context, caller);
      if (operation.urgent !== true) await keepPace(caller.orgId, operation.costMs ?? ORDINARY_MS);
      const scope = await this.#admit(context, caller, operation);
      context.set("caller", caller);
      if (scope !== null) context.set("scope", scope);
      const stillAllowed = () => this.#stillAllowed(context, operation, scope);
      context.set("stillAllowed", stillAllowed);
      await withAudit(context, operation, next);
      if (this.#now() - begun < REMEMBERED_MS || (await stillAllowed())) return;
      await context.res.body?.cancel();
      // Nothing of the reply goes out, its headers neither.
      context.res = undefined;
      throw unauthorized("this key lost its right while the request was waiting");
    };
  }

  /** The project of an operation that is about one. */
  async #admit(context: ApiContext, caller: Caller, operation: Operation): Promise<Scope | null> {
    this.#allow(context, caller, operation);
    return operation.reach === "organization" ? null : await this.#scope(context, caller);
  }

  /** True while the same request would be let in to the same project. */
  async #stillAllowed(context: ApiContext, operation: Operation, scope: Scope | null): Promise<boolean> {
    try {
      const now = await this.#admit(context, await this.#caller(context), operation);
      return now?.projectId === scope?.projectId;
    } catch (thrown) {
      if (thrown instanceof Refusal) return false;
      throw thrown;
    }
  }

  async #caller(context: ApiContext): Promise<Caller> {
    const caller = await this.#asked(context);
    if (caller === null) return await refuseStranger(context, unauthorized("no such key"));
    if (caller === "several") {
      const message = "you are a member of several: name an organisation in the header Rollcall-Organization";
      throw new Refusal({ code: "invalid_request", message, param: "Rollcall-Organization" });
    }
    if ((caller.session?.expiresAt ?? Number.POSITIVE_INFINITY) <= this.#now()) throw signedOut(context);
    if (caller.expiresAt === null || caller.expiresAt > this.#now()) return caller;
    throw unauthorized("this key has expired, or was replaced by another");
  }

  /** By the token; without one by the browser's session, or by what Cloudflare Access says. Null: it is nobody's. */
  async #asked(context: ApiContext): Promise<Found> {
    const { env, req } = context;
    const header = req.header("authorization");
    const session = header === undefined ? await this.#signedIn(context) : undefined;
    if (session) return session;
    const assertion = req.header(ASSERTION_HEADER);
    if (header === undefined && assertion !== undefined && env.ACCESS_TEAM_URL !== "") {
      // What it is good for hangs on all of these.
      const heard = [
        assertion,
        req.method,
        ...[ORGANIZATION_HEADER, "origin", "sec-fetch-site"].map((one) => req.header(one)),
      ];
      const name = sha256Hex(JSON.stringify(heard));
      return await this.#found(env, name, () => callerOfAccess(env, req.raw, this.#now()));
    }
    // A session that is over, and nobody else to be.
    if (session === null) return await refuseStranger(context, signedOut(context));
    const token = bearerOf(context, "key");
    const kind = readTokenKind(env, token);
    if (kind !== "rk" && kind !== "rct") return null;
    const hash = sha256Hex(token);
    return await this.#found(env, hash, () => (kind === "rk" ? callerOfKey : callerOfTrainer)(env, hash));
  }

  /** Whose session the cookie holds; null: nobody's; undefined: there is no cookie. */
  async #signedIn(context: ApiContext): Promise<Found | undefined> {
    const token = sessionTokenOf(context);
    if (token === null) return undefined;
    const { env } = context;
    if (readTokenKind(env, token) !== "rks") return null;
    const hash = sha256Hex(token);
    return await this.#found(env, hash, () => callerOfSession(env, hash));
  }

  /** `name`: what it is remembered by. */
  async #found(env: Env, name: string, find: () => Promise<Found>): Promise<Found> {
    const known = this.#callers.get(name);
    if (known !== undefined && known.until > this.#now()) return known.value;
    const until = this.#now() + REMEMBERED_MS;
    try {
      const value = await find();
      const since = this.#callers.get(name);
      // A look-up that began earlier and ends later knows less.
      if (since === undefined || since.until <= until) this.#callers.set(name, { value, until });
      return value;
    } catch (thrown) {
      if (known !== undefined && (await failedForStorage(env, thrown))) return known.value;
      throw thrown;
    }
  }

  /** Counts the request against the key's own limit and its organisation's. */
  async #count(context: ApiContext, caller: Caller): Promise<void> {
    const { own, organization } = caller.perMinute;
    // What its own limit refuses takes nothing from the others of the organisation.
    const taken = await this.#take(context.env, caller.orgId, caller.who, own);
    const shared = taken?.refusedMs ? null : await this.#take(context.env, caller.orgId, null, organization);
    const tightest = [taken, shared].flatMap((one) => one ?? []).toSorted((a, b) => rank(a) - rank(b))[0];
    if (tightest === undefined) return;
    context.set("limitHeaders", {
      "x-ratelimit-limit-requests": String(tightest.limit),
      "x-ratelimit-remaining-requests": String(tightest.remaining),
      "x-ratelimit-reset-requests": `${Math.ceil(tightest.resetMs / 1000)}s`,
    });
    if (tightest.refusedMs === null) return;
    const message = `this is more than ${tightest.limit} requests a minute`;
    const headers = { "retry-after": String(Math.ceil(tightest.refusedMs / 1000)) };
    throw new Refusal({ code: "rate_limited", message, param: null }, { headers });
  }

  /** Null: there is no limit, or who counts is not there. Better a request too many than a platform that answers nobody. */
  async #take(env: Env, orgId: string, keyId: string | null, limit: number | null): Promise<Taken | null> {
    const name = `${orgId}/${keyId ?? ""}`;
    if (limit === null || (this.#uncounted.get(name) ?? 0) > this.#now()) return null;
    const counter = requestsObject(env, orgId, keyId);
    try {
      return await this.#requests.take(name, limit, { now: this.#now, pause }, (asked) => counter.take(asked));
    } catch (thrown) {
      this.#uncounted.set(name, this.#now() + UNCOUNTED_MS);
      logError("requests are not counted", { org_id: orgId, ...(keyId !== null && { key_id: keyId }) }, thrown);
      return null;
    }
  }

  #allow(context: ApiContext, caller: Caller, { permission, trainer, whole }: Operation): void {
    if (caller.runId !== null) {
      allowTrainer(context, caller.runId, trainer === true);
      return;
    }
    if (permission === "caller" || permission === "anybody") return;
    const needed = [permission].flat();
    const permitted = needed.some((one) => permits(caller.permissions, one));
    if (permitted && !(whole === true && caller.projectId !== null)) return;
    const lacks = `this key lacks the scope ${needed.join(" or ")}`;
    const message = permitted ? "this key is for one project, and this takes a key of the whole organisation" : lacks;
    throw new Refusal({ code: "forbidden", message, param: null });
  }

  /** The project that the key is for, or that the request names. */
  async #scope(context: ApiContext, { orgId, projectId }: Caller): Promise<Scope> {
    const given = context.req.header(PROJECT_HEADER);
    if (projectId !== null && (given === undefined || given === projectId)) return { orgId, projectId };
    const named = given ?? DEFAULT_PROJECT;
    // Of any other text nothing is remembered, and nobody is asked.
    const found = NAME_OR_ID.test(named) ? await this.#projectId(context.env, orgId, named) : null;
    if (found !== null && (projectId === null || projectId === found)) return { orgId, projectId: found };
    if (given !== undefined) {
      throw new Refusal({ code: "not_found", message: `no project ${named}`, param: "Rollcall-Project" });
    }
    const message = "this key is for a whole organisation: name a project in the header Rollcall-Project";
    throw new Refusal({ code: "invalid_request", message, param: "Rollcall-Project" });
  }

  async #projectId(env: Env, orgId: string, named: string): Promise<string | null> {
    const name = `${orgId}/${named}`;
    const known = this.#projects.get(name);
    if (known !== undefined && known.until > this.#now()) return known.value;
    const until = this.#now() + REMEMBERED_MS;
    try {
      const value = await findProjectId(env.DB, orgId, named);
      this.#projects.set(name, { value, until });
      return value;
    } catch (thrown) {
      if (known !== undefined && (await failedForStorage(env, thrown))) return known.value;
      throw thrown;
    }
  }
}

function rank({ refusedMs, remaining }: Taken): number {
  return refusedMs === null ? remaining : -refusedMs;
}

async function pause(ms: number): Promise<void> {
  await scheduler.wait(ms);
}

function allowTrainer(context: ApiContext, runId: string, trainer: boolean): void {
  if (!trainer) {
    const message = "a trainer's token is for the trainer of its run: send an API key";
    throw new Refusal({ code: "forbidden", message, param: null });
  }
  const id = pathParam(context, "id");
  const parsed = readId(context.env, id);
  const named = parsed?.kind === "lease" ? parsed.runId : id;
  if (named !== runId) throw new Refusal({ code: "not_found", message: `no ${id}`, param: "id" });
}

/** Takes a cookie away that is good for nothing any more: no script can. */
function signedOut(context: ApiContext): Refusal {
  const headers = { "www-authenticate": "Bearer", "set-cookie": sessionCookie(context, null, 0) };
  const message = "this session is over: sign in again";
  return new Refusal({ code: "unauthorized", message, param: null }, { headers });
}
