/**
 * `--dataset`: a file of rows, or a dataset of the platform. A few rows are sent in the request for the run; a file
 * that would make the request too large is uploaded first, and the run names it.
 */
import { createReadStream, openAsBlob, statSync } from "node:fs";
import type { EvalRequestInput } from "../contract/eval-request.ts";
import { LIMITS } from "../contract/limits.ts";
import type { DatasetSource, RollcallClient } from "../sdk/client.ts";
import { jsonObject, readText } from "./argument-values.ts";
import { countText } from "./terminal/format.ts";

export type DatasetArgument =
  /** An id or a name. */
  | { readonly kind: "uploaded"; readonly name: string }
  | { readonly kind: "rows"; readonly file: string; readonly rows: Record<string, unknown>[] }
  /** Too large for the request; not yet read. */
  | { readonly kind: "file"; readonly file: string };

export function datasetArgument(text: string): DatasetArgument {
  const looksLikeFile = text.includes("/") || /\.(jsonl|ndjson|json)$/.test(text);
  if (!looksLikeFile && !isFile(text)) return { kind: "uploaded", name: text };
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

/** A file is read by ranges, so that its upload can be continued. A pipe or a device is read once. */
export async function openRows(file: string): Promise<DatasetSource> {
  return isFile(file) ? await openAsBlob(file) : createReadStream(file);
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
  const bytes = dataset.kind === "rows" ? Buffer.byteLength(JSON.stringify(request)) : Infinity;
  if (bytes <= LIMITS.requestBodyBytes) return request;
  const uploaded = await client.datasets.upload(await openRows(dataset.file), {
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

export function readRows(file: string): Record<string, unknown>[] {
  const lines = readText(file, "dataset")
    .replace(/^\uFEFF/, "")
    .split("\n");
  return lines.flatMap((line, index) => {
    return line.trim() === "" ? [] : [jsonObject(line, "dataset", `${file}:${index + 1}`)];
  });
}
