/**
 * `--dataset`: a file of rows, or a dataset of the platform. A few rows are sent in the request for the run; a file
 * that would make the request too large is uploaded first, and the run names it.
 */
import { createReadStream, openAsBlob, statSync } from "node:fs";
import type { EvalRequestInput } from "../contract/eval-request.ts";
import { LIMITS } from "../contract/limits.ts";
import type { DatasetSource, RollcallClient } from "../sdk/client.ts";
import { jsonObject, readText } from "./argument-values.ts";
import { usageError } from "./exit.ts";
import { convertTable, isTable } from "./tables/local-table.ts";
import { formatOf } from "./tables/table.ts";
import { countText } from "./terminal/format.ts";

export type DatasetArgument =
  /** An id or a name. */
  | { readonly kind: "uploaded"; readonly name: string }
  | { readonly kind: "rows"; readonly file: string; readonly rows: Record<string, unknown>[] }
  /** Not yet read: too large for the request, or a table that is converted first. */
  | { readonly kind: "file"; readonly file: string };

export function datasetArgument(text: string): DatasetArgument {
  const looksLikeFile = text.includes("/") || formatOf(text) !== null;
  if (!looksLikeFile && !isFile(text)) return { kind: "uploaded", name: text };
  if (isTable(text)) {
    if (!isFile(text)) throw usageError(`--dataset: ${text}: no such file`, "dataset");
    return { kind: "file", file: text };
  }
  if ((statSync(text, { throwIfNoEntry: false })?.size ?? 0) > LIMITS.requestBodyBytes) {
    return { kind: "file", file: text };
  }
  return { kind: "rows", file: text, rows: readRows(text) };
}

/** A folder does not count: an uploaded dataset may have the same name. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/**
 * The dataset in the request while the request is completed. A file has only its name here; it is uploaded once the
 * rest of the request is valid.
 */
export function datasetInRequest(dataset: DatasetArgument): EvalRequestInput["dataset"] {
  switch (dataset.kind) {
    case "uploaded":
      return dataset.name;
    case "rows":
      return dataset.rows;
    case "file":
      return dataset.file;
  }
}

/** Rows to upload. `dispose` deletes what was made for them. */
interface OpenRows extends Disposable {
  readonly source: DatasetSource;
}

export const NOTHING_TO_DELETE: Disposable = { [Symbol.dispose]: () => undefined };

/**
 * A file is read by ranges, so that its upload can be continued. A pipe or a device is read once. A table is converted
 * to JSON Lines. `param` names the argument in errors.
 */
export async function openRows(file: string, param: string, signal?: AbortSignal): Promise<OpenRows> {
  if (isTable(file)) {
    const converted = await convertTable(file, param, signal);
    return { source: await openAsBlob(converted.file), [Symbol.dispose]: () => converted[Symbol.dispose]() };
  }
  return { source: isFile(file) ? await openAsBlob(file) : createReadStream(file), ...NOTHING_TO_DELETE };
}

interface UploadOptions {
  readonly client: RollcallClient;
  readonly log: (line: string) => void;
  /** When it is aborted, the upload stops. The same command continues it. */
  readonly signal: AbortSignal;
}

/** The request in its final form: uploads the rows if they are too many for the request. */
export async function withUploadedRows(
  request: EvalRequestInput,
  dataset: DatasetArgument | null,
  { client, log, signal }: UploadOptions,
): Promise<EvalRequestInput> {
  if (dataset === null || dataset.kind === "uploaded") return request;
  if (dataset.kind === "rows" && isSmall(request)) return request;
  using rows = await openRows(dataset.file, "dataset", signal);
  const { source } = rows;
  if (isTable(dataset.file) && source instanceof Blob && source.size <= LIMITS.requestBodyBytes) {
    const withRows = { ...request, dataset: parseRows(await source.text(), dataset.file) };
    if (isSmall(withRows)) return withRows;
  }
  const uploaded = await client.datasets.upload(source, {
    environment: request.environment,
    environmentArgs: request.environment_args,
    signal,
  });
  log(
    `${dataset.file} is too large to send with a run: uploaded as ${uploaded.id} ` +
      `(${countText(uploaded.rows)} rows). Next time: --dataset ${uploaded.id}`,
  );
  return { ...request, dataset: uploaded.id };
}

function isSmall(request: EvalRequestInput): boolean {
  return Buffer.byteLength(JSON.stringify(request)) <= LIMITS.requestBodyBytes;
}

function readRows(file: string): Record<string, unknown>[] {
  return parseRows(readText(file, "dataset"), file);
}

/** The rows of a file in this process. */
export async function readAllRows(file: string): Promise<Record<string, unknown>[]> {
  if (!isTable(file)) return readRows(file);
  using converted = await convertTable(file, "dataset");
  return parseRows(readText(converted.file, "dataset"), file);
}

function parseRows(text: string, file: string): Record<string, unknown>[] {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  return lines.flatMap((line, index) => {
    return line.trim() === "" ? [] : [jsonObject(line, "dataset", `${file}:${index + 1}`)];
  });
}
