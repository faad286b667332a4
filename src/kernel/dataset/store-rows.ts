/**
 * Stores the rows of an uploaded file as a dataset: every row is checked while the file is written to R2. Then the index
 * is written, and last the row in D1, which makes the dataset exist.
 *
 * Invariants. If anything is wrong with the file, nothing of it is left; the same if its source breaks off. A kill may
 * leave objects in R2 that no dataset names, but never a dataset without its rows.
 */
import type { Json, JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import { mintId } from "../../core/ids.ts";
import type { EnvironmentCode } from "../../core/protocol/environment-code.ts";
import { countJson } from "../../core/schema/json-counts.ts";
import { databaseOf } from "../db/database.ts";
import { datasetViewOf, findDataset, type NewDataset } from "../db/datasets.ts";
import { chooseEnvironment } from "../environment/choose-environment.ts";
import { pinOf } from "../environment/environments.ts";
import { type FairScheduler, PROCESS_SCHEDULER, stepsOfJson } from "../kit/fair-scheduler.ts";
import { FileUpload, type StoredFile } from "../kit/file-upload.ts";
import { isolateMemory } from "../kit/isolate-memory.ts";
import { uploadKeys } from "../kit/names.ts";
import { outlive } from "../kit/outlive.ts";
import { LineTooLong, type RowLine, RowLines } from "../kit/row-lines.ts";
import { minting } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Refusal, type Result, refuse } from "../messages/refusal.ts";
import { refusedRow } from "./resolve.ts";
import { IndexWriter } from "./rows.ts";

export interface DatasetUpload {
  readonly name: string | null;
  /** The environment (`id` or `id@version`) whose row schema every row is checked against. */
  readonly environment: string | null;
  readonly environment_args: JsonObject;
}

export interface StoreOptions {
  readonly now: number;
  /** The scheduling turns; those of the process unless a test has its own. */
  readonly scheduler?: FairScheduler;
  /** Called for each piece that arrives. */
  readonly onChunk?: () => void;
  /** Called when all has arrived: whether the sender may still store it. */
  readonly allowed?: () => Promise<boolean>;
}

export type Uploaded = Result<{ dataset: DatasetView; replayed: boolean }>;

export interface RowSource {
  /** The bytes of the file. A chunk is valid until the next one is requested. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /** True: it is read to its end even after a refusal, since a caller that is still sending would not see the answer. */
  readonly readsRest: boolean;
  /** Writes the dataset. Null if it was written, else the answer; then nothing of the file is left. */
  readonly keep: (dataset: NewDataset) => Promise<Uploaded | null>;
}

const TOO_MANY = "too many uploads at once: try again later";

/**
 * Runs an upload with memory for one part of its file. `onChunk` must be called for each piece that arrives. The
 * runtime drops the work of a caller that disconnects, but what was begun here must still be cleaned up.
 */
export async function withUploadMemory<T>(
  env: Env,
  { orgId }: Scope,
  upload: (onChunk: () => void) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { uploads } = isolateMemory(env);
  const reservation = await uploads.wait(orgId, LIMITS.pageWaitMs, {}, LIMITS.datasetPartBytes);
  if (reservation === null) return refuse("rate_limited", TOO_MANY, null);
  return await outlive(upload(() => reservation.stay(Date.now())).finally(reservation.leave));
}

/** What rows are checked against; null: only that they are tasks at all. */
export type Against = { environment: EnvironmentCode; stored: NewDataset["environment"] } | null;

/** Refused if the environment or its arguments are not valid, or if another dataset has the name. */
export async function checkUpload(env: Env, scope: Scope, upload: DatasetUpload): Promise<Result<Against>> {
  const chosen = await checkedBy(env, scope, upload);
  if (!chosen.ok) return chosen;
  const { name } = upload;
  if (name === null || (await findDataset(databaseOf(env), scope, { name })) === null) return chosen;
  return nameTaken(name);
}

async function checkedBy(env: Env, scope: Scope, upload: DatasetUpload): Promise<Result<Against>> {
  const { environment: named, environment_args: args } = upload;
  if (named === null) return { ok: true, value: null };
  const chosen = await chooseEnvironment(env, scope, named, args);
  if (!chosen.ok) return chosen;
  const { registered, environment } = chosen.value;
  return { ok: true, value: { environment, stored: { ...pinOf(registered), args } } };
}

export function nameTaken(name: string | null): Result<never> {
  return refuse("conflict", `a dataset called ${name} already exists: delete it or use another name`, "name");
}

export async function storeRows(
  env: Env,
  scope: Scope,
  upload: DatasetUpload,
  against: Against,
  source: RowSource,
  options: StoreOptions,
): Promise<Uploaded> {
  return await new Reception(env, scope, upload, against, options).take(source);
}

class Reception {
  readonly #env: Env;
  readonly #scope: Scope;
  readonly #upload: DatasetUpload;
  readonly #against: Against;
  readonly #options: StoreOptions;
  readonly #subrequests = new Subrequests();
  readonly #id: string;
  readonly #keys: ReturnType<typeof uploadKeys>;
  readonly #file: FileUpload;
  readonly #index = new IndexWriter();
  readonly #lines = new RowLines(LIMITS.taskRowBytes);
  #rows = 0;

  constructor(env: Env, scope: Scope, upload: DatasetUpload, against: Against, options: StoreOptions) {
    this.#env = env;
    this.#scope = scope;
    this.#upload = upload;
    this.#against = against;
    this.#options = options;
    this.#id = mintId("ds", minting(env, options.now));
    this.#keys = uploadKeys(scope, this.#id);
    this.#file = new FileUpload(env.STORE, this.#keys.key, this.#subrequests);
  }

  async take(source: RowSource): Promise<Uploaded> {
    const received = await this.#receive(source);
    if (!received.ok) return received;
    const dataset = this.#rowOf(received.value);
    const otherwise = (await this.#lostRight()) ?? (await this.#subrequests.fetch(() => source.keep(dataset)));
    if (otherwise === null) return { ok: true, value: { dataset: datasetViewOf(dataset), replayed: false } };
    await this.#subrequests.fetch(() => this.#env.STORE.delete(Object.values(this.#keys)));
    return otherwise;
  }

  async #lostRight(): Promise<Result<never> | null> {
    const { allowed } = this.#options;
    if (allowed === undefined || (await allowed())) return null;
    return refuse("unauthorized", "this key lost its permission during the upload", null);
  }

  /** Stores the file and its index. If it fails, nothing of them is left. */
  async #receive(source: RowSource): Promise<Result<StoredFile>> {
    try {
      const refusal = await this.#readRows(source);
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

  async #readRows({ chunks, readsRest }: RowSource): Promise<Refusal | null> {
    let refusal: Refusal | null = null;
    for await (const chunk of chunks) {
      refusal ??= await this.#check(() => this.#lines.push(chunk));
      if (refusal === null) await this.#file.write(chunk);
      else if (!readsRest) return refusal;
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
          counts.values > LIMITS.taskRowValues ? tooManyValues(line) : await refusedLine(this.#against, line, text);
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

async function refusedLine(against: Against, line: RowLine, text: string): Promise<Refusal | null> {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return invalidJson(line, thrown.message);
    throw thrown;
  }
  return await refusedRow(against?.environment ?? null, { text, value }, line.row, `line ${line.line}`);
}

function invalidJson({ row, line }: RowLine, why: string): Refusal {
  return { code: "invalid_row", message: `line ${line}: not valid JSON: ${why}`, param: `rows[${row}]` };
}

function tooManyValues({ row, line }: RowLine): Refusal {
  const message = `line ${line}: a row holds at most ${LIMITS.taskRowValues} JSON values`;
  return { code: "too_large", message, param: `rows[${row}]` };
}
