/** Repeats of an Idempotency-Key, for resources that do not keep the key themselves (runs do). */
import type { Scope } from "../../contract/scope.ts";
import { type Remembered, recall } from "../db/idempotency-keys.ts";
import { keyReused, type Result, refuse } from "../messages/refusal.ts";
import { isSameText, sha256Hex } from "./secrets.ts";

export interface CreateOptions {
  readonly idempotencyKey: string | null;
  /** Keyed hash of the request. */
  readonly requestHash: string;
  /** The same under secrets before the current one: what a request that came before a rotation was kept as. */
  readonly requestHashesBefore?: readonly string[];
  /** Epoch milliseconds. */
  readonly now: number;
  /** Of the platform, as the caller addressed it; absent where nobody called. */
  readonly origin?: string;
  /** Who asks: `key_…`, `per_…`; absent where nobody called. */
  readonly payer?: string;
}

/** What a request made; `replayed`: the same request had made it before. */
export interface Made<T> {
  readonly value: T;
  readonly replayed: boolean;
}

export interface Creation<Row, Why extends string> {
  readonly operation: string;
  /** What the key made before, by its id. */
  readonly find: (id: string) => Promise<Row | null>;
  readonly make: () => Promise<Result<Row>>;
  /** Writes the row and its key, both or neither. */
  readonly insert: (row: Row, key: Remembered | null) => Promise<"inserted" | Why>;
  /** What is answered where it was not inserted. */
  readonly refusals: { readonly [Each in Why]: (row: Row) => Result<never> | Promise<Result<never>> };
}

/**
 * Makes a resource once for an Idempotency-Key. The same request may be faster at any moment, and is then what took the
 * name or the last place: so what is refused is looked up under the key once more.
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
 * What the key made before, as `find` reads it; null for a new key, or none. Refused: the key came with another request,
 * or what it made is there no more.
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
  const known = await recall(env.DB, scope, operation, idempotencyKey);
  if (known === null) return null;
  if (!isSameRequest(known.request_hash, options)) return keyReused();
  const value = await find(known.resource_id);
  if (value !== null) return { ok: true, value };
  return refuse("conflict", "what this Idempotency-Key created was deleted: use another key", null);
}

type Hashes = Pick<CreateOptions, "requestHash" | "requestHashesBefore">;

/** Whether what was kept is the hash of this request, under whichever secret. */
export function isSameRequest(kept: string | null, { requestHash, requestHashesBefore = [] }: Hashes): boolean {
  return kept !== null && [requestHash, ...requestHashesBefore].some((hash) => isSameText(hash, kept));
}

/** The same request, where what it asks for is more than its body: `about` says the rest. */
export function hashedWith(about: string, options: CreateOptions): CreateOptions {
  const hashOf = (hash: string) => sha256Hex(`${about} ${hash}`);
  const { requestHash, requestHashesBefore = [] } = options;
  return { ...options, requestHash: hashOf(requestHash), requestHashesBefore: requestHashesBefore.map(hashOf) };
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
