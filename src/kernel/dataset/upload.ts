/**
 * Stores an uploaded dataset: every row is checked while the file is written to R2. Then the index is written, and last
 * the row in D1, which makes the dataset exist.
 *
 * Invariants. If anything is wrong with the file, nothing of it is left; the same if the caller disconnects. A kill may
 * leave objects in R2 that no dataset names, but never a dataset without its rows.
 */
import { canonicalJson, type Json, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { mintId } from "../../core/ids.ts";
import { countJson } from "../../core/schema/json-counts.ts";
import { datasetViewOf, findDataset, insertDataset, type NewDataset } from "../db/datasets.ts";
import { type Remembered, recall } from "../db/idempotency-keys.ts";
import { chooseEnvironment } from "../environment/choose-environment.ts";
import { pinOf } from "../environment/environments.ts";
import { BrokenBodyError, receivedChunks } from "../kit/body-chunks.ts";
import { type FairScheduler, PROCESS_SCHEDULER, stepsOfJson } from "../kit/fair-scheduler.ts";
import { FairSemaphore } from "../kit/fair-semaphore.ts";
import { FileHash, FileUpload, type StoredFile } from "../kit/file-upload.ts";
import { isSameRequest } from "../kit/idempotency.ts";
import { uploadKeys } from "../kit/names.ts";
import { outlive } from "../kit/outlive.ts";
import { LineTooLong, type RowLine, RowLines } from "../kit/row-lines.ts";
import { keyedHashes, minting } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { keyReused, projectGone, type Refusal, type Result, refuse } from "../messages/refusal.ts";
import { refusedRow } from "./resolve.ts";
import { IndexWriter } from "./rows.ts";

export interface DatasetUpload {
  readonly name: string | null;
  /** The environment (`id` or `id@version`) whose row schema every row is checked against. */
  readonly environment: string | null;
  readonly environment_args: JsonObject;
}

export interface UploadOptions {
  readonly idempotencyKey: string | null;
  readonly now: number;
  /** `LIMITS.datasetBytes` unless a test sets less. */
  readonly maxBytes?: number;
  /** The scheduling turns; those of the process unless a test has its own. */
  readonly scheduler?: FairScheduler;
  /** Called for each piece that arrives. */
  readonly onChunk?: () => void;
  /** Called when all has arrived: whether the sender may still store it. */
  readonly allowed?: () => Promise<boolean>;
}

type Uploaded = Result<{ dataset: DatasetView; replayed: boolean }>;
type Body = ReadableStream<Uint8Array> | null;

const OPERATION = "createDataset";
const TOO_MANY = `too many uploads at once (the limit is ${LIMITS.uploadsAtOnce}): try again later`;

/** A sender that sends nothing for this long has already been given up. */
const uploads = new FairSemaphore(LIMITS.uploadsAtOnce, 2 * LIMITS.bodyPauseMs);

export async function createDataset(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  body: Body,
  options: UploadOptions,
): Promise<Uploaded> {
  const reservation = uploads.take(scope.orgId, Date.now());
  if (reservation === null) return refuse("rate_limited", TOO_MANY, null);
  const watched = { ...options, onChunk: () => reservation.stay(Date.now()) };
  // The runtime drops the work of a caller that disconnects, but what was begun here must still be cleaned up.
  return await outlive(receive(env, scope, upload, body, watched).catch(refusalOfBody).finally(reservation.leave));
}

async function receive(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  body: Body,
  options: UploadOptions,
): Promise<Uploaded> {
  const made = await madeBefore(env, scope, options);
  if (made !== null) return await replay(env, scope, upload, made, await hashOf(body, options));
  const chosen = await checkedBy(env, scope, upload);
  if (!chosen.ok) return chosen;
  const taken = await takenName(env, scope, upload);
  if (taken !== null) return taken;
  return await new Reception(env, scope, upload, chosen.value, options).take(body);
}

/** What rows are checked against; null: only that they are tasks at all. */
type Against = { environment: AnyEnvironment; stored: NewDataset["environment"] } | null;

async function checkedBy(env: Env, scope: Scope, upload: DatasetUpload): Promise<Result<Against>> {
  const { environment: named, environment_args: args } = upload;
  if (named === null) return { ok: true, value: null };
  const chosen = await chooseEnvironment(env, scope, named, args);
  if (!chosen.ok) return chosen;
  const { registered, environment } = chosen.value;
  return { ok: true, value: { environment, stored: { ...pinOf(registered), args } } };
}

class Reception {
  readonly #env: Env;
  readonly #scope: Scope;
  readonly #upload: DatasetUpload;
  readonly #against: Against;
  readonly #options: UploadOptions;
  readonly #subrequests = new Subrequests();
  readonly #id: string;
  readonly #keys: ReturnType<typeof uploadKeys>;
  readonly #file: FileUpload;
  readonly #index = new IndexWriter();
  readonly #lines = new RowLines(LIMITS.taskRowBytes);
  #rows = 0;

  constructor(env: Env, scope: Scope, upload: DatasetUpload, against: Against, options: UploadOptions) {
    this.#env = env;
    this.#scope = scope;
    this.#upload = upload;
    this.#against = against;
    this.#options = options;
    this.#id = mintId("ds", minting(env, options.now));
    this.#keys = uploadKeys(scope, this.#id);
    this.#file = new FileUpload(env.STORE, this.#keys.key, this.#subrequests);
  }

  async take(body: Body): Promise<Uploaded> {
    const received = await this.#receive(body);
    if (!received.ok) return received;
    const { idempotencyKey, allowed } = this.#options;
    if (allowed !== undefined && !(await allowed())) {
      await this.#subrequests.fetch(() => this.#env.STORE.delete(Object.values(this.#keys)));
      return refuse("unauthorized", "this key lost its permission during the upload", null);
    }
    const dataset = this.#rowOf(received.value);
    const key = idempotencyKey === null ? null : this.#remembered(idempotencyKey, received.value);
    const inserted = await this.#subrequests.fetch(() => insertDataset(this.#env.DB, this.#scope, dataset, key));
    if (inserted === "inserted") {
      return { ok: true, value: { dataset: datasetViewOf(dataset), replayed: false } };
    }
    await this.#subrequests.fetch(() => this.#env.STORE.delete(Object.values(this.#keys)));
    return inserted === "gone" ? projectGone() : await this.#overtaken(received.value);
  }

  /** Stores the file and its index. If it fails, nothing of them is left. */
  async #receive(body: Body): Promise<Result<StoredFile>> {
    try {
      const refusal = await this.#readRows(body);
      if (refusal === null) {
        const stored = await this.#file.finish();
        const index = this.#index.encode();
        await this.#subrequests.fetch(() => this.#env.STORE.put(this.#keys.index_key, index));
        return { ok: true, value: stored };
      }
      await this.#file.discard();
      return { ok: false, error: refusal };
    } catch (thrown) {
      await this.#file.discard();
      throw thrown;
    }
  }

  /** Reads to the end even after a refusal: a caller that is still sending would not see the answer. */
  async #readRows(body: Body): Promise<Refusal | null> {
    let refusal: Refusal | null = null;
    for await (const chunk of bytesOf(body, this.#options)) {
      refusal ??= await this.#check(() => this.#lines.push(chunk));
      if (refusal === null) await this.#file.write(chunk);
    }
    refusal ??= await this.#check(() => this.#lines.end());
    if (refusal !== null || this.#rows > 0) return refusal;
    return { code: "invalid_request", message: "the file has no rows", param: null };
  }

  async #check(read: () => Iterable<RowLine>): Promise<Refusal | null> {
    const { scheduler = PROCESS_SCHEDULER } = this.#options;
    try {
      for (const line of read()) {
        const text = textOf(line.bytes);
        if (text === null) return invalidJson(line, "the file is not UTF-8 text");
        const counts = countJson(text);
        await scheduler.spend(this.#scope.orgId, stepsOfJson(text, counts));
        const refusal =
          counts.values > LIMITS.taskRowValues ? tooManyValues(line) : refusedLine(this.#against, line, text);
        if (refusal !== null) return refusal;
        this.#index.note(line.row, line.offset, line.bytes.length);
        this.#rows = line.row + 1;
      }
      return null;
    } catch (thrown) {
      if (!(thrown instanceof LineTooLong)) throw thrown;
      const message = `line ${thrown.line}: the row is larger than ${LIMITS.taskRowBytes} bytes, the maximum`;
      return { code: "too_large", message, param: `rows[${thrown.row}]` };
    }
  }

  #rowOf({ bytes, sha256 }: StoredFile): NewDataset {
    const { name } = this.#upload;
    const environment = this.#against?.stored ?? null;
    const created_at = this.#options.now;
    return { id: this.#id, name, rows: this.#rows, bytes, sha256, environment, created_at };
  }

  #remembered(key: string, file: StoredFile): Remembered {
    return {
      operation: OPERATION,
      key,
      request_hash: requestHashes(this.#env, this.#upload, file.sha256)[0],
      resource_id: this.#id,
      created_at: this.#options.now,
    };
  }

  /** Another request took the name, or used the key, while this one was read. */
  async #overtaken({ sha256 }: StoredFile): Promise<Uploaded> {
    const made = await madeBefore(this.#env, this.#scope, this.#options);
    if (made === null) return nameTaken(this.#upload.name);
    return await replay(this.#env, this.#scope, this.#upload, made, sha256);
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Null if the bytes are not UTF-8. */
function textOf(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch (thrown) {
    if (thrown instanceof TypeError) return null;
    throw thrown;
  }
}

function refusedLine(against: Against, line: RowLine, text: string): Refusal | null {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return invalidJson(line, thrown.message);
    throw thrown;
  }
  return refusedRow(against?.environment ?? null, { text, value }, line.row, `line ${line.line}`);
}

function invalidJson({ row, line }: RowLine, why: string): Refusal {
  return { code: "invalid_row", message: `line ${line}: not valid JSON: ${why}`, param: `rows[${row}]` };
}

function tooManyValues({ row, line }: RowLine): Refusal {
  const message = `line ${line}: a row holds at most ${LIMITS.taskRowValues} JSON values`;
  return { code: "too_large", message, param: `rows[${row}]` };
}

async function takenName(env: Env, scope: Scope, { name }: DatasetUpload): Promise<Result<never> | null> {
  if (name === null || (await findDataset(env.DB, scope, { name })) === null) return null;
  return nameTaken(name);
}

function nameTaken(name: string | null): Result<never> {
  return refuse("conflict", `a dataset called ${name} already exists: delete it or use another name`, "name");
}

async function madeBefore(env: Env, scope: Scope, { idempotencyKey }: UploadOptions): Promise<Remembered | null> {
  return idempotencyKey === null ? null : await recall(env.DB, scope, OPERATION, idempotencyKey);
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
  const dataset = await findDataset(env.DB, scope, { id: made.resource_id });
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

function refusalOfBody(thrown: unknown): Result<never> {
  if (thrown instanceof BodyTooLarge) return refuse("too_large", thrown.message, null);
  if (thrown instanceof BrokenBodyError && !thrown.slow) return refuse("invalid_request", thrown.message, null);
  throw thrown;
}

/** Throws BodyTooLarge, and BrokenBodyError. */
async function* bytesOf(
  body: Body,
  { maxBytes = LIMITS.datasetBytes, onChunk }: UploadOptions,
): AsyncGenerator<Uint8Array> {
  let received = 0;
  for await (const chunk of body === null ? [] : receivedChunks(body)) {
    onChunk?.();
    received += chunk.length;
    if (received > maxBytes) {
      const message = `a dataset is at most ${LIMITS.datasetBytes} bytes: split the file`;
      throw new BodyTooLarge(message);
    }
    yield chunk;
  }
}

async function hashOf(body: Body, options: UploadOptions): Promise<string> {
  const hash = new FileHash();
  for await (const chunk of bytesOf(body, options)) await hash.update(chunk);
  return await hash.digest();
}
