/** Says in one line why a state directory cannot be used: its disk is full, or it cannot be read or written. */
import { realpathSync, statfsSync } from "node:fs";
import { join } from "node:path";

export class DirectoryUnusable extends Error {
  override readonly name = "DirectoryUnusable";
  readonly code: "storage_full" | "directory_unusable";

  constructor(code: DirectoryUnusable["code"], message: string, cause: unknown) {
    super(`${message}, or set ROLLCALL_DIR to another directory`, { cause });
    this.code = code;
  }
}

const FULL = ["ENOSPC", "EDQUOT"];
const CLOSED = ["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST"];
/** With less free space than this, no database can be opened. */
const NOTHING_LEFT_BYTES = 1024 ** 2;

/** A DirectoryUnusable if the directory is the cause of `error`; otherwise `error` itself. */
export function directoryFault(error: unknown, directory: string): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // A database without space reports only a general error.
  if (FULL.includes(code) || isFull(directory) || isFull(join(directory, "store"))) {
    const message = `no space is left on the disk of ${directory}: free some`;
    return new DirectoryUnusable("storage_full", message, error);
  }
  if (!isIn(directory, error) || !(CLOSED.includes(code) || isUnmade(error))) return error;
  const why = error instanceof Error ? error.message : String(error);
  const message = `${directory} cannot be used (${why}): use a directory that you can write to`;
  return new DirectoryUnusable("directory_unusable", message, error);
}

function isFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(realpathSync(path));
    return bavail * bsize < NOTHING_LEFT_BYTES;
  } catch (error) {
    // A path that does not exist or cannot be read is not a full disk.
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

function isIn(directory: string, error: unknown): boolean {
  if (!(error instanceof Error && "path" in error)) return false;
  const path = String(error.path);
  return path.startsWith(directory) || (isUnmade(error) && directory.startsWith(path));
}

/** An error of mkdir, as on a read-only disk. */
function isUnmade(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && error.syscall === "mkdir";
}
