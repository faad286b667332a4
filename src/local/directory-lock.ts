/**
 * One platform per state directory. Two workerds on one directory would both serve the same objects.
 *
 * Invariants. The lock file appears whole (it is linked into place, which fails when there is one already). It names
 * its owner by pid and start time, so a lock whose owner is gone is known for stale and taken over. It also names the
 * workerd the owner started: after kill -9 of the owner alone that workerd lives on, still writing to the directory,
 * and is ended before anything else happens there.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { isRunning, isWorkerd, markOf, type ProcessMark } from "./processes.ts";

const Mark = z.object({ pid: z.int(), started: z.string() });
const LockFile = Mark.extend({ workerd: Mark.nullable() });
type LockFile = z.infer<typeof LockFile>;

export interface DirectoryLock {
  /** The workerd an earlier owner left behind, ended now; null when there was none. */
  readonly endedOrphan: ProcessMark | null;
  /** Nothing once the lock is lost. */
  recordWorkerd(workerd: ProcessMark | null): void;
  /** The directory was removed, and maybe made anew by another: nothing in it is this process's any more. */
  isLost(): boolean;
  /** Nothing once the lock is lost. */
  release(): void;
}

/** Another live process owns the directory. */
export class DirectoryInUse extends Error {
  override readonly name = "DirectoryInUse";
  readonly pid: number;

  constructor(directory: string, pid: number) {
    super(`${directory} is in use by process ${pid}; stop it, or set ROLLCALL_DIR to another directory`);
    this.pid = pid;
  }
}

const ORPHAN_GONE_WITHIN_MS = 5000;

/** Takes the directory for this process, or throws DirectoryInUse. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const file = join(directory, "platform.lock");
  const self = markOf(process.pid);
  if (self === null) throw new Error("the system does not list this very process");
  const orphan = takeLock(file, directory, self);
  const isLost = () => !isOwner(file, self);
  const recordWorkerd = (workerd: ProcessMark | null) => {
    if (!isLost()) replaceFile(file, JSON.stringify({ ...self, workerd }));
  };
  const ended = orphan !== null && (await endOrphan(orphan)) ? orphan : null;
  recordWorkerd(null);
  return {
    endedOrphan: ended,
    recordWorkerd,
    isLost,
    release() {
      if (!isLost()) rmSync(file, { force: true });
    },
  };
}

function isOwner(file: string, self: ProcessMark): boolean {
  try {
    const owner = readLock(file);
    return owner?.pid === self.pid && owner.started === self.started;
  } catch {
    // That it cannot be read at this moment (too many files are open, say) is no loss.
    return true;
  }
}

/** Puts our lock in place and returns the workerd that a stale lock named. */
function takeLock(file: string, directory: string, self: ProcessMark): ProcessMark | null {
  const stale = readLock(file);
  if (stale !== null) {
    if (isRunning(stale)) throw new DirectoryInUse(directory, stale.pid);
    removeStale(file, stale);
  }
  // Until the orphan is dead the lock must go on naming it: we too can be killed.
  const claim: LockFile = { ...self, workerd: stale?.workerd ?? null };
  if (!createFile(file, JSON.stringify(claim))) {
    const owner = readLock(file);
    throw new DirectoryInUse(directory, owner?.pid ?? 0);
  }
  return claim.workerd;
}

function readLock(file: string): LockFile | null {
  const text = readIfThere(file);
  return text === null ? null : LockFile.parse(JSON.parse(text));
}

/** Moves the stale lock away. If another process was quicker, what moved is its fresh lock: it goes back. */
function removeStale(file: string, stale: LockFile): void {
  const aside = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  const moved = readLock(aside);
  if (moved !== null && (moved.pid !== stale.pid || moved.started !== stale.started)) {
    createFile(file, JSON.stringify(moved));
  }
  rmSync(aside, { force: true });
}

/** Null where there is no such file. */
export function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}

/** Makes a private file; false when it exists. It never exists half-written. */
export function createFile(file: string, text: string): boolean {
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Writes a private file in one step: readers see the old text or the new, never a part. */
export function replaceFile(file: string, text: string): void {
  const draft = `${file}.${process.pid}.new`;
  try {
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** True when it was there and is now gone. A process that only shares the pid is left alone. */
async function endOrphan(orphan: ProcessMark): Promise<boolean> {
  if (!isWorkerd(orphan)) return false;
  process.kill(orphan.pid, "SIGKILL");
  for (let waited = 0; isRunning(orphan); waited += 10) {
    if (waited > ORPHAN_GONE_WITHIN_MS) {
      throw new Error(`workerd ${orphan.pid}, left behind by an earlier run, cannot be stopped`);
    }
    await sleep(10);
  }
  return true;
}

/** Whether it is an error of the system with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
