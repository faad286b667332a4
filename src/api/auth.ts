/**
 * Bearer keys. A token is looked up by its SHA-256, so the database never holds one that works. What was found stays
 * in this isolate for a minute: a revoked key works that much longer, and a busy one costs no query per request.
 */
import type { MiddlewareHandler } from "hono";
import type { Scope } from "../core/scope.ts";
import { findKey } from "../db/keys.ts";
import { sha256Hex } from "../runtime/secrets.ts";
import { Refusal } from "./errors.ts";
import type { ApiTypes } from "./operation.ts";

const CACHE_MS = 60_000;
/** Keys remembered at once; beyond it the memory starts anew rather than grow. */
const CACHE_KEYS = 1000;

export function bearerAuth(now: () => number): MiddlewareHandler<ApiTypes> {
  const known = new Map<string, { scope: Scope; until: number }>();
  return async (context, next) => {
    const hash = sha256Hex(tokenOf(context.req.header("authorization")));
    const entry = known.get(hash);
    if (entry !== undefined && entry.until > now()) {
      context.set("scope", entry.scope);
      return next();
    }
    const scope = await scopeOf(context.env.DB, hash);
    if (known.size >= CACHE_KEYS) known.clear();
    known.set(hash, { scope, until: now() + CACHE_MS });
    context.set("scope", scope);
    return next();
  };
}

function tokenOf(header: string | undefined): string {
  const token = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (token !== undefined) return token;
  throw unauthorized("send your key as: Authorization: Bearer <key>");
}

async function scopeOf(database: D1Database, hash: string): Promise<Scope> {
  const key = await findKey(database, hash);
  if (key === null) throw unauthorized("no such key");
  return { orgId: key.org_id, projectId: key.project_id };
}

function unauthorized(message: string): Refusal {
  return new Refusal(
    { code: "unauthorized", message, param: null },
    { headers: { "www-authenticate": "Bearer" } },
  );
}
