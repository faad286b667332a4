/** Writes rows as JSON lines while they arrive, to stdout or to a file. Text is written to a file by the same rules. */
import { once } from "node:events";
import { createWriteStream, renameSync, statSync, writeFileSync } from "node:fs";
import { finished } from "node:stream/promises";
import { usageError } from "./exit.ts";
import { isBrokenPipe } from "./terminal/terminal.ts";

/**
 * Returns the number of rows. `flag` names the file in the error if it cannot be written. Until the file is complete it
 * is named `.partial`, so that an incomplete file does not look complete, and the old file stays until then.
 */
export async function writeLines(rows: AsyncIterable<object>, file: string, flag: string): Promise<number> {
  if (!mayBeReplaced(file)) return await writeFile(rows, file, flag);
  const partial = `${file}.partial`;
  const written = await writeFile(rows, partial, flag);
  renameSync(partial, file);
  return written;
}

/**
 * The same, after the complete lines that an earlier attempt left in `file.partial`: `rows` are those that come after
 * them. Returns the number of rows that were added.
 */
export async function goOnWritingLines(rows: AsyncIterable<object>, file: string, flag: string): Promise<number> {
  const partial = `${file}.partial`;
  const added = await writeFile(rows, partial, flag, "a");
  renameSync(partial, file);
  return added;
}

/** Writes a text to a file by the same rules. */
export function writeText(text: string, file: string, flag: string): void {
  const partial = mayBeReplaced(file) ? `${file}.partial` : file;
  try {
    writeFileSync(partial, text);
    if (partial !== file) renameSync(partial, file);
  } catch (error) {
    throw usageError(`--${flag}: ${error instanceof Error ? error.message : error}`, flag);
  }
}

/** False for a pipe or a device. */
function mayBeReplaced(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? true;
}

async function writeFile(rows: AsyncIterable<object>, file: string, flag: string, flags: "w" | "a" = "w") {
  const stream = createWriteStream(file, { flags });
  try {
    await once(stream, "open");
  } catch (error) {
    throw usageError(`--${flag}: ${error instanceof Error ? error.message : error}`, flag);
  }
  const written = await writeAll(jsonLines(rows), stream);
  await finished(stream.end());
  return written;
}

/** Prints to stdout: a row per line, or all rows as one object with --json. */
export async function printLines(rows: AsyncIterable<object>, json: boolean): Promise<void> {
  await writeAll(json ? listLines(rows) : jsonLines(rows), process.stdout);
}

async function writeAll(texts: AsyncIterable<string>, stream: NodeJS.WritableStream): Promise<number> {
  let written = 0;
  for await (const text of texts) {
    written += 1;
    if (!stream.write(text)) await waitForRoom(stream);
    if (!stream.writable) break;
  }
  return written;
}

/** Resolves when the stream can take more, and when its reader has gone. */
async function waitForRoom(stream: NodeJS.WritableStream): Promise<void> {
  try {
    await once(stream, "drain");
  } catch (error) {
    if (!isBrokenPipe(error)) throw error;
  }
}

async function* jsonLines(rows: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`;
}

/** The lines of one JSON object with all rows, without holding them in memory. */
async function* listLines(rows: AsyncIterable<object>): AsyncGenerator<string> {
  yield '{"object":"list","data":[';
  let first = true;
  for await (const row of rows) {
    yield (first ? "" : ",") + JSON.stringify(row);
    first = false;
  }
  yield "]}\n";
}
