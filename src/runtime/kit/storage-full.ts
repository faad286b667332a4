/**
 * Whether the disk below the platform is full. Locally all storage is files, and one isolate holds every object, so what
 * one of them met is known to all; deployed there is no such disk and nothing here is ever noted. A write that fails for
 * it is undone as a whole, and what owes it tries again: nothing is lost by it.
 */
import { isUnreadable } from "./platform-fault.ts";

const FULL = /SQLITE_FULL|ENOSPC|No space left on device|disk is full/i;
/** Whoever meets it meets it again: without that, it is over. */
const NOTED_MS = 30_000;
/** More than what a file has left in its last page. */
const PROBE_BYTES = 64 * 1024;
const PROBE_KEY = "org/platform/healthz";

export const STORAGE_FULL =
  "the disk of this platform is full: nothing is lost, and what runs goes on when there is room";

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

/** Writes and deletes something. False where there is no room for it; deployed there always is. */
export async function storageTakes(env: Env): Promise<boolean> {
  if (!isLocal(env)) return true;
  try {
    await env.STORE.put(PROBE_KEY, new Uint8Array(PROBE_BYTES));
    await env.STORE.delete(PROBE_KEY);
    noted = null;
    return true;
  } catch {
    // The store of a local platform is a folder: it fails for want of room, in whatever words.
    noted = Date.now();
    return false;
  }
}
