/** What the commands that upload a dataset have in common. */
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import type { UploadProgress } from "../../sdk/client.ts";
import { environmentArgs } from "../argument-values.ts";
import { ARGS_FLAG, type CommandLine } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { bytesText, countText, timeText } from "../terminal/format.ts";
import { details } from "../terminal/table.ts";

export const DATASET_FLAGS = {
  name: { value: "NAME", help: "a name for the dataset" },
  environment: { value: "E", help: "check the rows against this environment: id or id@version" },
  "env-args": ARGS_FLAG,
} as const;

/** The options of the upload that the flags give. */
export function checkFlags(line: CommandLine<keyof typeof DATASET_FLAGS>) {
  const args = environmentArgs(line.all("env-args"));
  const environment = line.text("environment");
  if (environment === undefined && Object.keys(args).length > 0) {
    throw usageError("--env-args: needs --environment", "env-args");
  }
  return { name: line.text("name"), environment, ...(environment !== undefined && { environmentArgs: args }) };
}

export function uploadProgressText({ sent, total }: UploadProgress): string {
  if (sent === total) return `${bytesText(sent)} sent; checking the rows`;
  return `${bytesText(sent)}${total === null ? "" : ` of ${bytesText(total)}`} sent`;
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

export function environmentOf({ environment }: DatasetView): string | null {
  return environment === null ? null : `${environment.id}@${environment.version}`;
}
