/** `rollcall dataset push | list | show | delete`, and `rollcall dataset upload list | delete`. */

import { statSync } from "node:fs";
import type { DatasetUploadView } from "../../contract/dataset-upload.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { DatasetRow, DatasetView } from "../../contract/uploaded-dataset.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { UploadProgress } from "../../sdk/client.ts";
import { environmentArgs } from "../argument-values.ts";
import { ARGS_FLAG, command, PLATFORM_FLAGS } from "../command-line.ts";
import { openRows } from "../dataset-argument.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { bytesText, countText, timeText } from "../terminal/format.ts";
import { details, listText } from "../terminal/table.ts";
import { preview, safeLine, safeText } from "../terminal/text.ts";

const HEADER = ["dataset", "name", "rows", "size", "checked against", "created"];
const USUAL_ROWS = 3;

const PUSH = command({
  name: "dataset push",
  takes: "<file | ->",
  argument: "file",
  help: "upload task rows, one JSON object a line",
  more: `- reads stdin. With --environment every row is checked as in a run; the error names the line of the first invalid row. A file over 5 MiB is sent in parts: if the command is interrupted, the same command continues where it stopped.`,
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
    const isLarge = file !== "-" && sizeOf(file) > LIMITS.datasetPartBytes;
    const goOn = isLarge ? () => "; run the same command again to continue the upload" : undefined;
    return onPlatform(
      line,
      async ({ client, signal, term }) => {
        if (isLarge) term.redraw(() => [`reading ${file}`]);
        const dataset = await client.datasets.upload(file === "-" ? process.stdin : await openRows(file), {
          name: line.text("name"),
          environment,
          ...(environment !== undefined && { environmentArgs: args }),
          onProgress: (progress) => term.redraw(() => [progressText(progress)]),
          signal,
        });
        // The upload is complete: remove its progress from the terminal.
        term.redraw(() => []);
        return { json: dataset, text: () => datasetText(dataset) };
      },
      goOn,
    );
  },
});

function sizeOf(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw usageError(`${file}: no such file`, "file");
  if (found.isDirectory()) throw usageError(`${file}: is a folder`, "file");
  return found.size;
}

function progressText({ sent, total }: UploadProgress): string {
  if (sent === total) return `${bytesText(sent)} sent; checking the rows`;
  return `${bytesText(sent)}${total === null ? "" : ` of ${bytesText(total)}`} sent`;
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
      const none = `No datasets. Upload one with: ${COMMAND} dataset push FILE.jsonl`;
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

const UPLOAD_HEADER = ["upload", "name", "size", "dataset", "created", "expires"];

const UPLOAD_LIST = command({
  name: "dataset upload list",
  reads: true,
  help: "list uploads in parts, newest first",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.datasetUploads.list({}, { signal }));
      const none = "No uploads in parts.";
      return { json: page, text: () => listText(page.data, { header: UPLOAD_HEADER, rowOf: uploadRowOf, none, room }) };
    });
  },
});

function uploadRowOf({ id, name, bytes, dataset_id, created_at, expires_at }: DatasetUploadView): string[] {
  const size = bytes === null ? "" : bytesText(bytes);
  return [id, name ?? "", size, dataset_id ?? "not complete", timeText(created_at), timeText(expires_at)];
}

const UPLOAD_DELETE = question({
  name: "dataset upload delete",
  takes: "<upload>",
  help: "delete an upload in parts; a dataset that it became stays",
  what: "an upload",
  ask: (client, id, options) => client.datasetUploads.delete(id, options),
  text: ({ id }) => `Deleted ${id}`,
});

export const DATASET_COMMANDS = [PUSH, LIST, SHOW, DELETE, UPLOAD_LIST, UPLOAD_DELETE] as const;
