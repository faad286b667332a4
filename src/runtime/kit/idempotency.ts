/** Repeats of an Idempotency-Key, for resources that do not keep the key themselves (runs do). */
import type { Scope } from "../../contract/scope.ts";
import { type Remembered, recall } from "../../db/idempotency-keys.ts";
import { keyReused, type Result, refuse } from "../contract/refusal.ts";

export interface CreateOptions {
  readonly idempotencyKey: string | null;
  /** Keyed hash of the request. */
  readonly requestHash: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Of the platform, as the caller addressed it; absent where nobody called. */
  readonly origin?: string;
}

/**
 * What the key made before, as `find` reads it; null for a new key, or none. Refused: the key came with another request,
 * or what it made is there no more.
 */
export async function replay<T>(
  env: Env,
  scope: Scope,
  operation: string,
  { idempotencyKey, requestHash }: CreateOptions,
  find: (id: string) => Promise<T | null>,
): Promise<Result<T> | null> {
  if (idempotencyKey === null) return null;
  const known = await recall(env.DB, scope, operation, idempotencyKey);
  if (known === null) return null;
  if (known.request_hash !== requestHash) return keyReused();
  const value = await find(known.resource_id);
  if (value !== null) return { ok: true, value };
  return refuse("conflict", "what this Idempotency-Key made was deleted since", null);
}

/** What is to be remembered beside a new resource; null without a key. */
export function toRemember(
  operation: string,
  resource_id: string,
  { idempotencyKey, requestHash, now }: CreateOptions,
): Remembered | null {
  if (idempotencyKey === null) return null;
  return {
    operation,
    key: idempotencyKey,
    request_hash: requestHash,
    resource_id,
    created_at: now,
  };
}
