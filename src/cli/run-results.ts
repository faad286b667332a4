/** `rollcall run results`: finished rollouts as JSON lines, as they come, to stdout or a file. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import { OUTCOMES, type ResultRow } from "../core/run.ts";
import { readCommandLine } from "./command-line.ts";
import { RUN_RESULTS } from "./commands.ts";
import { EXIT, type ExitCode, usageError } from "./exit.ts";
import { countText } from "./format.ts";
import { onPlatform } from "./on-platform.ts";
import { isBrokenPipe } from "./terminal.ts";

export function runResultsCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_RESULTS, argv);
  const id = line.one("a run");
  const outcome = OUTCOMES.find((name) => name === line.text("outcome"));
  const file = line.text("output");
  return onPlatform(line, async ({ client, signal, answer }) => {
    // Read first: a run nobody knows leaves no empty file behind.
    const run = await client.getRun(id, { signal });
    const rows = client.results(run.id, { outcome }, { signal });
    if (file !== undefined) {
      const written = await writeLines(rows, file);
      const text = `${countText(written)} rollouts in ${file}`;
      answer({ object: "results", run_id: run.id, rows: written, file }, () => text);
    } else if (line.on("json")) {
      await writeAll(listLines(rows), process.stdout);
    } else {
      await writeAll(jsonLines(rows), process.stdout);
    }
    return EXIT.good;
  });
}

/** How many rows there were. */
async function writeLines(rows: AsyncIterable<ResultRow>, file: string): Promise<number> {
  const stream = createWriteStream(file);
  try {
    await once(stream, "open");
  } catch (error) {
    throw usageError(`--output: ${error instanceof Error ? error.message : error}`, "output");
  }
  const written = await writeAll(jsonLines(rows), stream);
  await finished(stream.end());
  return written;
}

async function writeAll(
  texts: AsyncIterable<string>,
  stream: NodeJS.WritableStream,
): Promise<number> {
  let written = 0;
  for await (const text of texts) {
    written += 1;
    if (!stream.write(text)) await drained(stream);
    if (!stream.writable) break;
  }
  return written;
}

/** Resolves when there is room, and when nobody reads any more. */
async function drained(stream: NodeJS.WritableStream): Promise<void> {
  try {
    await once(stream, "drain");
  } catch (error) {
    if (!isBrokenPipe(error)) throw error;
  }
}

async function* jsonLines(rows: AsyncIterable<ResultRow>): AsyncGenerator<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`;
}

/** The same as one object, without holding it. */
async function* listLines(rows: AsyncIterable<ResultRow>): AsyncGenerator<string> {
  yield '{"object":"list","data":[';
  let first = true;
  for await (const row of rows) {
    yield (first ? "" : ",") + JSON.stringify(row);
    first = false;
  }
  yield "]}\n";
}
