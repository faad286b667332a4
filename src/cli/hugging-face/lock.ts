/** One process at a time writes an output: the file `.lock` beside it holds the id of that process. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hasCode, readIfThere } from "../../local/directory-lock.ts";
import { usageError } from "../exit.ts";

/** Throws a usage error if another process holds the lock. The lock of a process that ended is taken over. */
export function lockOutput(output: string): Disposable {
  const file = `${output}.lock`;
  while (!createLock(file)) {
    const holder = readIfThere(file);
    if (holder !== null && isRunning(holder)) {
      const advice = `wait until it ends; if that process is not a rollcall command, delete ${file}`;
      throw usageError(`${output}: process ${holder} writes this file: ${advice}`, "out");
    }
    if (holder !== null) removeStale(file, holder);
  }
  return { [Symbol.dispose]: () => rmSync(file, { force: true }) };
}

/** Returns false if there is a lock. */
function createLock(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error instanceof Error && "code" in error ? usageError(`--out: ${error.message}`, "out") : error;
  }
}

/** Moves the stale lock away. If another process was faster, the moved file is its new lock, which is put back. */
function removeStale(file: string, holder: string): void {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  if (readFileSync(aside, "utf8") === holder) rmSync(aside);
  else renameSync(aside, file);
}

function isRunning(holder: string): boolean {
  // Another process is just making the lock.
  if (!/^[1-9]\d*$/.test(holder)) return true;
  // An earlier process had this id: a container gives the same ids each time.
  if (Number(holder) === process.pid) return false;
  try {
    return process.kill(Number(holder), 0);
  } catch (error) {
    return !hasCode(error, "ESRCH");
  }
}
