/**
 * Bearer keys, and the tokens of trainers. Either is looked up by its SHA-256, so the database never holds one that
 * works. A trainer's token is good for what is marked as a trainer's, of its own run; anything else of that run is
 * forbidden to it, and another run does not exist. What was found stays in this isolate for a minute: a revoked key works
 * that much longer, and a busy one costs no query per request. On a full disk, where the database does not answer, what was
 * found last holds.
 */
import type { MiddlewareHandler } from "hono";
import type { Scope } from "../contract/scope.ts";
import { parseId } from "../core/ids.ts";
import { findKey, findTrainerToken } from "../db/keys.ts";
import { idMac, sha256Hex } from "../runtime/kit/secrets.ts";
import { failedForStorage } from "../runtime/kit/storage-faults.ts";
import { Refusal } from "./errors.ts";
import { type ApiContext, type ApiTypes, type Operation, pathParam } from "./operation.ts";

const CACHE_MS = 60_000;
/** Keys remembered at once; beyond it the memory starts anew rather than grow. */
const CACHE_KEYS = 1000;
const TRAINER_TOKEN = /^rct_/;

interface Caller {
  readonly scope: Scope;
  /** The one run a trainer's token is for; null for a key. */
  readonly run_id: string | null;
  /** Epoch milliseconds; null for good. */
  readonly expires_at: number | null;
}

type Auth = (operation: Pick<Operation, "trainer">) => MiddlewareHandler<ApiTypes>;

/** What guards an operation. All of them share one memory. */
export function bearerAuth(now: () => number): Auth {
  const known = new Map<string, { caller: Caller; until: number }>();
  const callerOf = async (env: Env, token: string): Promise<Caller> => {
    const hash = sha256Hex(token);
    const entry = known.get(hash);
    if (entry !== undefined && entry.until > now()) return entry.caller;
    const find = TRAINER_TOKEN.test(token) ? trainerOf : ownerOf;
    const caller = await find(env.DB, hash).catch(async (thrown: unknown) => {
      if (entry !== undefined && (await failedForStorage(env, thrown))) return entry.caller;
      // What was found before must not let in again what was refused since.
      known.delete(hash);
      throw thrown;
    });
    if (known.size >= CACHE_KEYS) known.clear();
    known.set(hash, { caller, until: now() + CACHE_MS });
    return caller;
  };
  return ({ trainer = false }) =>
    async (context, next) => {
      const token = tokenOf(context.req.header("authorization"));
      const caller = await callerOf(context.env, token);
      if (caller.expires_at !== null && caller.expires_at <= now()) {
        throw unauthorized("this token was replaced by another");
      }
      if (caller.run_id !== null) allowTrainer(context, caller.run_id, trainer);
      context.set("scope", caller.scope);
      return next();
    };
}

function tokenOf(header: string | undefined): string {
  const token = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (token !== undefined) return token;
  throw unauthorized("send your key as: Authorization: Bearer <key>");
}

async function ownerOf(database: D1Database, hash: string): Promise<Caller> {
  const key = await findKey(database, hash);
  if (key === null) throw unauthorized("no such key");
  if (key.project_id === null) throw unauthorized("name a project");
  const scope = { orgId: key.org_id, projectId: key.project_id };
  return { scope, run_id: null, expires_at: null };
}

async function trainerOf(database: D1Database, hash: string): Promise<Caller> {
  const token = await findTrainerToken(database, hash);
  if (token === null) throw unauthorized("no such token");
  const { org_id, project_id, run_id, expires_at } = token;
  return { scope: { orgId: org_id, projectId: project_id }, run_id, expires_at };
}

function allowTrainer(context: ApiContext, runId: string, trainer: boolean): void {
  if (!trainer) {
    const message = "a trainer's token is for the trainer of its run: send an API key";
    throw new Refusal({ code: "forbidden", message, param: null });
  }
  const id = pathParam(context, "id");
  const parsed = parseId(id, idMac(context.env.ROLLCALL_SECRET));
  const named = parsed?.kind === "lease" ? parsed.runId : id;
  if (named !== runId) throw new Refusal({ code: "not_found", message: `no ${id}`, param: "id" });
}

function unauthorized(message: string): Refusal {
  return new Refusal({ code: "unauthorized", message, param: null }, { headers: { "www-authenticate": "Bearer" } });
}
