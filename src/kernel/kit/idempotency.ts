/** Replays of an Idempotency-Key, for resources that do not store the key themselves (runs do). */
import type { Scope } from "../../contract/scope.ts";
import { databaseOf } from "../db/database.ts";
import { type Remembered, recall } from "../db/idempotency-keys.ts";
import { keyReused, type Result, refuse } from "../messages/refusal.ts";
import { isSameText, sha256Hex } from "./secrets.ts";

export interface CreateOptions {
  readonly idempotencyKey: string | null;
  /** Keyed hash of the request. */
  readonly requestHash: string;
  /** The hash of the request under earlier secrets, for requests that were stored before a rotation. */
  readonly requestHashesBefore?: readonly string[];
  /** Epoch milliseconds. */
  readonly now: number;
  /** Origin of the platform, as the caller addressed it; absent if no request came from outside. */
  readonly origin?: string;
  /** Who makes the request: `key_…`, `per_…`; absent if no request came from outside. */
  readonly payer?: string;
}

/** What a request created. `replayed`: an earlier, identical request had created it. */
export interface Made<T> {
  readonly value: T;
  readonly replayed: boolean;
}

export interface Creation<Row, Why extends string> {
  readonly operation: string;
  /** What the key created before, by its id. */
  readonly find: (id: string) => Promise<Row | null>;
  readonly make: () => Promise<Result<Row>>;
  /** Writes the row and its key, both or neither. */
  readonly insert: (row: Row, key: Remembered | null) => Promise<"inserted" | Why>;
  /** The answer if the row was not inserted, by reason. */
  readonly refusals: { readonly [Each in Why]: (row: Row) => Result<never> | Promise<Result<never>> };
}

/**
 * Creates a resource once for each Idempotency-Key. An identical request may be faster, and may then be the one that
 * took the name or the last place. So after a refusal the key is looked up once more.
 */
export async function createOnce<Row extends { readonly id: string }, Why extends string>(
  env: Env,
  scope: Scope,
  options: CreateOptions,
  { operation, find, make, insert, refusals }: Creation<Row, Why>,
): Promise<Result<Made<Row>>> {
  const repeated = async (): Promise<Result<Made<Row>> | null> => {
    const found = await replay(env, scope, operation, options, find);
    return found?.ok ? { ok: true, value: { value: found.value, replayed: true } } : found;
  };
  const before = await repeated();
  if (before !== null) return before;
  const made = await make();
  if (!made.ok) return (await repeated()) ?? made;
  const outcome = await insert(made.value, toRemember(operation, made.value.id, options));
  if (outcome !== "inserted") return (await repeated()) ?? (await refusals[outcome](made.value));
  return { ok: true, value: { value: made.value, replayed: false } };
}

/**
 * What the key created before, as `find` reads it; null if the key is new or absent. Refused if the key came with
 * another request, or if what it created no longer exists.
 */
export async function replay<T>(
  env: Env,
  scope: Scope,
  operation: string,
  options: CreateOptions,
  find: (id: string) => Promise<T | null>,
): Promise<Result<T> | null> {
  const { idempotencyKey } = options;
  if (idempotencyKey === null) return null;
  const known = await recall(databaseOf(env), scope, operation, idempotencyKey);
  if (known === null) return null;
  if (!isSameRequest(known.request_hash, options)) return keyReused();
  const value = await find(known.resource_id);
  if (value !== null) return { ok: true, value };
  return refuse("conflict", "what this Idempotency-Key created was deleted: use another key", null);
}

type Hashes = Pick<CreateOptions, "requestHash" | "requestHashesBefore">;

/** Whether the stored hash is the hash of this request, under the current secret or an earlier one. */
export function isSameRequest(kept: string | null, { requestHash, requestHashesBefore = [] }: Hashes): boolean {
  return kept !== null && [requestHash, ...requestHashesBefore].some((hash) => isSameText(hash, kept));
}

/** Extends the request's hash by `about`, for requests that are defined by more than their body. */
export function hashedWith(about: string, options: CreateOptions): CreateOptions {
  const hashOf = (hash: string) => sha256Hex(`${about} ${hash}`);
  const { requestHash, requestHashesBefore = [] } = options;
  return { ...options, requestHash: hashOf(requestHash), requestHashesBefore: requestHashesBefore.map(hashOf) };
}

/** The key's record, to be stored with a new resource; null without a key. */
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
