/**
 * Writes the rows of a split to a file of JSON lines. Until it is complete the file is named `.partial`; beside it,
 * `.progress` says which rows it holds, so that the same command continues after an interruption.
 *
 * Invariant: the progress is written after the rows that it counts are on disk.
 */
import { readFileSync, renameSync, rmSync } from "node:fs";
import { type FileHandle, open, rename, writeFile } from "node:fs/promises";
import * as z from "zod";
import { usageError } from "../exit.ts";
import type { Columns } from "../tables/columns.ts";
import { jsonLines } from "../tables/local-table.ts";
import { formatOf, taskRows } from "../tables/table.ts";
import type { Hub } from "./hub.ts";
import { lockOutput } from "./lock.ts";
import { RemoteFile } from "./remote-file.ts";
import type { SplitFiles } from "./split-files.ts";

export interface PullOptions {
  readonly columns: Columns;
  /** Rows at most; null: all. */
  readonly limit: number | null;
  readonly onProgress: (progress: PullProgress) => void;
  readonly log: (line: string) => void;
}

export interface PullProgress {
  readonly rows: number;
  /** Received by this process. */
  readonly bytes: number;
  /** Counts from 1. */
  readonly file: number;
  readonly files: number;
}

/** What is in the file, and where the next row comes from. */
const Progress = z.object({
  /** `sourceOf` the pull: another pull starts from the beginning. */
  source: z.string(),
  rows: z.int().min(0),
  bytes: z.int().min(0),
  /** The index of the file that is read, and the position in it. */
  file: z.int().min(0),
  next: z.int().min(0),
  etag: z.string().nullable(),
});
type Progress = z.infer<typeof Progress>;

/** Returns the number of rows in the file. */
export async function pullRows(hub: Hub, from: SplitFiles, to: string, options: PullOptions): Promise<number> {
  const source = sourceOf(from, options);
  using _lock = lockOutput(to);
  const begun = readProgress(to, source);
  const output = await openPartial(to, begun);
  let at: Progress = begun ?? { source, rows: 0, bytes: 0, file: 0, next: 0, etag: null };
  if (at.rows > 0) options.log(`continuing after ${at.rows} rows`);
  try {
    const puller = new Puller(hub, from, output, options);
    while (at.file < from.files.length && !puller.isFull(at)) {
      for await (const next of puller.pullFile(at)) {
        await output.datasync();
        await keepProgress(to, next);
        at = next;
      }
    }
    const { size } = await output.stat();
    if (size !== at.bytes) throw usageError(`${to}.partial: another program wrote to it: ${START_AGAIN}`, "out");
  } finally {
    await output.close();
  }
  renameSync(`${to}.partial`, to);
  rmSync(`${to}.progress`, { force: true });
  return at.rows;
}

class Puller {
  readonly #hub: Hub;
  readonly #from: SplitFiles;
  readonly #output: FileHandle;
  readonly #options: PullOptions;
  #received = 0;

  constructor(hub: Hub, from: SplitFiles, output: FileHandle, options: PullOptions) {
    this.#hub = hub;
    this.#from = from;
    this.#output = output;
    this.#options = options;
  }

  isFull({ rows }: Progress): boolean {
    return rows >= (this.#options.limit ?? Infinity);
  }

  /** Writes the rows that one file still has; yields the progress after each piece of them. */
  async *pullFile(begun: Progress): AsyncGenerator<Progress> {
    const file = this.#from.files[begun.file];
    if (file === undefined) return;
    const name = `hf:${this.#from.repository}: ${file.path}`;
    const format = formatOf(file.path);
    if (format === null) throw usageError(`${name}: is not a Parquet, JSON Lines or CSV file`, "dataset");
    let at = begun;
    const onBytes = (count: number) => {
      this.#received += count;
      this.#options.onProgress(this.#progress(at));
    };
    const remote = await RemoteFile.open(this.#hub, { url: file.url, name, onBytes });
    if (at.etag !== null && at.etag !== remote.etag) throw changed(name);
    at = { ...at, etag: remote.etag };
    const wanted = (this.#options.limit ?? Infinity) - at.rows;
    for await (const { rows, next } of taskRows(remote, format, this.#options.columns, at.next, wanted)) {
      const taken = rows.slice(0, (this.#options.limit ?? Infinity) - at.rows);
      let { bytes } = at;
      for (const text of jsonLines(taken)) {
        await this.#output.appendFile(text);
        bytes += Buffer.byteLength(text);
      }
      at = { ...at, rows: at.rows + taken.length, bytes, next };
      this.#options.onProgress(this.#progress(at));
      yield at;
      if (this.isFull(at)) return;
    }
    yield { ...at, file: at.file + 1, next: 0, etag: null };
  }

  #progress({ rows, file }: Progress): PullProgress {
    return { rows, bytes: this.#received, file: file + 1, files: this.#from.files.length };
  }
}

/** Everything that decides which rows are written. */
export function sourceOf(from: SplitFiles, { columns, limit }: Pick<PullOptions, "columns" | "limit">): string {
  const { repository, commit, config, split, files } = from;
  return JSON.stringify({ repository, commit, config, split, files: files.map(({ path }) => path), columns, limit });
}

const START_AGAIN = "delete the files .partial and .progress beside the output and run the command again";

function changed(name: string): Error {
  return usageError(`${name}: the file changed since the rows before were read: ${START_AGAIN}`, "dataset");
}

/** Null if there is nothing to continue, or only the rows of another pull. */
function readProgress(to: string, source: string): Progress | null {
  let text: string;
  try {
    text = readFileSync(`${to}.progress`, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
  try {
    const progress = Progress.parse(JSON.parse(text));
    return progress.source === source ? progress : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}

/** Cuts off rows that the progress does not count. */
async function openPartial(to: string, begun: Progress | null): Promise<FileHandle> {
  const partial = `${to}.partial`;
  try {
    const file = await open(partial, "a");
    const { size } = await file.stat();
    if (begun !== null && size < begun.bytes) {
      await file.close();
      throw usageError(`${partial}: is shorter than ${to}.progress says: delete both and run the command again`, "out");
    }
    await file.truncate(begun?.bytes ?? 0);
    return file;
  } catch (error) {
    if (error instanceof Error && "code" in error) throw usageError(`--out: ${error.message}`, "out");
    throw error;
  }
}

async function keepProgress(to: string, progress: Progress): Promise<void> {
  const next = `${to}.progress.next`;
  await writeFile(next, JSON.stringify(progress));
  await rename(next, `${to}.progress`);
}
