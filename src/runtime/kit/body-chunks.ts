/** The bytes of a request or of a stored object, in chunks worth the asking. */
import { type After, PausedBodyError, withinPause } from "../../clients/bounded-body.ts";
import { LIMITS } from "../../contract/limits.ts";

/** Read without a buffer of one's own, the runtime hands out 4 KiB at a time, at five times the cost. */
const CHUNK_BYTES = 256 * 1024;

/** A request's body that does not come to its end: what is wrong with it is its sender's, and the message is for them. */
export class BrokenBodyError extends Error {
  override readonly name = "BrokenBodyError";
}

type Next = <Piece>(piece: Promise<Piece>) => Promise<Piece>;

/**
 * A chunk is good until the next one is asked for: they share their memory. Whoever stops early cancels the rest. The
 * stream must be one of bytes, as those of the runtime are.
 */
export async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  next: Next = (piece) => piece,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(CHUNK_BYTES);
  try {
    for (;;) {
      const { done, value } = await next(reader.read(new Uint8Array(buffer)));
      if (done) return;
      yield value;
      buffer = value.buffer;
    }
  } finally {
    await reader.cancel();
  }
}

/**
 * The same of a request's body. Throws BrokenBodyError where it breaks off, is no body of HTTP, or pauses for longer than
 * `LIMITS.bodyPauseMs`.
 */
export async function* receivedChunks(body: ReadableStream<Uint8Array>, after?: After): AsyncGenerator<Uint8Array> {
  try {
    yield* chunksOf(body, (piece) => withinPause(piece, after));
  } catch (thrown) {
    const what = thrown instanceof PausedBodyError ? `paused for ${LIMITS.bodyPauseMs / 1000} s` : "broke off";
    const message = `the body ${what} before its end: send it again`;
    throw new BrokenBodyError(message, { cause: thrown });
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
