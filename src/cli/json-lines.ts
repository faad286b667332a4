/** Rows as JSON lines, as they come: to stdout, or to a file. A text goes to a file by the same rules. */
import { once } from "node:events";
import { createWriteStream, renameSync, statSync, writeFileSync } from "node:fs";
import { finished } from "node:stream/promises";
import { usageError } from "./exit.ts";
import { isBrokenPipe } from "./terminal/terminal.ts";

/**
 * How many rows there were. `flag` names the file in the error when it cannot be written. Until it has all of them it is
 * named `.partial`, so that no half of it looks whole, and what stood there before stays until then.
 */
export async function writeLines(rows: AsyncIterable<object>, file: string, flag: string): Promise<number> {
  if (!mayBeReplaced(file)) return await writeFile(rows, file, flag);
  const partial = `${file}.partial`;
  const written = await writeFile(rows, partial, flag);
  renameSync(partial, file);
  return written;
}

/**
 * The same behind the whole lines that an earlier attempt left in `file.partial`: `rows` are those that come after them. How
 * many rows were added.
 */
export async function goOnWritingLines(rows: AsyncIterable<object>, file: string, flag: string): Promise<number> {
  const partial = `${file}.partial`;
  const added = await writeFile(rows, partial, flag, "a");
  renameSync(partial, file);
  return added;
}

/** A text as a file, under the same rules. */
export function writeText(text: string, file: string, flag: string): void {
  const partial = mayBeReplaced(file) ? `${file}.partial` : file;
  try {
    writeFileSync(partial, text);
    if (partial !== file) renameSync(partial, file);
  } catch (error) {
    throw usageError(`--${flag}: ${error instanceof Error ? error.message : error}`, flag);
  }
}

/** Not a pipe or a device. */
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

/** To stdout: a row a line, or, with --json, all of them as one object. */
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

/** Resolves when there is room, and when nobody reads any more. */
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

/** The same as one object, without holding it. */
async function* listLines(rows: AsyncIterable<object>): AsyncGenerator<string> {
  yield '{"object":"list","data":[';
  let first = true;
  for await (const row of rows) {
    yield (first ? "" : ",") + JSON.stringify(row);
    first = false;
  }
  yield "]}\n";
}
