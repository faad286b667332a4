/** Uploaded datasets on the wire: rows as JSON lines, stored once, used by any number of runs. */
import * as z from "zod";
import { AnyObject, BuiltEnvironment, Count, EXAMPLE, listOf, MaybeText, named, Seconds } from "./primitives.ts";

export const DatasetView = named("Dataset", {
  object: z.literal("dataset"),
  id: z.string().meta({ example: EXAMPLE.dataset }),
  name: MaybeText.meta({ example: "gsm8k-test" }),
  rows: Count.meta({ example: 1319 }),
  bytes: Count.describe("of the file as uploaded").meta({ example: 749_738 }),
  sha256: z
    .string()
    .describe("of the file as uploaded, in hex")
    .meta({ example: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }),
  environment: BuiltEnvironment.nullable()
    .describe("the environment whose row schema every row was checked against")
    .meta({ example: {} }),
  created_at: Seconds,
});
export type DatasetView = z.infer<typeof DatasetView>;
export const DatasetList = listOf(DatasetView, "DatasetList", EXAMPLE.dataset);

/** One row, with the index by which errors name it (from 0). */
export const DatasetRow = named("DatasetRow", { index: Count, row: AnyObject.meta({ example: EXAMPLE.row }) });
export type DatasetRow = z.infer<typeof DatasetRow>;

/** The source of a run's rows. */
export interface RunDataset {
  readonly kind: "uploaded" | "rows" | "generated";
  /** R2 key of the uploaded rows (JSONL); null if the environment contains or generates its rows. */
  readonly key: string | null;
  /** R2 key of the rows' index; absent for rows that came with the run, which are read whole. */
  readonly index_key?: string;
  /** Number of rows; null if they are endless. */
  readonly length: number | null;
}
