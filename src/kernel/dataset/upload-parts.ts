/**
 * Receives a dataset in parts, for files that are too long for one request.
 *
 * Each part is an object of its own in R2, and the list of those objects is the only record of what has arrived. So a
 * part is there whole or not at all, the same part can be sent again, and a client that lost its connection continues
 * where the list ends. Parts of R2's own multipart uploads could not be listed here, and a kill between a part and the
 * record of it would leave the two in disagreement. When the upload is completed, the parts are read in order and
 * stored as the rows of one request are.
 *
 * Invariants. An upload becomes at most one dataset: the statement that writes the dataset also notes it at the upload.
 * A part that arrives while its upload ends is deleted by whichever of the two comes last. An upload that is neither
 * completed nor deleted is deleted by the daily reconciliation of its project.
 */
import { type DatasetUploadPart, type DatasetUploadProgress, PART_TOO_LARGE } from "../../contract/dataset-upload.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import { mintId } from "../../core/ids.ts";
import { databaseOf } from "../db/database.ts";
import {
  deleteUpload,
  findUpload,
  insertUpload,
  insertUploaded,
  type NewUpload,
  uploadViewOf,
} from "../db/dataset-uploads.ts";
import { datasetViewOf, findDataset, type NewDataset } from "../db/datasets.ts";
import type { DatasetUploadRow } from "../db/schema.ts";
import { chunksOf } from "../kit/body-chunks.ts";
import { FileUpload } from "../kit/file-upload.ts";
import { type CreateOptions, createOnce, type Made } from "../kit/idempotency.ts";
import { partKey, partsFolder } from "../kit/names.ts";
import { minting, readId } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
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
import { type Body, bytesOf, refusalOfBody } from "./upload.ts";

/** What a client says about the file before it sends it. */
export type FileInParts = DatasetUpload & Pick<NewUpload, "bytes" | "sha256">;

const PART_BYTES = LIMITS.datasetPartBytes;
const MOST = `the organisation already has ${LIMITS.openUploads} unfinished uploads, the maximum: complete or delete one first (DELETE /v1/dataset-uploads/{id}, \`rollcall dataset upload delete\`)`;

export async function beginUpload(
  env: Env,
  scope: Scope,
  file: FileInParts,
  options: CreateOptions,
): Promise<Result<Made<NewUpload>>> {
  return await createOnce<NewUpload, "taken" | "gone" | "full">(env, scope, options, {
    operation: "createDatasetUpload",
    find: (id) => findUpload(databaseOf(env), scope, id),
    make: async () => {
      const checked = await checkUpload(env, scope, file);
      if (!checked.ok) return checked;
      const { now } = options;
      const id = mintId("up", minting(env, now));
      return { ok: true, value: { id, ...file, dataset_id: null, created_at: now } };
    },
    insert: (row, key) => insertUpload(databaseOf(env), scope, row, key),
    refusals: { taken: keyReused, gone: projectGone, full: () => refuse("conflict", MOST, null) },
  });
}

export async function readUpload(env: Env, scope: Scope, id: string): Promise<Result<DatasetUploadProgress>> {
  const found = await openUpload(env, scope, id);
  if (!found.ok) return found;
  const stored = await storedParts(env, scope, id, new Subrequests());
  const parts = stored.map(({ number, bytes }) => ({ number, bytes }));
  return { ok: true, value: { ...uploadViewOf(found.value), parts } };
}

/** Stores a part; one with the same number is replaced. `number`: from 1. */
export async function receivePart(
  env: Env,
  scope: Scope,
  id: string,
  number: number,
  body: Body,
  options: Pick<StoreOptions, "now" | "allowed">,
): Promise<Result<DatasetUploadPart>> {
  const before = await unfinished(env, scope, id, options.now);
  if (!before.ok) return before;
  return await withUploadMemory(env, scope, async (onChunk) => {
    const subrequests = new Subrequests();
    const key = partKey(scope, id, number);
    // A part is never longer than what is stored at once, so the part before is replaced as a whole or not at all.
    const part = new FileUpload(env.STORE, key, subrequests);
    try {
      for await (const chunk of bytesOf(body, { bytes: PART_BYTES, message: PART_TOO_LARGE }, onChunk))
        await part.write(chunk);
    } catch (thrown) {
      return refusalOfBody(thrown);
    }
    if (part.bytes === 0) return refuse("invalid_request", "the part is empty", null);
    const { allowed } = options;
    if (allowed !== undefined && !(await allowed())) {
      return refuse("unauthorized", "this key lost its permission during the upload", null);
    }
    const { bytes } = await part.finish();
    // The upload may have ended while the part arrived. It ends before its parts are listed for the last time.
    const after = await subrequests.fetch(() => unfinished(env, scope, id, options.now));
    if (after.ok) return { ok: true, value: { number, bytes } };
    await subrequests.fetch(() => env.STORE.delete(key));
    return after;
  });
}

/**
 * Makes a dataset of the parts, once: a repeat returns the same dataset. `bytes`: size of the file. If it is refused,
 * the upload and its parts stay, so that a part can be sent again.
 */
export async function completeUpload(
  env: Env,
  scope: Scope,
  id: string,
  bytes: number,
  options: StoreOptions,
): Promise<Uploaded> {
  return await withUploadMemory(env, scope, async (onChunk) => {
    const subrequests = new Subrequests();
    const before = await openUpload(env, scope, id);
    if (!before.ok) return before;
    const made =
      (await madeBy(env, scope, before.value)) ??
      (await makeDataset(env, scope, before.value, bytes, subrequests, { ...options, onChunk }));
    // Another completion may have taken the name and deleted the parts meanwhile: its dataset is this one's, too.
    const after = made.ok ? null : await findUpload(databaseOf(env), scope, id);
    const answer = (after && (await madeBy(env, scope, after))) ?? made;
    if (answer.ok) await dropParts(env, scope, id, subrequests);
    return answer;
  });
}

async function makeDataset(
  env: Env,
  scope: Scope,
  upload: DatasetUploadRow,
  bytes: number,
  subrequests: Subrequests,
  options: StoreOptions,
): Promise<Uploaded> {
  const { id } = upload;
  const begun = await unfinished(env, scope, id, options.now);
  if (!begun.ok) return begun;
  if (upload.bytes !== null && upload.bytes !== bytes) {
    return refuse("invalid_request", `bytes: the upload was created for a file of ${upload.bytes} bytes`, "bytes");
  }
  const parts = (await storedParts(env, scope, id, subrequests)).slice(0, partsOf(bytes));
  const incomplete = refusedParts(parts, bytes);
  if (incomplete !== null) return incomplete;
  const checked = await checkUpload(env, scope, upload);
  if (!checked.ok) return checked;
  const chunks = readParts(env, parts, subrequests, options.onChunk);
  const keep = (dataset: NewDataset) => insert(env, scope, upload, dataset);
  const source = { chunks, readsRest: false, keep };
  try {
    return await storeRows(env, scope, upload, checked.value, source, options);
  } catch (thrown) {
    if (thrown instanceof PartChanged) return refuse("conflict", thrown.message, null);
    throw thrown;
  }
}

async function insert(env: Env, scope: Scope, upload: DatasetUploadRow, dataset: NewDataset): Promise<Uploaded | null> {
  const { id, sha256 } = upload;
  if (sha256 !== null && sha256 !== dataset.sha256) {
    const message = `sha256: the parts have the SHA-256 ${dataset.sha256}, and the upload was created for ${sha256}: delete the upload and send the file again`;
    return refuse("invalid_request", message, "sha256");
  }
  const inserted = await insertUploaded(databaseOf(env), scope, id, dataset);
  if (inserted === "inserted") return null;
  if (inserted === "taken") return nameTaken(upload.name);
  const now = await openUpload(env, scope, id);
  if (!now.ok) return now;
  // Another request completed it while this one read the parts.
  return (await madeBy(env, scope, now.value)) ?? projectGone();
}

/** The dataset that a completed upload became; null for one that is not complete. */
async function madeBy(env: Env, scope: Scope, { dataset_id }: DatasetUploadRow): Promise<Uploaded | null> {
  if (dataset_id === null) return null;
  const dataset = await findDataset(databaseOf(env), scope, { id: dataset_id });
  if (dataset === null) return refuse("not_found", `${dataset_id}, which this upload became, was deleted`, "id");
  return { ok: true, value: { dataset: datasetViewOf(dataset), replayed: true } };
}

/** Deletes an upload with its parts. The dataset that it became stays. */
export async function endUpload(env: Env, scope: Scope, id: string): Promise<Result<{ id: string }>> {
  const found = await openUpload(env, scope, id);
  if (!found.ok) return found;
  await dropUpload(env, scope, id, new Subrequests());
  return { ok: true, value: { id } };
}

/** A kill after the first step leaves an upload without parts, which can be deleted again. */
export async function dropUpload(env: Env, scope: Scope, id: string, subrequests: Subrequests): Promise<void> {
  await dropParts(env, scope, id, subrequests);
  await subrequests.fetch(() => deleteUpload(databaseOf(env), scope, id));
  // A part that arrived meanwhile saw the upload.
  await dropParts(env, scope, id, subrequests);
}

async function openUpload(env: Env, scope: Scope, id: string): Promise<Result<DatasetUploadRow>> {
  const row = readId(env, id)?.kind === "upload" ? await findUpload(databaseOf(env), scope, id) : null;
  return row === null ? refuse("not_found", `no dataset upload ${id}`, "id") : { ok: true, value: row };
}

/** Refused if it is completed or has expired: no part may be added. */
async function unfinished(env: Env, scope: Scope, id: string, now: number): Promise<Result<DatasetUploadRow>> {
  const found = await openUpload(env, scope, id);
  if (!found.ok) return found;
  const { dataset_id, created_at } = found.value;
  if (dataset_id !== null) return refuse("conflict", `the upload is already completed: it is ${dataset_id}`, "id");
  if (created_at + LIMITS.uploadMs <= now)
    return refuse("not_found", `the dataset upload ${id} has expired: create another`, "id");
  return found;
}

interface StoredPart extends DatasetUploadPart {
  readonly key: string;
  readonly etag: string;
}

/** By number. */
async function storedParts(env: Env, scope: Scope, id: string, subrequests: Subrequests): Promise<StoredPart[]> {
  const prefix = partsFolder(scope, id);
  const { objects } = await subrequests.fetch(() => env.STORE.list({ prefix }));
  return objects.map(({ key, size, etag }) => ({ number: Number(key.slice(prefix.length)), bytes: size, key, etag }));
}

async function dropParts(env: Env, scope: Scope, id: string, subrequests: Subrequests): Promise<void> {
  const parts = await storedParts(env, scope, id, subrequests);
  if (parts.length > 0) await subrequests.fetch(() => env.STORE.delete(parts.map(({ key }) => key)));
}

function partsOf(bytes: number): number {
  return Math.ceil(bytes / PART_BYTES);
}

/** Every part must be there, and have the size that follows from the size of the file. */
function refusedParts(parts: readonly StoredPart[], bytes: number): Result<never> | null {
  const sizes = new Map(parts.map((part) => [part.number, part.bytes]));
  for (let number = 1; number <= partsOf(bytes); number += 1) {
    const size = Math.min(PART_BYTES, bytes - (number - 1) * PART_BYTES);
    const stored = sizes.get(number);
    if (stored === size) continue;
    const wrong = stored === undefined ? "is missing" : `has ${stored} bytes`;
    const message = `part ${number} ${wrong}: a file of ${bytes} bytes needs ${size} bytes there: send the part again`;
    return refuse("conflict", message, "bytes");
  }
  return null;
}

/** A part was replaced or deleted while the parts were read. */
class PartChanged extends Error {
  override readonly name = "PartChanged";
}

async function* readParts(
  env: Env,
  parts: readonly StoredPart[],
  subrequests: Subrequests,
  onChunk?: () => void,
): AsyncGenerator<Uint8Array> {
  for (const { key, etag, number } of parts) {
    const part = await subrequests.fetch(() => env.STORE.get(key, { onlyIf: { etagMatches: etag } }));
    if (part === null || !("body" in part)) {
      throw new PartChanged(`part ${number} was changed while the parts were read: complete the upload again`);
    }
    for await (const chunk of chunksOf(part.body)) {
      onChunk?.();
      yield chunk;
    }
  }
}
