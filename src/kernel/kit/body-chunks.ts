/** Reads the bytes of a request or a stored object in large chunks. */

import { LIMITS } from "../../contract/limits.ts";
import { type After, inTime, PausedBodyError, withinPause } from "../clients/bounded-body.ts";

/** Without a buffer of the reader's, the runtime delivers 4 KiB at a time, at five times the cost. */
const CHUNK_BYTES = 256 * 1024;
/** Size of the first buffer. It doubles after each chunk that fills it, so memory grows with the body. */
const FIRST_CHUNK_BYTES = 4096;

/** A request's body that did not arrive completely. The sender is at fault, and the message is for the sender. */
export class BrokenBodyError extends Error {
  override readonly name = "BrokenBodyError";
  /** True if reading was stopped because the body arrived too slowly. */
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
 * A chunk is valid until the next one is requested: all share one buffer. If the consumer stops early, the rest is
 * cancelled. The stream must be a byte stream, as those of the runtime are.
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

/** The clock and the timer that measure a body's progress. Replaced by tests. */
export interface Transport {
  readonly now: () => number;
  readonly after: After;
}
const REAL: Transport = { now: () => Date.now(), after: inTime };

/**
 * The same for the body of a request. Throws `BrokenBodyError` if the body breaks off, is not a valid HTTP body, or
 * makes no progress: fewer than `LIMITS.bodyProgressBytes` arrived in `LIMITS.bodyPauseMs` of waiting, and it did not
 * end.
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

/** Counts only the time spent waiting for the sender, not the time spent on processing a piece. */
class Progress {
  readonly #transport: Transport;
  /** Since `#bytes` was last reset. */
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

/** Reads the rest of a body that is not used: its sender does not read the answer before the whole body is sent. */
export async function readToEnd(body: ReadableStream<Uint8Array>, atMost: number): Promise<void> {
  let read = 0;
  try {
    for await (const chunk of receivedChunks(body)) {
      read += chunk.length;
      if (read > atMost) return;
    }
  } catch (thrown) {
    // The body broke off: there is nothing more to read.
    if (!(thrown instanceof BrokenBodyError)) throw thrown;
  }
}
