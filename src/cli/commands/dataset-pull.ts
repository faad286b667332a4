/** `rollcall dataset pull`: rows of a dataset on Hugging Face, to a file or to the platform. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, openAsBlob, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { checkFolderOf } from "../argument-values.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { EXIT, type ExitCode, endBy, usageError } from "../exit.ts";
import { addressText, type DatasetAddress, parseAddress } from "../hugging-face/address.ts";
import { Hub, hubSettings } from "../hugging-face/hub.ts";
import { type PullProgress, pullRows, sourceOf } from "../hugging-face/pull.ts";
import { findSplit, type SplitFiles } from "../hugging-face/split-files.ts";
import { catchInterrupts, firstOf } from "../interrupt.ts";
import { onPlatform } from "../on-platform.ts";
import { type Columns, parseColumns } from "../tables/columns.ts";
import { bytesText, countText } from "../terminal/format.ts";
import { details } from "../terminal/table.ts";
import { printJson, type Terminal, terminal } from "../terminal/terminal.ts";
import { checkFlags, DATASET_FLAGS, datasetText, uploadProgressText } from "./dataset-upload.ts";

const FLAGS = {
  columns: {
    value: "FIELD=COLUMN,…",
    repeatable: true,
    help: "fields of the rows and the columns they come from; default: every column under its name",
  },
  config: { value: "NAME", help: "a configuration of the dataset, if it has several" },
  limit: { value: "N", help: "the first N rows only" },
  out: { short: "o", value: "FILE.jsonl", help: "write the rows to this file; without it they are uploaded" },
  ...DATASET_FLAGS,
  ...PLATFORM_FLAGS,
} as const;
type Line = CommandLine<keyof typeof FLAGS>;

/** These need a platform. */
const OF_THE_UPLOAD = ["name", "environment", "env-args", "platform", "profile", "project"] as const;
const GO_ON = "; run the same command again to continue";

export const DATASET_PULL = command({
  name: "dataset pull",
  takes: "<hf:owner/name@revision:split>",
  help: "download rows of a dataset on Hugging Face, and upload them or write them to a file",
  more: `The revision and the split may be left out. A field may come from a part of a column: answers.text, choices.0. HF_TOKEN is sent to read gated and private datasets; HF_ENDPOINT names a mirror. If the command is interrupted, the same command continues where it stopped.`,
  flags: FLAGS,
  run(line) {
    const asked: Asked = {
      address: parseAddress(line.one("a dataset such as hf:openai/gsm8k:test")),
      config: line.text("config") ?? null,
      columns: parseColumns(line.all("columns")),
      limit: line.count("limit", 1) ?? null,
    };
    const out = line.text("out");
    return out === undefined ? upload(line, asked) : toFile(line, asked, out);
  },
});

interface Asked {
  readonly address: DatasetAddress;
  readonly config: string | null;
  readonly columns: Columns;
  readonly limit: number | null;
}

async function toFile(line: Line, asked: Asked, out: string): Promise<ExitCode> {
  const unused = OF_THE_UPLOAD.find((flag) => line.text(flag) !== undefined || line.all(flag).length > 0);
  if (unused !== undefined) throw usageError(`--${unused}: cannot be combined with --out`, unused);
  checkFolderOf(out, "out");
  using interrupt = catchInterrupts();
  const timeoutMs = line.timeoutMs("timeout");
  const signal = firstOf({
    interrupt: interrupt.signal,
    timeout: timeoutMs === null ? null : AbortSignal.timeout(timeoutMs),
  });
  const json = line.on("json");
  const term = terminal(json);
  try {
    const { from, rows } = await pull(asked, { fileFor: () => out, keepsOld: false }, term, signal);
    const pulled = { object: "pulled", ...whatOf(from), rows, file: out };
    if (json) printJson(pulled);
    else term.print(details({ ...whatOf(from), rows: countText(rows ?? 0), file: out }));
  } catch (error) {
    if (signal.aborted) throw endBy(signal, GO_ON);
    throw error;
  }
  return EXIT.good;
}

function upload(line: Line, asked: Asked): Promise<ExitCode> {
  const options = checkFlags(line);
  return onPlatform(
    line,
    async ({ client, signal, term }) => {
      const { from, file } = await pull(asked, { fileFor: cachedFile, keepsOld: true }, term, signal);
      const dataset = await client.datasets.upload(await openAsBlob(file), {
        ...options,
        onProgress: (progress) => term.redraw(() => [uploadProgressText(progress)]),
        signal,
      });
      term.redraw(() => []);
      rmSync(file, { force: true });
      return { json: { ...dataset, pulled: whatOf(from) }, text: () => datasetText(dataset) };
    },
    () => GO_ON,
  );
}

interface Destination {
  /** The file for the rows of this source (`sourceOf`). */
  readonly fileFor: (source: string) => string;
  /** A file that exists already has these rows, and is not pulled again. */
  readonly keepsOld: boolean;
}

/** A file with the rows; `rows` is null if it was there already. */
async function pull(
  { address, config, ...rows }: Asked,
  { fileFor, keepsOld }: Destination,
  term: Terminal,
  signal: AbortSignal,
): Promise<{ readonly from: SplitFiles; readonly file: string; readonly rows: number | null }> {
  const hub = new Hub({ ...hubSettings(process.env), signal });
  term.redraw(() => [`finding ${addressText(address)}`]);
  const from = await findSplit(hub, address, config);
  if (from.partial) {
    term.log(`${addressText(address)}: Hugging Face converts only the first 5 GB of this split; the rows end there`);
  }
  const file = fileFor(sourceOf(from, rows));
  if (keepsOld && existsSync(file)) return { from, file, rows: null };
  const count = await pullRows(hub, from, file, {
    ...rows,
    log: term.log,
    onProgress: (progress) => term.redraw(() => [progressText(progress)]),
  });
  term.redraw(() => []);
  return { from, file, rows: count };
}

function progressText({ rows, bytes, file, files }: PullProgress): string {
  const which = files === 1 ? "" : `, file ${file} of ${files}`;
  return `${countText(rows)} rows, ${bytesText(bytes)} received${which}`;
}

function whatOf({ repository, commit, config, split }: SplitFiles) {
  return { dataset: `hf:${repository}`, revision: commit, config, split };
}

/** The rows of an upload are kept until they are uploaded, under a name that the same command finds again. */
function cachedFile(source: string): string {
  const folder = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "rollcall", "pulled");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return join(folder, `${createHash("sha256").update(source).digest("hex").slice(0, 32)}.jsonl`);
}
