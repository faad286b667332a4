/** `rollcall dataset push`: uploads a file, or stdin, as it is read. */
import { createReadStream, statSync } from "node:fs";
import { environmentArgs } from "../argument-values.ts";
import { readCommandLine } from "../command-line.ts";
import { DATASET_PUSH } from "../commands.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { bytesText } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { datasetText } from "./dataset.ts";

export function datasetPushCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(DATASET_PUSH, argv);
  const file = line.one("a file, or - for stdin");
  const args = environmentArgs(line.all("env-args"));
  const environment = line.text("environment");
  if (environment === undefined && Object.keys(args).length > 0) {
    throw usageError("--env-args: they are arguments of an environment: add --environment", "env-args");
  }
  const bytes = file === "-" ? null : sizeOf(file);
  return onPlatform(line, async ({ client, signal, term, answer }) => {
    const source = file === "-" ? process.stdin : createReadStream(file);
    const dataset = await client.createDataset(counted(source, bytes, term), {
      name: line.text("name"),
      environment,
      ...(environment !== undefined && { environmentArgs: args }),
      signal,
    });
    // How far it came says nothing any more.
    term.redraw(() => []);
    answer(dataset, () => datasetText(dataset));
    return EXIT.good;
  });
}

function sizeOf(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw usageError(`${file}: there is no such file`, "file");
  if (found.isDirectory()) throw usageError(`${file}: is a folder`, "file");
  return found.size;
}

/** Says on a terminal how far it has come. */
async function* counted(
  source: NodeJS.ReadableStream,
  total: number | null,
  term: Terminal,
): AsyncGenerator<Uint8Array> {
  let sent = 0;
  for await (const chunk of source) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    sent += bytes.length;
    const of = total === null ? "" : ` of ${bytesText(total)}`;
    term.redraw(() => [`${bytesText(sent)}${of} sent`]);
    yield bytes;
  }
  term.redraw(() => [`${bytesText(sent)} sent; the rows are being checked`]);
}
