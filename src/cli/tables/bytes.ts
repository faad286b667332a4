/** The bytes of a table, on disk or at a URL: any range of them, and a stream from any offset. */
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { usageError } from "../exit.ts";

export interface Bytes {
  /** The name in errors. */
  readonly name: string;
  readonly size: number;
  /** The bytes from `start` up to, but not including, `end`. */
  read(start: number, end: number): Promise<ArrayBuffer>;
  /** All bytes from `start`, in chunks of any size. */
  stream(start: number): AsyncIterable<Uint8Array>;
}

/** Throws a usage error with `param` if the file cannot be opened. `close` ends the use of the file. */
export async function openFile(file: string, param: string): Promise<Bytes & AsyncDisposable> {
  let handle: FileHandle;
  try {
    handle = await open(file);
  } catch (error) {
    throw usageError(error instanceof Error ? error.message : String(error), param);
  }
  const { size } = await handle.stat();
  return {
    name: file,
    size,
    read: async (start, end) => {
      const bytes = new Uint8Array(end - start);
      let at = 0;
      while (at < bytes.length) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
        if (bytesRead === 0) throw usageError(`${file}: ended at byte ${start + at} while it was read`, param);
        at += bytesRead;
      }
      return bytes.buffer;
    },
    stream: (start) => createReadStream(file, { start }),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}
