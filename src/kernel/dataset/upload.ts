/** Receives a dataset in one request. A larger file comes in parts (upload-parts.ts). */
import { BODY_TOO_LARGE } from "../../contract/dataset-upload.ts";
import { canonicalJson } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import { databaseOf } from "../db/database.ts";
import { datasetViewOf, findDataset, insertDataset, type NewDataset } from "../db/datasets.ts";
import { type Remembered, recall } from "../db/idempotency-keys.ts";
import { BrokenBodyError, receivedChunks } from "../kit/body-chunks.ts";
import { FileHash } from "../kit/file-upload.ts";
import { isSameRequest } from "../kit/idempotency.ts";
import { keyedHashes } from "../kit/secrets.ts";
import { keyReused, projectGone, type Result, refuse } from "../messages/refusal.ts";
import {
  checkUpload,
  type DatasetUpload,
  nameTaken,
  type StoreOptions,
  storeRows,
  type Uploaded,
  withUploadMemory,
} from "./store-rows.ts";

export interface UploadOptions extends StoreOptions {
  readonly idempotencyKey: string | null;
  /** `LIMITS.datasetBodyBytes` unless a test sets less. */
  readonly maxBytes?: number;
}

export type Body = ReadableStream<Uint8Array> | null;

const OPERATION = "createDataset";

export async function createDataset(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  body: Body,
  options: UploadOptions,
): Promise<Uploaded> {
  return await withUploadMemory(env, scope, (onChunk) =>
    receive(env, scope, upload, body, { ...options, onChunk }).catch(refusalOfBody),
  );
}

async function receive(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  body: Body,
  options: UploadOptions,
): Promise<Uploaded> {
  const { maxBytes = LIMITS.datasetBodyBytes, onChunk } = options;
  const chunks = bytesOf(body, { bytes: maxBytes, message: BODY_TOO_LARGE }, onChunk);
  const made = await madeBefore(env, scope, options);
  if (made !== null) return await replay(env, scope, upload, made, await hashOf(chunks));
  const checked = await checkUpload(env, scope, upload);
  if (!checked.ok) return checked;
  const keep = (dataset: NewDataset) => insert(env, scope, upload, dataset, options);
  return await storeRows(env, scope, upload, checked.value, { chunks, readsRest: true, keep }, options);
}

async function insert(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  dataset: NewDataset,
  options: UploadOptions,
): Promise<Uploaded | null> {
  const key = options.idempotencyKey;
  const inserted = await insertDataset(
    databaseOf(env),
    scope,
    dataset,
    key === null ? null : remembered(env, key, upload, dataset),
  );
  if (inserted === "inserted") return null;
  if (inserted === "gone") return projectGone();
  // Another request took the name, or used the key, while this one was read.
  const made = await madeBefore(env, scope, options);
  return made === null ? nameTaken(upload.name) : await replay(env, scope, upload, made, dataset.sha256);
}

function remembered(env: Env, key: string, upload: DatasetUpload, dataset: NewDataset): Remembered {
  return {
    operation: OPERATION,
    key,
    request_hash: requestHashes(env, upload, dataset.sha256)[0],
    resource_id: dataset.id,
    created_at: dataset.created_at,
  };
}

async function madeBefore(env: Env, scope: Scope, { idempotencyKey }: UploadOptions): Promise<Remembered | null> {
  return idempotencyKey === null ? null : await recall(databaseOf(env), scope, OPERATION, idempotencyKey);
}

/** The dataset that this key created before, if the request is the same. */
async function replay(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  made: Remembered,
  sha256: string,
): Promise<Uploaded> {
  const [requestHash, ...requestHashesBefore] = requestHashes(env, upload, sha256);
  if (!isSameRequest(made.request_hash, { requestHash, requestHashesBefore })) return keyReused();
  const dataset = await findDataset(databaseOf(env), scope, { id: made.resource_id });
  if (dataset === null) {
    const message = `${made.resource_id}, created with this Idempotency-Key, was deleted: use another key`;
    return refuse("conflict", message, "Idempotency-Key");
  }
  return { ok: true, value: { dataset: datasetViewOf(dataset), replayed: true } };
}

function requestHashes(env: Env, upload: DatasetUpload, sha256: string) {
  return keyedHashes(env, canonicalJson({ ...upload, sha256 }));
}

/** The body is too long, whatever its rows are. */
class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

/** The refusal for a body that is too long or broke off; other errors are thrown again. */
export function refusalOfBody(thrown: unknown): Result<never> {
  if (thrown instanceof BodyTooLarge) return refuse("too_large", thrown.message, null);
  if (thrown instanceof BrokenBodyError && !thrown.slow) return refuse("invalid_request", thrown.message, null);
  throw thrown;
}

/** The chunks of a body of at most `most.bytes`. Throws what `refusalOfBody` takes. */
export async function* bytesOf(
  body: Body,
  most: { readonly bytes: number; readonly message: string },
  onChunk?: () => void,
): AsyncGenerator<Uint8Array> {
  let received = 0;
  for await (const chunk of body === null ? [] : receivedChunks(body)) {
    onChunk?.();
    received += chunk.length;
    if (received > most.bytes) throw new BodyTooLarge(most.message);
    yield chunk;
  }
}

async function hashOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = new FileHash();
  for await (const chunk of chunks) await hash.update(chunk);
  return await hash.digest();
}
