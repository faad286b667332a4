/** `rollcall dataset push | pull | list | show | delete`, and `rollcall dataset upload list | delete`. */
import { statSync } from "node:fs";
import type { DatasetUploadView } from "../../contract/dataset-upload.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { DatasetRow, DatasetView } from "../../contract/uploaded-dataset.ts";
import { COMMAND } from "../../local/package-root.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { NOTHING_TO_DELETE, openRows } from "../dataset-argument.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { bytesText, countText, timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";
import { preview, safeLine, safeText } from "../terminal/text.ts";
import { DATASET_PULL } from "./dataset-pull.ts";
import { checkFlags, DATASET_FLAGS, datasetText, environmentOf, uploadProgressText } from "./dataset-upload.ts";

const HEADER = ["dataset", "name", "rows", "size", "checked against", "created"];
const USUAL_ROWS = 3;

const PUSH = command({
  name: "dataset push",
  takes: "<file | ->",
  argument: "file",
  help: "upload task rows: JSON Lines, Parquet, CSV or TSV",
  more: `- reads JSON Lines from stdin. Every value of a CSV or TSV file is a text. With --environment every row is checked as in a run; the error names the line of the first invalid row. A file over 5 MiB is sent in parts: if the command is interrupted, the same command continues where it stopped.`,
  flags: { ...DATASET_FLAGS, ...PLATFORM_FLAGS },
  run(line) {
    const file = line.one("a file, or - for stdin");
    const options = checkFlags(line);
    const isLarge = file !== "-" && sizeOf(file) > LIMITS.datasetPartBytes;
    const goOn = isLarge ? () => "; run the same command again to continue the upload" : undefined;
    return onPlatform(
      line,
      async ({ client, signal, term }) => {
        if (isLarge) term.redraw(() => [`reading ${file}`]);
        using rows =
          file === "-" ? { source: process.stdin, ...NOTHING_TO_DELETE } : await openRows(file, "file", signal);
        const dataset = await client.datasets.upload(rows.source, {
          ...options,
          onProgress: (progress) => term.redraw(() => [uploadProgressText(progress)]),
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

function rowText({ index, row }: DatasetRow): string {
  const { shown, missing } = preview(safeText(JSON.stringify(row)));
  return `${index}  ${safeLine(shown)}${missing === null ? "" : ` ${missing}`}`;
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

export const DATASET_COMMANDS = [PUSH, DATASET_PULL, LIST, SHOW, DELETE, UPLOAD_LIST, UPLOAD_DELETE] as const;
