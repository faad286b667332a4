/**
 * Routes for signing in to the web page: codes, sessions that start with a code or a key, and their end. For the cookie
 * see session-cookie.ts, for a session's permissions callers.ts.
 */

import { Deleted } from "../../contract/endpoint.ts";
import { type Caller, permits } from "../../contract/identity.ts";
import { EXAMPLE } from "../../contract/primitives.ts";
import { databaseOf } from "../../kernel/db/database.ts";
import { readBody } from "../../kernel/http/answer.ts";
import { logDone } from "../../kernel/http/audit.ts";
import { Refusal, unwrap } from "../../kernel/http/errors.ts";
import { idempotencyKeyOf } from "../../kernel/http/input.ts";
import { type ApiContext, type Operation, pathParam, serviceOf } from "../../kernel/http/operation.ts";
import { PageQuery, pageReply } from "../../kernel/http/page.ts";
import { mayTryAgain, refuseStranger } from "../../kernel/http/strangers.ts";
import { hashToken, readTokenKind } from "../../kernel/kit/secrets.ts";
import { callerOfKey, callerOfSession } from "../callers.ts";
import {
  deleteWebSession,
  findWebSession,
  listWebSessions,
  type SessionReach,
  sessionViewOf,
} from "../queries/web-sessions.ts";
import type { AccountsService } from "../service.ts";
import { refuseForeignSignIn, sessionCookie } from "../session-cookie.ts";
import { type BegunSession, type CodeOwner, sessionOwnerOf } from "../sign-in.ts";
import { SessionList, SessionRequest, SignInCode, WhoAmI } from "../wire.ts";
import { callerViewOf } from "./organizations.ts";

const service = serviceOf<AccountsService>("accounts");

const OWN = "/v1/session";
const FOLDER = "/v1/sessions";
const OWN_ALONE = "Otherwise only sessions of the same key or person are visible.";
const GONE = {
  description: "The session has ended",
  schema: Deleted,
  example: { object: "session", id: EXAMPLE.session },
};

export const sessionOperations: readonly Operation[] = [
  {
    id: "createSignInCode",
    route: "POST /v1/sign-in-codes",
    permission: "caller",
    reach: "organization",
    summary: "Create a one-time code that signs a browser in as the caller",
    description:
      "It can be used once, within 5 minutes, and is shown only once. A session cannot create one: use a key, or sign in with Cloudflare Access.",
    headers: { "Idempotency-Key": "accepted but not needed: unused codes expire" },
    reply: { status: 201, description: "The code, and a link that signs in with it", schema: SignInCode },
    errors: ["forbidden"],
    handle: makeCode,
  },
  {
    id: "createSession",
    route: `POST ${OWN}`,
    permission: "anybody",
    reach: "organization",
    summary: "Sign a browser in with a one-time code or an API key",
    description:
      "The reply sets a cookie that scripts cannot read. The session has the permissions of its key or person, and ends with them, at the latest after 12 hours. Only for the platform's own pages: `Origin` is its address.",
    headers: { "Idempotency-Key": "accepted but not needed: a code is used once" },
    body: { schema: SessionRequest, example: { code: EXAMPLE.signInCode } },
    reply: {
      status: 201,
      description: "Who is signed in",
      schema: WhoAmI,
      example: { session: { id: EXAMPLE.session, expires_at: 1_792_043_200 } },
      headers: { "set-cookie": "the session, only for pages of this platform" },
    },
    errors: ["unauthorized", "forbidden", "unknown_field", "rate_limited", "storage_full"],
    handle: signIn,
  },
  {
    id: "deleteSession",
    urgent: true,
    route: `DELETE ${OWN}`,
    permission: "caller",
    reach: "organization",
    summary: "Sign the calling browser out",
    description: "A request with an API key gets `not_found`, because it has no session.",
    reply: { ...GONE, headers: { "set-cookie": "removes the cookie" } },
    errors: ["forbidden", "not_found"],
    handle: signOut,
  },
  {
    id: "listSessions",
    route: `GET ${FOLDER}`,
    permission: "caller",
    reach: "organization",
    summary: "List the browsers that are signed in",
    description: `With \`admin\` those of everybody. ${OWN_ALONE}`,
    query: PageQuery,
    reply: { description: "One page of sessions, some of which may just have ended", schema: SessionList },
    errors: ["forbidden"],
    handle: listAll,
  },
  {
    id: "revokeSession",
    urgent: true,
    route: `DELETE ${FOLDER}/{id}`,
    permission: "caller",
    reach: "organization",
    summary: "End a session: it is refused within 5 seconds",
    description: `With \`admin\` anybody's. ${OWN_ALONE}`,
    reply: GONE,
    errors: ["forbidden"],
    handle: revokeOne,
  },
];

async function makeCode(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const {
    env,
    var: { caller, now },
  } = context;
  const { origin } = new URL(context.req.url);
  return context.json(unwrap(await service(context).createSignInCode(env, caller, { origin, now: now() })), 201);
}

async function signIn(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  refuseForeignSignIn(context);
  const request = await readBody(context, SessionRequest);
  const { env } = context;
  const now = context.var.now();
  const owner = await ownerOf(context, request);
  const begun = owner === null ? null : await service(context).openSession(env, owner, request.code ?? null, now);
  const caller = begun === null ? null : await callerOfSession(env, hashToken(begun.token));
  if (begun === null || caller === null) return await refuseStranger(context, refusalOf(request));
  await logDone(context, caller.orgId, { who: caller.who, action: "createSession", made: begun.id });
  context.header("set-cookie", sessionCookie(context, begun.token, secondsLeft(begun, now)));
  return context.json(await callerViewOf(env, caller), 201);
}

function ownerOf(context: ApiContext, { code, key }: SessionRequest): Promise<CodeOwner | null> {
  const {
    env,
    var: { now },
  } = context;
  if (code !== undefined) return service(context).ownerOfCode(env, code, now());
  return ownerOfKey(context, key ?? "");
}

async function ownerOfKey({ env, var: { now } }: ApiContext, key: string): Promise<CodeOwner | null> {
  const caller = readTokenKind(env, key) === "rk" ? await callerOfKey(env, hashToken(key)) : null;
  if (caller === null || isOver(caller, now())) return null;
  // Nothing else limits these, and each one adds a row and an audit entry. A code was counted when it was created.
  if (await mayTryAgain(env, caller.who)) return sessionOwnerOf(caller);
  const message = "this key signed in too often: try again later";
  throw new Refusal({ code: "rate_limited", message, param: null }, { headers: { "retry-after": "60" } });
}

function isOver({ expiresAt }: Caller, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

function refusalOf({ code }: SessionRequest): Refusal {
  const message = code === undefined ? "no such key" : "this code was already used or has expired: create a new one";
  return new Refusal({ code: "unauthorized", message, param: code === undefined ? "key" : "code" });
}

function secondsLeft({ expiresAt }: BegunSession, now: number): number {
  return Math.max(1, Math.floor((expiresAt - now) / 1000));
}

async function signOut(context: ApiContext): Promise<Response> {
  const { caller } = context.var;
  const { session } = caller;
  if (session === undefined) {
    throw new Refusal({
      code: "not_found",
      message: "this request was sent with an API key and has no session",
      param: null,
    });
  }
  await deleteWebSession(databaseOf(context.env), reachOf(caller), session.id);
  context.header("set-cookie", sessionCookie(context, null, 0));
  return context.json({ object: "session", id: session.id, deleted: true });
}

/** A caller without `admin` sees and ends only sessions of the same key or person. */
function reachOf({ orgId, projectId, who, permissions }: Caller): SessionReach {
  return { orgId, projectId, whose: permits(permissions, "admin") ? null : who };
}

async function listAll(context: ApiContext): Promise<Response> {
  const [database, reach] = [databaseOf(context.env), reachOf(context.var.caller)];
  const pages = {
    find: (id: string) => findWebSession(database, reach, id),
    list: (page: Parameters<typeof listWebSessions>[2]) => listWebSessions(database, reach, page),
  };
  return await pageReply(context, "a session", pages, sessionViewOf);
}

async function revokeOne(context: ApiContext): Promise<Response> {
  const id = pathParam(context, "id");
  if (await deleteWebSession(databaseOf(context.env), reachOf(context.var.caller), id)) {
    return context.json({ object: "session", id, deleted: true });
  }
  throw new Refusal({ code: "not_found", message: `no session ${id}`, param: "id" });
}
