/**
 * What an Idempotency-Key made. The key is written in the same batch as its resource, so that both are there or
 * neither, and of two requests with one key at the same moment only one makes something: the other's batch fails.
 */
import { and, eq } from "drizzle-orm";
import { type DrizzleD1Database, drizzle } from "drizzle-orm/d1";
import type { Scope } from "../core/scope.ts";
import { ownedBy, within } from "./page.ts";
import { idempotencyKeys } from "./schema.ts";

export interface Remembered {
  /** The operation's id, such as `createEndpoint`. */
  readonly operation: string;
  readonly key: string;
  /** Keyed hash of the request (`keyedHash` of runtime/secrets.ts), never a plain one. */
  readonly request_hash: string;
  readonly resource_id: string;
  readonly created_at: number;
}

/** What the key made before; null for a key that is new to this operation. */
export async function recall(
  database: D1Database,
  scope: Scope,
  operation: string,
  key: string,
): Promise<Remembered | null> {
  const rows = await drizzle(database)
    .select()
    .from(idempotencyKeys)
    .where(
      and(
        ...within(idempotencyKeys, scope),
        eq(idempotencyKeys.operation, operation),
        eq(idempotencyKeys.key, key),
      ),
    );
  return rows[0] ?? null;
}

/** The statement that remembers, for the batch that makes the resource; it fails where the key is taken. */
export function remembering(d1: DrizzleD1Database, scope: Scope, entry: Remembered) {
  return d1.insert(idempotencyKeys).values({ ...entry, ...ownedBy(scope) });
}
