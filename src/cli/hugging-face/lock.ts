/** One process at a time writes an output: the file `.lock` beside it names that process. */
import * as z from "zod";
import { lockFile, NamelessLock } from "../../local/directory-lock.ts";
import { CommandError, usageError } from "../exit.ts";

/** Throws a usage error if another process holds the lock. The lock of a process that ended is taken over. */
export function lockOutput(output: string): Disposable {
  const file = `${output}.lock`;
  try {
    const { release } = lockFile(file, (pid) => {
      return usageError(`${output}: process ${pid} writes this file: wait until it ends`, "out");
    });
    return { [Symbol.dispose]: release };
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if ([SyntaxError, z.ZodError, NamelessLock].some((kind) => error instanceof kind)) {
      throw usageError(`${file}: is not a lock of rollcall: delete it if no other program uses it`, "out");
    }
    throw error instanceof Error && "code" in error ? usageError(`--out: ${error.message}`, "out") : error;
  }
}
