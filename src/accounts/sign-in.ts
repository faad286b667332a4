/**
 * Signing in to the web page: a code for a key or a person, and the session that a browser starts with it or with a
 * key. Each is shown once and stored as a hash.
 */
import type { Caller } from "../contract/identity.ts";
import { mintId, mintToken } from "../core/ids.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { seconds } from "../kernel/db/page.ts";
import { hashToken, minting, readTokenKind, sha256Hex } from "../kernel/kit/secrets.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import { beginSession, findSignInCode, insertSignInCode } from "./queries/web-sessions.ts";
import type { SignInCode } from "./wire.ts";

const CODE_MS = 5 * 60_000;
const SESSION_MS = 12 * 3600_000;

/** Creates a code for the caller. `origin`: the platform's origin in the request. */
export async function createSignInCode(
  env: Env,
  caller: Caller,
  { origin, now }: { readonly origin: string; readonly now: number },
): Promise<Result<SignInCode>> {
  if (caller.session !== undefined) {
    return refuse("forbidden", "a session cannot create sign-in codes: use the key", null);
  }
  const code = mintToken("rkc", minting(env, now, caller.orgId));
  const expires_at = now + CODE_MS;
  const row = { hash: sha256Hex(code), created_at: now, expires_at, session_until: caller.expiresAt };
  if (!(await insertSignInCode(databaseOf(env), caller.orgId, { ...row, ...whoseIs(caller) }))) {
    return refuse("unauthorized", "this key was revoked", null);
  }
  const url = `${origin}/sign-in#code=${code}`;
  return { ok: true, value: { object: "sign_in_code", code, url, expires_at: seconds(expires_at) } };
}

/** The organisation, project, and key or person of a code, and the latest end of its session. */
export interface CodeOwner {
  readonly org_id: string;
  readonly project_id: string | null;
  readonly key_id: string | null;
  readonly person_id: string | null;
  readonly until: number | null;
}

/** Null for a code that does not exist, was used, or has expired. */
export async function ownerOfCode(env: Env, code: string, now: number): Promise<CodeOwner | null> {
  if (readTokenKind(env, code) !== "rkc") return null;
  const found = await findSignInCode(databaseOf(env), hashToken(code));
  if (found === null || found.expires_at <= now) return null;
  const { org_id, project_id, key_id, person_id, session_until } = found;
  return { org_id, project_id, key_id, person_id, until: session_until };
}

/** The owner of a session that starts with a key. */
export function sessionOwnerOf(caller: Caller): CodeOwner {
  return { org_id: caller.orgId, ...whoseIs(caller), until: caller.expiresAt };
}

export interface BegunSession {
  readonly id: string;
  /** The value of the cookie. */
  readonly token: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** Starts a session and uses up its code. Null: the code was used meanwhile, or its key was revoked. */
export async function openSession(
  env: Env,
  { org_id, until, ...whose }: CodeOwner,
  code: string | null,
  now: number,
): Promise<BegunSession | null> {
  const mint = minting(env, now, org_id);
  const [id, token] = [mintId("ses", mint), mintToken("rks", mint)];
  const expires_at = Math.min(now + SESSION_MS, until ?? Number.POSITIVE_INFINITY);
  const row = { id, ...whose, hash: sha256Hex(token), created_at: now, expires_at };
  const begun = await beginSession(databaseOf(env), org_id, row, code === null ? null : sha256Hex(code));
  return begun ? { id, token, expiresAt: expires_at } : null;
}

function whoseIs({ who, projectId }: Caller) {
  const isPerson = who.startsWith("per_");
  return { project_id: projectId, key_id: isPerson ? null : who, person_id: isPerson ? who : null };
}
