/**
 * Trouble of the storage below the platform, told by the words of its errors: a full disk, an object that does not open,
 * a value that is refused for what it is.
 *
 * Whether the disk is full. Locally all storage is files, and one isolate holds every object, so what
 * one of them met is known to all; deployed there is no such disk and nothing here is ever noted. A write that fails for
 * it is undone as a whole, and whoever has to store it tries again: nothing is lost by it.
 */
import { isError, messageOf } from "../../contract/errors.ts";

/** JSON and clones of what is too deep or too large. */
const KINDS = ["RangeError", "DataCloneError", "RefusedValueError"];

/** SQLite's codes for a value, not for its disk; and calls between objects, which carry 32 MiB. */
const SAYS = /SQLITE_(TOOBIG|MISMATCH|CONSTRAINT|RANGE)|limited to 32 ?MiB/;

const DAMAGED = /SQLITE_(CORRUPT|NOTADB)/;

/** What a caller hears of an object that failed outside of our code. */
const UNOPENED = /(^|: )internal error; reference = /;

const FULL = /SQLITE_FULL|ENOSPC|No space left on device|disk is full/i;
/** Whoever meets it meets it again: without that, it is over. */
const NOTED_MS = 30_000;
/** More than what a file has left in its last page. */
const PROBE_BYTES = 64 * 1024;
const PROBE_KEY = "org/platform/healthz";

export const STORAGE_FULL = "the disk of this platform is full: nothing is lost, and runs continue once there is space";

let noted: number | null = null;

/** One's own machine; only there live objects have a ceiling. */
export function isLocal(env: Env): boolean {
  return Number(env.LIVE_OBJECT_CEILING) > 0;
}

/** To be told of every error that is caught. */
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

/** An object or a database that does not open on a full disk does not say why: then writing tells. */
export async function failedForStorage(env: Env, thrown: unknown): Promise<boolean> {
  noteStorage(thrown);
  if (isStorageFull(thrown)) return true;
  return isUnreadable(thrown) && !(await storageTakes(env));
}

/** What is wrong is a file, and not its disk. */
function isDamaged(thrown: unknown): boolean {
  return thrown instanceof Error && (DAMAGED.test(thrown.message) || isDamaged(thrown.cause));
}

/** Writes and deletes something. False where there is no room for it; deployed there always is. */
export async function storageTakes(env: Env): Promise<boolean> {
  if (!isLocal(env)) return true;
  try {
    await env.STORE.put(PROBE_KEY, new Uint8Array(PROBE_BYTES));
    await env.STORE.delete(PROBE_KEY);
    noted = null;
    return true;
  } catch (thrown) {
    if (isDamaged(thrown)) return true;
    // The store of a local platform is a folder: else it fails for want of room, in whatever words.
    noted = Date.now();
    return false;
  }
}

/**
 * What the platform below us says when an object's storage is not to be had, told by the words of its errors: it offers
 * nothing else. An object whose file is damaged does not open, and then even those words stay behind in its process.
 */

/** The object's storage cannot be read, as far as one error can say; trouble that passes is said to be such. */
export function isUnreadable(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || passes(thrown)) return false;
  const { message, cause } = thrown;
  return DAMAGED.test(message) || UNOPENED.test(message) || isUnreadable(cause);
}

function passes(thrown: Error): boolean {
  const { retryable, overloaded } = thrown as { retryable?: unknown; overloaded?: unknown };
  return retryable === true || overloaded === true;
}

/** Its object does not open: what is in D1 is all there is. */
export function damagedMessage(id: string): string {
  return `the object of ${id} cannot be opened: its storage is damaged`;
}

export function goneMessage(id: string): string {
  return `the object of ${id} is empty: its storage was deleted, with the rollouts of this run`;
}

/**
 * Refusals of a value, told from trouble of whoever should take it. A store that is away is asked again for as long as it
 * takes; what is refused for what it is (too large, of no kind that can be stored) would be refused for ever, so whoever
 * must store it has to store something smaller.
 */

/** A value was refused elsewhere, and its refusal came back as one. */
export class RefusedValueError extends Error {
  override readonly name = "RefusedValueError";
}

/** What is wrong with the value; null where something else is wrong, which may pass. */
export function refusalOf(thrown: unknown): string | null {
  const message = messageOf(thrown);
  const refused = (isError(thrown, Error) && KINDS.includes(thrown.name)) || SAYS.test(message);
  return refused ? message : null;
}

/** What `write` gives, or why it refuses the value: for calls between objects, where errors lose their class. */
export function orRefusal<T>(write: () => T): T | { readonly refused: string } {
  try {
    return write();
  } catch (thrown) {
    const refused = refusalOf(thrown);
    if (refused === null) throw thrown;
    return { refused };
  }
}
