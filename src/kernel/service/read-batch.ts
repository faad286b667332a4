/**
 * Sends the bytes of batches from the object store to the trainer. They are streamed: no isolate holds a batch. The
 * trainer's object, whose name begins with the caller's scope, says which batch it is. So objects of another project
 * are not found, even by a caller that has their digest.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { BatchManifest } from "../../contract/trainer-wire.ts";
import { decodeRows, encodeRows, formatOf, type SampleEncoding } from "../../core/training/sample-row.ts";
import { idsOf, logError } from "../kit/log.ts";
import { batchKeys, sampleKey } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { ReadyBatch } from "../messages/training-wire.ts";
import { askTrainer } from "./ask-trainer.ts";

export interface StoredBytes {
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bytes: number;
}

export interface SampleQuery {
  readonly step: number;
  readonly sha256: string;
  /** The value of the Range header. */
  readonly range: string | null;
  /** The requested encoding, if it differs from the stored one. */
  readonly format: SampleEncoding | null;
  /** True: only check whether it exists. */
  readonly headOnly: boolean;
}

/** `range`: which part of how many bytes; `from` is null if the range is not satisfiable. */
export interface SamplePart extends StoredBytes {
  readonly range: { readonly from: number | null; readonly of: number } | null;
}

/** Maximum size of an object that is converted in memory, zipped and unzipped. */
const RECODED_BYTES = 4 * 1024 * 1024;
const UNZIPPED_BYTES = 32 * 1024 * 1024;

type Read<T> = (env: Env, scope: Scope, runId: string, step: number) => Promise<Result<T>>;

/** Waits up to `max_wait_s` for a batch that is not ready yet. */
export function readManifest(
  env: Env,
  scope: Scope,
  runId: string,
  step: number,
  max_wait_s: number,
): Promise<Result<StoredBytes>> {
  const read = ({ manifest_key }: ReadyBatch) => readStored(env, manifest_key);
  return withBatch(env, scope, runId, step, read, max_wait_s);
}

export const readCredits: Read<StoredBytes> = (env, scope, runId, step) =>
  withBatch(env, scope, runId, step, ({ batch_id }) => readStored(env, batchKeys(scope, runId, batch_id).credits_key));

/** `allowed` is called before each object is read: whether the reader still has the permission. */
export const streamSamples = (
  env: Env,
  scope: Scope,
  runId: string,
  step: number,
  allowed: () => Promise<boolean>,
): Promise<Result<StoredBytes>> =>
  withBatch(env, scope, runId, step, async ({ manifest_key }) => {
    const { objects } = await manifestOf(env, manifest_key);
    if (objects.length >= LIMITS.subrequests) {
      const message = `${objects.length} objects are too many for one answer: read them one by one`;
      return refuse("too_large", message, null);
    }
    const bytes = objects.reduce((sum, object) => sum + object.bytes, 0);
    const { readable, writable } = new FixedLengthStream(bytes);
    const keys = objects.map(({ sha256 }) => sampleKey(scope, runId, sha256));
    joinObjects(env, keys, writable, allowed).catch((thrown) =>
      logError("batch stream", idsOf({ scope, run_id: runId }), thrown),
    );
    return { ok: true, value: { body: readable, bytes } };
  });

export async function readSamples(
  env: Env,
  scope: Scope,
  runId: string,
  { step, sha256, range, format, headOnly }: SampleQuery,
): Promise<Result<SamplePart>> {
  const key = sampleKey(scope, runId, sha256);
  return await withBatch(env, scope, runId, step, async ({ manifest_key }) => {
    if (format !== null) return await recode(env, { key, sha256, manifest_key }, format);
    const part = await (headOnly || range !== null ? partOf(env, key, headOnly ? null : range) : wholeOf(env, key));
    return part === null ? noObject(sha256) : { ok: true, value: part };
  });
}

async function wholeOf(env: Env, key: string): Promise<SamplePart | null> {
  const object = await env.STORE.get(key);
  return object && { body: object.body, bytes: object.size, range: null };
}

/** `header` null: only the size is read. */
async function partOf(env: Env, key: string, header: string | null): Promise<SamplePart | null> {
  const head = await env.STORE.head(key);
  if (head === null) return null;
  const of = head.size;
  if (header === null) return { body: null, bytes: 0, range: null };
  const range = rangeOf(header, of);
  if (range === null) return await wholeOf(env, key);
  if (range === "none") return { body: null, bytes: 0, range: { from: null, of } };
  const object = await env.STORE.get(key, { range });
  return object && { body: object.body, bytes: range.length, range: { from: range.offset, of } };
}

/** One range of bytes; null if the header must be ignored, as the HTTP standard requires for an invalid range. */
export function rangeOf(header: string, size: number): { offset: number; length: number } | "none" | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header.trim()) ?? [];
  if (first === "" && last === "") return null;
  if (first === "") {
    const length = Math.min(size, Number(last));
    return length === 0 ? "none" : { offset: size - length, length };
  }
  const offset = Number(first);
  const end = last === "" ? size : Math.min(size, Number(last) + 1);
  if (last !== "" && Number(last) < offset) return null;
  return offset >= size ? "none" : { offset, length: end - offset };
}

/** The result of `read` for the batch of a step, if the caller's project has it. */
export async function withBatch<T>(
  env: Env,
  scope: Scope,
  runId: string,
  step: number,
  read: (batch: ReadyBatch) => Promise<Result<T>>,
  max_wait_s = 0,
): Promise<Result<T>> {
  const found = await askTrainer(env, scope, runId, async (trainer) => {
    const batch = await trainer.batch(step, { max_wait_s });
    if (batch !== null || (await trainer.weightVersions()) !== null) return { ok: true, value: batch };
    return { ok: false, refusal: { code: "unknown" } };
  });
  if (!found.ok) return found;
  const batch = found.value;
  if (batch === null) {
    return refuse("not_found", `the batch of step ${step} is not ready yet`, "step");
  }
  if (batch.state !== "void") return await read(batch);
  const message = `the batch of step ${step} is void: the run was reset, and will build it again`;
  return refuse("batch_void", message, "step");
}

async function readStored(env: Env, key: string): Promise<Result<StoredBytes>> {
  const object = await env.STORE.get(key);
  if (object === null) throw new Error(`${key} is missing`);
  return { ok: true, value: { body: object.body, bytes: object.size } };
}

export async function manifestOf(env: Env, key: string): Promise<BatchManifest> {
  const object = await env.STORE.get(key);
  if (object === null) throw new Error(`manifest ${key} is missing`);
  return await object.json<BatchManifest>();
}

/** The next object is requested while one is sent. */
async function joinObjects(
  env: Env,
  keys: readonly string[],
  writable: WritableStream<Uint8Array>,
  allowed: () => Promise<boolean>,
): Promise<void> {
  const subrequests = new Subrequests();
  const get = (key: string) => subrequests.fetch(() => env.STORE.get(key));
  try {
    let next = keys[0] === undefined ? null : get(keys[0]);
    for (const [at, key] of keys.entries()) {
      const object = await next;
      if (object === null) throw new Error(`${key} is missing`);
      const following = keys[at + 1];
      next = following === undefined ? null : get(following);
      if (!(await allowed())) throw new Error("the reader lost its permission");
      await object.body.pipeTo(writable, { preventClose: true });
    }
    await writable.close();
  } catch (thrown) {
    await writable.abort(thrown);
    throw thrown;
  }
}

/** Converts small objects only: this is for viewing rows, not for training. */
async function recode(
  env: Env,
  { key, sha256, manifest_key }: { key: string; sha256: string; manifest_key: string },
  format: SampleEncoding,
): Promise<Result<SamplePart>> {
  const { objects } = await manifestOf(env, manifest_key);
  const named = objects.find((object) => object.sha256 === sha256);
  const object = named === undefined ? null : await env.STORE.get(key);
  if (named === undefined || object === null) return noObject(sha256);
  if (named.format === formatOf(format)) {
    return { ok: true, value: { body: object.body, bytes: object.size, range: null } };
  }
  const rows = object.size <= RECODED_BYTES ? await unzip(object.body) : null;
  if (rows === null) {
    const message = `the object is too large to convert: read it as ${named.format}`;
    return refuse("too_large", message, "format");
  }
  const other = format === "jsonl" ? "msgpack" : "jsonl";
  const bytes = await zip(encodeRows(decodeRows(rows, other), format));
  const body = new Response(bytes).body;
  return { ok: true, value: { body, bytes: bytes.byteLength, range: null } };
}

/** Null if the content is too large to hold in memory. */
async function unzip(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body.pipeThrough(new DecompressionStream("gzip"))) {
    length += chunk.byteLength;
    if (length > UNZIPPED_BYTES) return null;
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

async function zip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return await new Response(stream).arrayBuffer();
}

function noObject(sha256: string): Result<never> {
  return refuse("not_found", `the batch has no object ${sha256}`, "sha256");
}
