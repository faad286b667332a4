/** `rollcall dataset list | show | delete`. */
import { LIMITS } from "../../contract/limits.ts";
import type { DatasetRow, DatasetView } from "../../contract/uploaded-dataset.ts";
import { readCommandLine } from "../command-line.ts";
import { DATASET_DELETE, DATASET_LIST, DATASET_SHOW } from "../commands.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";

import { gather, onPlatform } from "../on-platform.ts";
import { bytesText, countText, timeText } from "../terminal/format.ts";
import { details, listText } from "../terminal/table.ts";
import { preview, safeLine, safeText } from "../terminal/text.ts";

const HEADER = ["dataset", "name", "rows", "size", "checked against", "created"];
const USUAL_ROWS = 3;

export function datasetListCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(DATASET_LIST, argv);
  line.none();
  return onPlatform(line, async ({ client, signal, term: { room }, answer }) => {
    const page = await gather(client.datasets({}, { signal }));
    const none = "No datasets. Upload one with: rollcall dataset push FILE.jsonl";
    answer(page, () => listText(page.data, { header: HEADER, rowOf, none, room }));
    return EXIT.good;
  });
}

export function datasetShowCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(DATASET_SHOW, argv);
  const id = line.one("a dataset");
  const count = line.count("num-rows", 0) ?? USUAL_ROWS;
  if (count > LIMITS.resultsPerPage) {
    throw usageError(`--num-rows: at most ${LIMITS.resultsPerPage}`, "num-rows");
  }
  return onPlatform(line, async ({ client, signal, answer }) => {
    const dataset = await client.getDataset(id, { signal });
    const head: DatasetRow[] = [];
    // A row more than is wanted is never read: the page is as long as the head.
    const rows = client.datasetRows(dataset.id, { limit: Math.max(1, count) }, { signal });
    if (count > 0) {
      for await (const row of rows) if (head.push(row) >= count) break;
    }
    answer({ ...dataset, head }, () => {
      const rowTexts = head.map(rowText).join("\n");
      return rowTexts === "" ? datasetText(dataset) : `${datasetText(dataset)}\n\n${rowTexts}`;
    });
    return EXIT.good;
  });
}

export function datasetDeleteCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(DATASET_DELETE, argv);
  const id = line.one("a dataset");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const deleted = await client.deleteDataset(id, { signal });
    answer(deleted, () => `Deleted ${deleted.id}`);
    return EXIT.good;
  });
}

export function datasetText(dataset: DatasetView): string {
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

function environmentOf({ environment }: DatasetView): string | null {
  return environment === null ? null : `${environment.id}@${environment.version}`;
}
