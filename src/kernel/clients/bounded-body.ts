/**
 * Reads the body of a reply from outside, to its end or to a limit. This is the only reader of such bodies. Bytes are
 * counted as they are delivered, after decompression.
 *
 * Invariants. At most the limit and one piece are in memory. A body that pauses too long is given up: one of a model at
 * any time, any other once it has begun. Whatever is not read is cancelled.
 */
import { InvalidModelResponseError, ModelError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { ReplyReservation } from "./reply-reservation.ts";

export class LongBodyError extends Error {
  override readonly name = "LongBodyError";
}

export class PausedBodyError extends Error {
  override readonly name: string = "PausedBodyError";

  constructor(ms: number) {
    super(`no bytes for ${ms / 1000} s before its end`);
  }
}

/** A server of models sent nothing for as long as its endpoint allows. */
export class SilentServerError extends PausedBodyError {
  override readonly name = "SilentServerError";

  constructor(ms: number) {
    super(ms);
    this.message = `the endpoint sent nothing for ${ms / 1000} s, its limit (silence_limit_s)`;
  }
}

/** Calls `late` after `ms` milliseconds, unless the returned function is called first. Replaced by tests. */
export type After = (ms: number, late: () => void) => () => void;

/**
 * Called with "" before the body, and then with each piece of it; true ends the reading. Nothing is read while its
 * promise is pending. `bytes`: length of the body up to the end of the piece.
 */
export type Enough = (piece: string, bytes: number) => boolean | Promise<boolean>;

/**
 * The text up to where `enough` returns true. Throws LongBodyError and PausedBodyError, and errors of the connection.
 */
export async function wholeText(reply: Response, bytes: number, after?: After, enough?: Enough): Promise<string> {
  const text: string[] = [];
  const take = (piece: string, read: number) => {
    text.push(piece);
    return enough?.(piece, read) ?? false;
  };
  await readWhole(reply, bytes, take, after);
  return text.join("");
}

/** The beginning of a body: at most `bytes` bytes. Throws PausedBodyError or SilentServerError, and errors of the connection. */
export async function beginningOf(
  reply: Response,
  bytes: number,
  enough?: Enough,
  silenceMs?: number,
): Promise<string> {
  const text: string[] = [];
  const take = (piece: string, read: number) => {
    text.push(piece);
    return enough?.(piece, read) ?? false;
  };
  await read(reply, bytes, take, undefined, silenceMs);
  return text.join("");
}

export interface BoundedReply {
  /** The most bytes that are read. */
  readonly bytes: number;
  /** True: a longer body throws LongBodyError. False: only its beginning is parsed. */
  readonly whole: boolean;
  readonly signal: AbortSignal;
  /** Absent outside the platform, for example in a command-line tool: the reply is read without a reservation. */
  readonly openReservation?: (() => ReplyReservation) | undefined;
}

/** Reads and parses a reply within the memory and the computing time of its organisation. Throws as `wholeText` does. */
export async function parsedReply<T>(
  reply: Response,
  { bytes, whole, signal, openReservation }: BoundedReply,
  parse: (text: string) => T,
): Promise<T> {
  const reservation = openReservation?.();
  let characters = 0;
  const grow = async (piece: string) => {
    characters += piece.length;
    await reservation?.grow(characters, bytes, signal);
    return false;
  };
  try {
    const text = whole ? await wholeText(reply, bytes, undefined, grow) : await beginningOf(reply, bytes, grow);
    await reservation?.turn(text.length);
    return parse(text);
  } finally {
    reservation?.leave();
  }
}

async function readWhole(
  reply: Response,
  bytes: number,
  take: Enough,
  after?: After,
  silenceMs?: number,
): Promise<void> {
  const { more } = await read(reply, bytes, take, after, silenceMs);
  if (more) throw tooLong(bytes);
}

async function read(
  { body, headers }: Response,
  bytes: number,
  take: Enough,
  after: After = inTime,
  silenceMs?: number,
): Promise<{ readonly more: boolean }> {
  const decoder = new TextDecoder();
  let left = bytes;
  if (body === null) return { more: false };
  const end = bytes - (statedLength(headers) ?? Number.POSITIVE_INFINITY);
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const nextPiece = <T>(piece: Promise<T>, begun: boolean) => {
    if (silenceMs !== undefined) return unlessSilent(piece, silenceMs, after);
    return begun ? withinPause(piece, after) : piece;
  };
  try {
    if (await take("", 0)) return { more: false };
    for (;;) {
      const { done, value } = await nextPiece(reader.read(), left < bytes);
      if (done) break;
      const piece = value.subarray(0, left);
      left -= piece.byteLength;
      if (await take(decoder.decode(piece, { stream: true }), bytes - left)) return { more: false };
      if (value.byteLength > piece.byteLength) return { more: true };
      if (left === end) break;
    }
    await take(decoder.decode(), bytes - left);
    return { more: false };
  } finally {
    // This can fail for a body that was read to its end or broke off: then there is nothing to cancel.
    reader.cancel().catch(() => undefined);
  }
}

/** Length of the body in bytes as delivered; null if it is not stated, or the header is about something else. */
function statedLength(headers: Headers): number | null {
  const stated = headers.get("content-length");
  // A compressed body becomes longer. A chunked body ends with its last chunk, whatever length is stated.
  const other = headers.has("content-encoding") || headers.has("transfer-encoding");
  return stated === null || other ? null : Number(stated);
}

/** The next bytes from a server of models. Throws SilentServerError if they do not arrive within `ms` milliseconds. */
export function unlessSilent<T>(bytes: Promise<T>, ms: number, after?: After): Promise<T> {
  return withinPause(bytes, after, ms, SilentServerError);
}

/** The next piece of a body. Throws `Late` if it does not arrive within `ms` milliseconds. */
export async function withinPause<T>(
  piece: Promise<T>,
  after: After = inTime,
  ms: number = LIMITS.bodyPauseMs,
  Late: typeof PausedBodyError = PausedBodyError,
): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = after(ms, () => reject(new Late(ms)));
  try {
    return await Promise.race([piece, promise]);
  } finally {
    cancel();
  }
}

export const inTime: After = (ms, late) => {
  const timer = setTimeout(late, ms);
  return () => clearTimeout(timer);
};

/** Takes the pieces of a reply. */
export interface CompletionSink {
  /** True if the reply is complete, whatever may follow. */
  readonly take: (piece: string) => boolean;
  /** Called and awaited before a piece is taken. `stated`: the length of the whole reply; null if it is not known. */
  readonly grow: (piece: string, stated: number | null) => Promise<void>;
  /** Whether what was taken is a stream. */
  readonly isStream: () => boolean;
}

/**
 * Reads a model's reply, whole or streamed, piece by piece. The text decides what it is, because servers send streams
 * under other content types too. `silenceMs`: milliseconds without a byte after which it is lost; absent: no limit
 * before its first byte. Throws SilentServerError if it was silent, ModelError if the body broke off, and
 * InvalidModelResponseError if it is too long.
 */
export async function takeCompletion(
  reply: Response,
  { take, grow, isStream }: CompletionSink,
  silenceMs?: number,
): Promise<void> {
  const length = statedLength(reply.headers);
  const stated = length === null ? null : Math.min(length, LIMITS.completionBytes);
  const toItsEnd = async (piece: string, bytes: number) => {
    await grow(piece, stated);
    const isDone = take(piece);
    if (bytes > LIMITS.completionBytes && !isStream()) throw tooLong(LIMITS.completionBytes);
    return isDone;
  };
  await unlessBroken(() => readWhole(reply, LIMITS.streamedBytes, toItsEnd, undefined, silenceMs));
}

function tooLong(bytes: number): LongBodyError {
  return new LongBodyError(`more than ${bytes} bytes`);
}

/** The beginning of a refusal. Throws as `takeCompletion` does. */
export async function refusalText(reply: Response, silenceMs?: number): Promise<string> {
  return await unlessBroken(() => beginningOf(reply, LIMITS.refusalBytes, undefined, silenceMs));
}

async function unlessBroken<T>(reading: () => Promise<T>): Promise<T> {
  try {
    return await reading();
  } catch (thrown) {
    if (thrown instanceof SilentServerError || thrown instanceof InvalidModelResponseError) throw thrown;
    if (thrown instanceof LongBodyError) {
      throw new InvalidModelResponseError(`the reply is ${thrown.message}`);
    }
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ModelError(`the reply broke off: ${why}`, { cause: thrown });
  }
}
