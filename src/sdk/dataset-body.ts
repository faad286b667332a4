/** Reads all forms of a dataset as JSON lines: the body of one request, or the pieces of a large file. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { LIMITS } from "../contract/limits.ts";

/** One task row. Its required fields depend on the environment. */
export type TaskRow = Readonly<Record<string, unknown>>;

/**
 * JSONL as text, bytes, a file or a stream; or the rows themselves. Chunks of an iterable are sent as they are if they
 * are text or bytes; anything else is one row.
 */
export type DatasetSource =
  | string
  | Uint8Array<ArrayBuffer>
  | Blob
  | readonly TaskRow[]
  | ReadableStream<Uint8Array>
  | AsyncIterable<TaskRow | Uint8Array | string>;

/** The body of one request. */
export type SmallFile = string | Uint8Array<ArrayBuffer> | Blob;

/** A file of more than one part. */
export interface LargeFile {
  /** Null for a stream: its end is not known. */
  readonly bytes: number | null;
  /** In hex; null for a stream, which can be read only once. */
  readonly sha256: string | null;
  /** In order. All but the last have the size of a part. */
  readonly pieces: Iterable<Piece> | AsyncIterable<Piece>;
}

interface Piece {
  readonly data: Blob | Uint8Array<ArrayBuffer>;
  readonly bytes: number;
}

const PART_BYTES = LIMITS.datasetPartBytes;

/** The source as the body of one request, or as a large file. At most one part of a stream is in memory. */
export async function readSource(source: DatasetSource, signal?: AbortSignal): Promise<SmallFile | LargeFile> {
  const body = bodyOf(source);
  if (body instanceof ReadableStream) return await beginningOf(body);
  const blob = body instanceof Blob ? body : new Blob([body]);
  if (blob.size <= PART_BYTES) return body;
  return { bytes: blob.size, sha256: await sha256Of(blob, signal), pieces: slicesOf(blob) };
}

export function isLarge(read: SmallFile | LargeFile): read is LargeFile {
  return typeof read === "object" && "pieces" in read;
}

function bodyOf(source: DatasetSource): SmallFile | ReadableStream<Uint8Array> {
  if (typeof source === "string" || source instanceof Uint8Array || source instanceof Blob) return source;
  if (source instanceof ReadableStream) return source;
  return isRows(source) ? source.map(lineOf).join("") : streamOf(source);
}

function isRows(source: object): source is readonly TaskRow[] {
  return Array.isArray(source);
}

function* slicesOf(blob: Blob): Generator<Piece & { readonly data: Blob }> {
  for (let at = 0; at < blob.size; at += PART_BYTES) {
    const data = blob.slice(at, at + PART_BYTES);
    yield { data, bytes: data.size };
  }
}

/** In hex. WebCrypto would need the whole file in memory. */
async function sha256Of(blob: Blob, signal: AbortSignal | undefined): Promise<string> {
  const hash = sha256.create();
  for (const { data } of slicesOf(blob)) {
    signal?.throwIfAborted();
    hash.update(new Uint8Array(await data.arrayBuffer()));
  }
  return bytesToHex(hash.digest());
}

async function beginningOf(stream: ReadableStream<Uint8Array>): Promise<SmallFile | LargeFile> {
  const pieces = piecesOf(stream);
  const first = await pieces.next();
  if (first.done) return "";
  if (first.value.bytes < PART_BYTES) return first.value.data;
  return { bytes: null, sha256: null, pieces: startingWith(first.value, pieces) };
}

async function* startingWith(first: Piece, rest: AsyncGenerator<Piece>): AsyncGenerator<Piece> {
  try {
    yield first;
    yield* rest;
  } finally {
    // If the first piece is the last one that was wanted, the stream still has to end.
    await rest.return(undefined);
  }
}

/** Each piece has memory of its own. A reader that stops early ends the stream. */
async function* piecesOf(
  stream: ReadableStream<Uint8Array>,
): AsyncGenerator<Piece & { readonly data: Uint8Array<ArrayBuffer> }> {
  let piece = new Uint8Array(PART_BYTES);
  let held = 0;
  for await (const chunk of stream) {
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.subarray(at, at + PART_BYTES - held);
      piece.set(taken, held);
      held += taken.length;
      at += taken.length;
      if (held < PART_BYTES) continue;
      yield { data: piece, bytes: held };
      piece = new Uint8Array(PART_BYTES);
      held = 0;
    }
  }
  if (held > 0) yield { data: piece.slice(0, held), bytes: held };
}

/** Requests a chunk only when the stream has room for it; a reader that stops early ends the iteration. */
function streamOf(chunks: AsyncIterable<TaskRow | Uint8Array | string>): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) return controller.close();
      controller.enqueue(value instanceof Uint8Array ? value : encoder.encode(textOf(value)));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

function textOf(chunk: TaskRow | string): string {
  return typeof chunk === "string" ? chunk : lineOf(chunk);
}

function lineOf(row: TaskRow): string {
  return `${JSON.stringify(row)}\n`;
}
