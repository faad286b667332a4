/** `rollcall dataset push | list | show | delete`. */
import { createReadStream, statSync } from "node:fs";
import { LIMITS } from "../../contract/limits.ts";
import type { DatasetRow, DatasetView } from "../../contract/uploaded-dataset.ts";
import { environmentArgs } from "../argument-values.ts";
import { ARGS_FLAG, command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { bytesText, countText, timeText } from "../terminal/format.ts";
import { details, listText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { preview, safeLine, safeText } from "../terminal/text.ts";

const HEADER = ["dataset", "name", "rows", "size", "checked against", "created"];
const USUAL_ROWS = 3;

const PUSH = command({
  name: "dataset push",
  takes: "<file | ->",
  argument: "file",
  help: "upload task rows, one JSON object a line",
  more: `- reads stdin. With --environment every row is checked as in a run; the error names the line of the first invalid row.`,
  flags: {
    name: { value: "NAME", help: "a name for the dataset" },
    environment: { value: "E", help: "check the rows against this environment: id or id@version" },
    "env-args": ARGS_FLAG,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const file = line.one("a file, or - for stdin");
    const args = environmentArgs(line.all("env-args"));
    const environment = line.text("environment");
    if (environment === undefined && Object.keys(args).length > 0) {
      throw usageError("--env-args: needs --environment", "env-args");
    }
    const bytes = file === "-" ? null : sizeOf(file);
    return onPlatform(line, async ({ client, signal, term }) => {
      const source = file === "-" ? process.stdin : createReadStream(file);
      const dataset = await client.datasets.upload(showProgress(source, bytes, term), {
        name: line.text("name"),
        environment,
        ...(environment !== undefined && { environmentArgs: args }),
        signal,
      });
      // After the end, the progress of the upload is no longer useful.
      term.redraw(() => []);
      return { json: dataset, text: () => datasetText(dataset) };
    });
  },
});

function sizeOf(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw usageError(`${file}: no such file`, "file");
  if (found.isDirectory()) throw usageError(`${file}: is a folder`, "file");
  return found.size;
}

/** The same bytes; a terminal shows the progress. */
async function* showProgress(
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
  term.redraw(() => [`${bytesText(sent)} sent; checking the rows`]);
}

const LIST = command({
  name: "dataset list",
  reads: true,
  help: "list uploaded datasets, newest first",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.datasets.list({}, { signal }));
      const none = "No datasets. Upload one with: rollcall dataset push FILE.jsonl";
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

function rowOf(dataset: DatasetView): string[] {
  return [
    dataset.id,
    dataset.name ?? "",
    countText(dataset.rows),
    bytesText(dataset.bytes),
    environmentOf(dataset) ?? "",
    timeText(dataset.created_at),
  ];
}

const SHOW = command({
  name: "dataset show",
  takes: "<dataset>",
  reads: true,
  help: "show a dataset and its first rows",
  flags: {
    "num-rows": {
      short: "n",
      value: "N",
      help: `rows to show, at most ${LIMITS.resultsPerPage}; default 3`,
    },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a dataset");
    const count = line.count("num-rows", 0) ?? USUAL_ROWS;
    if (count > LIMITS.resultsPerPage) {
      throw usageError(`--num-rows: at most ${LIMITS.resultsPerPage}`, "num-rows");
    }
    return onPlatform(line, async ({ client, signal }) => {
      const dataset = await client.datasets.get(id, { signal });
      const head: DatasetRow[] = [];
      // The page is as long as the head, so that no further rows are read.
      const rows = client.datasets.rows(dataset.id, { limit: Math.max(1, count) }, { signal });
      if (count > 0) {
        for await (const row of rows) if (head.push(row) >= count) break;
      }
      const text = () => {
        const rowTexts = head.map(rowText).join("\n");
        return rowTexts === "" ? datasetText(dataset) : `${datasetText(dataset)}\n\n${rowTexts}`;
      };
      return { json: { ...dataset, head }, text };
    });
  },
});

function datasetText(dataset: DatasetView): string {
  return details({
    dataset: dataset.id,
    name: dataset.name,
    rows: countText(dataset.rows),
    size: bytesText(dataset.bytes),
    sha256: dataset.sha256,
    "checked against": environmentOf(dataset),
    created: timeText(dataset.created_at),
  });
}

function rowText({ index, row }: DatasetRow): string {
  const { shown, missing } = preview(safeText(JSON.stringify(row)));
  return `${index}  ${safeLine(shown)}${missing === null ? "" : ` ${missing}`}`;
}

function environmentOf({ environment }: DatasetView): string | null {
  return environment === null ? null : `${environment.id}@${environment.version}`;
}

const DELETE = question({
  name: "dataset delete",
  takes: "<dataset>",
  help: "delete a dataset no unfinished run needs",
  what: "a dataset",
  ask: (client, id, options) => client.datasets.delete(id, options),
  text: ({ id }) => `Deleted ${id}`,
});

export const DATASET_COMMANDS = [PUSH, LIST, SHOW, DELETE] as const;
