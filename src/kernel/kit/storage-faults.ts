/**
 * Recognises failures of the storage below the platform by the text of their errors: a full disk, an object that does
 * not open, a value that is refused.
 *
 * A full disk exists only locally: all storage is files there, and one isolate holds every object, so a failure that
 * one object sees is noted for all. In production nothing is ever noted. A write that fails because of a full disk is
 * undone as a whole, and its caller tries again, so nothing is lost.
 */
import { isError, messageOf } from "../../contract/errors.ts";

/** Errors of JSON and structured clone for a value that is too deep or too large. */
const KINDS = ["RangeError", "DataCloneError", "RefusedValueError"];

/** SQLite's errors about a value, not about its disk; and the limit of 32 MiB for calls between objects. */
const SAYS = /SQLITE_(TOOBIG|MISMATCH|CONSTRAINT|RANGE)|limited to 32 ?MiB/;

const DAMAGED = /SQLITE_(CORRUPT|NOTADB)/;

/**
 * The runtime's text for a failure outside our code. In production it masks any passing fault of the platform below. On
 * one machine it is what a caller gets if the object's file does not open.
 */
const MASKED = /(^|: )internal error; reference = /;
/** Passing faults that production names: of objects and isolates, of D1, and of R2 by the code at the end. */
const PASSING = [
  /Network connection lost|(?:Durable Object|D1 DB) is overloaded|object to be reset|its code was updated/i,
  /exceeded (?:its )?(?:memory|CPU time) limit/i,
  /D1_ERROR.*(?:timeout|timed out|transient issue)/i,
  /^\w+: .*\((?:10001|10043|10058)\)$/,
];

const FULL = /SQLITE_FULL|ENOSPC|No space left on device|disk is full/i;
/** How long a noted failure counts. While the disk stays full, it is noted again and again. */
const NOTED_MS = 30_000;
/** More than the free space in the last page of a file. */
const PROBE_BYTES = 64 * 1024;
const PROBE_KEY = "org/platform/healthz";

export const STORAGE_FULL = "the disk of this platform is full: nothing is lost, and runs continue once there is space";

let noted: number | null = null;

/** Whether the platform runs on a local machine: only the local boot limits live objects, and binds LAST_END. */
export function isLocal(env: Env): boolean {
  return Number(env.LIVE_OBJECT_CEILING) > 0 || "LAST_END" in env;
}

/** Must be called with every error that is caught. */
export function noteStorage(thrown: unknown): void {
  if (isStorageFull(thrown)) noted = Date.now();
}

export function storageIsFull(): boolean {
  return noted !== null && Date.now() - noted < NOTED_MS;
}

export function isStorageFull(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (FULL.test(error.message)) return true;
  }
  return false;
}

/** An object or database that does not open on a full disk does not give the reason. A test write finds it out. */
export async function failedForStorage(env: Env, thrown: unknown): Promise<boolean> {
  noteStorage(thrown);
  if (isStorageFull(thrown)) return true;
  return isUnreadable(env, thrown) && !(await storageTakes(env));
}

/** The error is about a damaged file, not about a full disk. */
function isDamaged(thrown: unknown): boolean {
  return thrown instanceof Error && (DAMAGED.test(thrown.message) || isDamaged(thrown.cause));
}

/** Writes and deletes a test value. False if the disk is full. Always true in production. */
export async function storageTakes(env: Env): Promise<boolean> {
  if (!isLocal(env)) return true;
  try {
    await env.STORE.put(PROBE_KEY, new Uint8Array(PROBE_BYTES));
    await env.STORE.delete(PROBE_KEY);
    noted = null;
    return true;
  } catch (thrown) {
    if (isDamaged(thrown)) return true;
    // The store of a local platform is a folder. If the file is not damaged, the disk must be full.
    noted = Date.now();
    return false;
  }
}

/**
 * How the platform below reports that an object's storage is not available: by the texts of its errors only. An object
 * whose file is damaged does not open, and its caller does not even get that text.
 */

/** The object's storage cannot be read, as far as one error can tell. */
export function isUnreadable(env: Env, thrown: unknown): boolean {
  if (!(thrown instanceof Error) || isMarked(thrown)) return false;
  const { message, cause } = thrown;
  return DAMAGED.test(message) || (isLocal(env) && MASKED.test(message)) || isUnreadable(env, cause);
}

/** A fault of the platform below that passes: the same call may succeed soon. */
export function isPassing(env: Env, thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const { message, cause } = thrown;
  const masked = !isLocal(env) && MASKED.test(message);
  return isMarked(thrown) || masked || PASSING.some((text) => text.test(message)) || isPassing(env, cause);
}

/** The runtime marks errors of objects as temporary. */
function isMarked(thrown: Error): boolean {
  const { retryable, overloaded } = thrown as { retryable?: unknown; overloaded?: unknown };
  return retryable === true || overloaded === true;
}

/** For an object that does not open: only its data in D1 is left. */
export function damagedMessage(id: string): string {
  return `the object of ${id} cannot be opened: its storage is damaged`;
}

export function goneMessage(id: string): string {
  return `the object of ${id} is empty: its storage was deleted, with the rollouts of this run`;
}

/**
 * Distinguishes a refused value from a failure of the store. If the store is unavailable, the write is tried again for
 * as long as needed. A value that is refused for its size or type would be refused forever, so the caller must store
 * something smaller instead.
 */

/** Another object refused a value and reported that in its answer. */
export class RefusedValueError extends Error {
  override readonly name = "RefusedValueError";
}

/** What is wrong with the value; null if something else is wrong, which may be temporary. */
export function refusalOf(thrown: unknown): string | null {
  const message = messageOf(thrown);
  const refused = (isError(thrown, Error) && KINDS.includes(thrown.name)) || SAYS.test(message);
  return refused ? message : null;
}

/** The result of `write`, or why the value was refused. For calls between objects, where errors lose their class. */
export function orRefusal<T>(write: () => T): T | { readonly refused: string } {
  try {
    return write();
  } catch (thrown) {
    const refused = refusalOf(thrown);
    if (refused === null) throw thrown;
    return { refused };
  }
}
