/** The bytes of a request or of a stored object, in chunks worth the asking. */

import { LIMITS } from "../../contract/limits.ts";
import { type After, inTime, PausedBodyError, withinPause } from "../clients/bounded-body.ts";

/** Read without a buffer of one's own, the runtime hands out 4 KiB at a time, at five times the cost. */
const CHUNK_BYTES = 256 * 1024;
/** Of the first chunk. A chunk that is filled is followed by a larger one: a body takes about as much as it has brought. */
const FIRST_CHUNK_BYTES = 4096;

/** A request's body that does not come to its end: what is wrong with it is its sender's, and the message is for them. */
export class BrokenBodyError extends Error {
  override readonly name = "BrokenBodyError";
  /** It was given up, since too little of it came. */
  readonly slow: boolean;

  constructor(message: string, slow: boolean, cause: unknown) {
    super(message, { cause });
    this.slow = slow;
  }
}

interface Read {
  readonly value?: Uint8Array | undefined;
}
type Next = <Piece extends Read>(piece: Promise<Piece>) => Promise<Piece>;

/**
 * A chunk is good until the next one is asked for: they share their memory. Whoever stops early cancels the rest. The
 * stream must be one of bytes, as those of the runtime are.
 */
export async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  next: Next = (piece) => piece,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(FIRST_CHUNK_BYTES);
  try {
    for (;;) {
      const { done, value } = await next(reader.read(new Uint8Array(buffer)));
      if (done) return;
      const { byteLength } = value.buffer;
      const isFull = value.byteLength === byteLength && byteLength < CHUNK_BYTES;
      yield value;
      buffer = isFull ? new ArrayBuffer(2 * byteLength) : value.buffer;
    }
  } finally {
    await reader.cancel();
  }
}

/** The clock and the timers by which a body makes progress. Replaced by tests. */
export interface Transport {
  readonly now: () => number;
  readonly after: After;
}
const REAL: Transport = { now: () => Date.now(), after: inTime };

/**
 * The same of a request's body. Throws BrokenBodyError where it breaks off, is no body of HTTP, or makes no progress: in
 * `LIMITS.bodyPauseMs` of waiting for it fewer than `LIMITS.bodyProgressBytes` came, and not its end either.
 */
export async function* receivedChunks(
  body: ReadableStream<Uint8Array>,
  transport: Transport = REAL,
): AsyncGenerator<Uint8Array> {
  const progress = new Progress(transport);
  try {
    yield* chunksOf(body, (piece) => progress.next(piece));
  } catch (thrown) {
    const slow = thrown instanceof PausedBodyError;
    const tooFew = `was too slow (under ${LIMITS.bodyProgressBytes} bytes in ${LIMITS.bodyPauseMs / 1000} s)`;
    const message = `the body ${slow ? tooFew : "broke off before its end"}: send it again`;
    throw new BrokenBodyError(message, slow, thrown);
  }
}

/** Only waiting for the sender counts: what we do with a piece takes none of its time. */
class Progress {
  readonly #transport: Transport;
  /** Since so many bytes were there the last time. */
  #waitedMs = 0;
  #bytes = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async next<Piece extends Read>(piece: Promise<Piece>): Promise<Piece> {
    const { now, after } = this.#transport;
    const begun = now();
    const read = await withinPause(piece, after, LIMITS.bodyPauseMs - this.#waitedMs);
    this.#waitedMs += now() - begun;
    this.#bytes += read.value?.length ?? 0;
    if (this.#bytes >= LIMITS.bodyProgressBytes) [this.#waitedMs, this.#bytes] = [0, 0];
    return read;
  }
}

/** Takes what is left of a body that nobody reads: until it is sent, its sender does not look for an answer. */
export async function readToEnd(body: ReadableStream<Uint8Array>, atMost: number): Promise<void> {
  let read = 0;
  try {
    for await (const chunk of receivedChunks(body)) {
      read += chunk.length;
      if (read > atMost) return;
    }
  } catch (thrown) {
    // Then this is all there is of it.
    if (!(thrown instanceof BrokenBodyError)) throw thrown;
  }
}
