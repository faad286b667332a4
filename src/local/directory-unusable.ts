/** Why a state directory cannot be used, said in one line: its disk is full, or it cannot be read and written. */
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
/** With less than this left no database can be opened. */
const NOTHING_LEFT_BYTES = 1024 ** 2;

/** `error` in these terms where its cause is the directory; else `error` itself. */
export function directoryFault(error: unknown, directory: string): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // A database that does not find room says only that something went wrong.
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
    // What is not there, or not to be looked at, is not what is full.
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}

function isIn(directory: string, error: unknown): boolean {
  if (!(error instanceof Error && "path" in error)) return false;
  const path = String(error.path);
  return path.startsWith(directory) || (isUnmade(error) && directory.startsWith(path));
}

/** What mkdir says of a folder on a disk that is only read. */
function isUnmade(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && error.syscall === "mkdir";
}
