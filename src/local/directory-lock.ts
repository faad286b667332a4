/**
 * Locks: one platform per state directory (two workerds on one directory would both serve the same objects), and one
 * writer per output of a command.
 *
 * Invariants. The lock file appears complete: it is linked into place, which fails if a lock exists. (On a file system
 * without hard links it is created where it is, which fails, too, and it is empty for a moment.) It names its owner by pid
 * and start time, so a lock whose owner is gone is recognised as stale and taken over. It also names the workerd
 * that the owner started. After kill -9 of only the owner, that workerd keeps running and writing to the directory, so
 * it is ended before anything else happens there.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { isRunning, isWorkerd, markOf, type ProcessMark } from "./processes.ts";

const Mark = z.object({ pid: z.int(), started: z.string() });
const LockFile = Mark.extend({ workerd: Mark.nullable() });
type LockFile = z.infer<typeof LockFile>;

export interface FileLock {
  /** The workerd of an earlier owner that is gone; null if there was none. */
  readonly orphan: ProcessMark | null;
  /** Does nothing once the lock is lost. */
  recordWorkerd(workerd: ProcessMark | null): void;
  /** The file was removed, and perhaps created again by another process. */
  isLost(): boolean;
  /** Does nothing once the lock is lost. */
  release(): void;
}

/** If the lock is lost, the directory was removed, and perhaps created again: its content is not of this process. */
export interface DirectoryLock extends Omit<FileLock, "orphan"> {
  /** The workerd of an earlier owner, which was ended now; null if there was none. */
  readonly endedOrphan: ProcessMark | null;
}

/** The lock file names no process. */
export class NamelessLock extends Error {
  override readonly name = "NamelessLock";
}

/** Another running process has the lock of the directory. */
export class DirectoryInUse extends Error {
  override readonly name = "DirectoryInUse";
  readonly pid: number;

  constructor(directory: string, pid: number) {
    super(`${directory} is in use by process ${pid}; stop it, or set ROLLCALL_DIR to another directory`);
    this.pid = pid;
  }
}

const ORPHAN_GONE_WITHIN_MS = 5000;
/** How often a lock is put in place if another process released its own meanwhile. */
const ATTEMPTS = 2;
/** Errors of a file system that has no hard links. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"] as const;

/** Locks the directory for this process, or throws DirectoryInUse. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const { orphan, ...lock } = lockFile(join(directory, "platform.lock"), (pid) => new DirectoryInUse(directory, pid));
  const endedOrphan = orphan !== null && (await endOrphan(orphan)) ? orphan : null;
  lock.recordWorkerd(null);
  return { endedOrphan, ...lock };
}

/** How a complete file gets its name. Throws EEXIST if the name is in use. */
type Link = (draft: string, file: string) => void;

/** Puts the lock in place for this process. Throws what `inUse` returns if another running process has it. */
export function lockFile(file: string, inUse: (pid: number) => Error, link: Link = linkSync): FileLock {
  const self = markOf(process.pid);
  if (self === null) throw new Error("the system does not list this very process");
  const orphan = takeLock(file, self, inUse, link);
  const isLost = () => !isOwner(file, self);
  return {
    orphan,
    isLost,
    recordWorkerd(workerd) {
      if (!isLost()) replaceFile(file, JSON.stringify({ ...self, workerd }));
    },
    release() {
      if (!isLost()) rmSync(file, { force: true });
    },
  };
}

/** Whether a running process has the lock of the directory: it boots there, runs there, or restarts its workerd. */
export function isLocked(directory: string): boolean {
  const owner = readLock(join(directory, "platform.lock"));
  return owner !== null && isRunning(owner);
}

function isOwner(file: string, self: ProcessMark): boolean {
  try {
    const owner = readLock(file);
    return owner?.pid === self.pid && owner.started === self.started;
  } catch {
    // A file that cannot be read right now (for example, with too many open files) does not mean that the lock is lost.
    return true;
  }
}

/** Puts this process's lock in place and returns the workerd that a stale lock named. */
function takeLock(file: string, self: ProcessMark, inUse: (pid: number) => Error, link: Link): ProcessMark | null {
  const stale = readLock(file);
  if (stale !== null) {
    if (isRunning(stale)) throw inUse(stale.pid);
    removeStale(file, stale, link);
  }
  // The lock must name the orphan until it is dead: this process can also be killed.
  const claim: LockFile = { ...self, workerd: stale?.workerd ?? null };
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (createFile(file, JSON.stringify(claim), link)) return claim.workerd;
    // Null if it was released meanwhile.
    const owner = readLock(file);
    if (owner !== null) throw inUse(owner.pid);
  }
  throw new NamelessLock(`${file} exists but names no process: remove it if no other process uses it`);
}

/** Returns null if the lock file does not exist or is still empty. */
function readLock(file: string): LockFile | null {
  const text = readIfThere(file);
  return text === null || text === "" ? null : LockFile.parse(JSON.parse(text));
}

/** Moves the stale lock away. If another process was faster, the moved file is its new lock, which is put back. */
function removeStale(file: string, stale: LockFile, link: Link): void {
  const aside = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  const moved = readLock(aside);
  if (moved !== null && (moved.pid !== stale.pid || moved.started !== stale.started)) {
    createFile(file, JSON.stringify(moved), link);
  }
  rmSync(aside, { force: true });
}

/** Null if there is no such file. */
export function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}

/** Creates a private file, which is not visible half-written if the file system has hard links. False if it exists. */
export function createFile(file: string, text: string, link: Link = linkSync): boolean {
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  try {
    placeFile(draft, file, text, link);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Throws EEXIST if the file exists. */
function placeFile(draft: string, file: string, text: string, link: Link): void {
  try {
    link(draft, file);
  } catch (error) {
    if (!hasCode(error, ...NO_LINKS)) throw error;
    writeFileSync(file, text, { flag: "wx", mode: 0o600 });
  }
}

/** Writes a private file in one step: readers see the old text or the new text, never a part. */
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

/** Returns true if the orphan was running and is now gone. Another process with the same pid is left alone. */
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

/** Whether it is a system error with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
