/** Uploaded datasets on the wire: rows as JSON lines, kept once, named by any number of runs. */
import * as z from "zod";
import { AnyObject, Count, listOf, Seconds } from "./primitives.ts";

export const DatasetView = z
  .object({
    object: z.literal("dataset"),
    id: z.string(),
    name: z.string().nullable(),
    rows: Count,
    bytes: Count.describe("of the file as uploaded"),
    sha256: z.string().describe("of the file as uploaded, in hex"),
    environment: z
      .object({ id: z.string(), version: z.string(), digest: z.string() })
      .nullable()
      .describe("the environment whose row schema every row was checked against"),
    created_at: Seconds,
  })
  .meta({ id: "Dataset" });
export type DatasetView = z.infer<typeof DatasetView>;
export const DatasetList = listOf(DatasetView, "DatasetList");

/** One row as it is read back, with the place errors name it by (0-based). */
export const DatasetRow = z.object({ index: Count, row: AnyObject }).meta({ id: "DatasetRow" });
export type DatasetRow = z.infer<typeof DatasetRow>;

/** Where a run's rows come from. */
export interface RunDataset {
  readonly kind: "uploaded" | "rows" | "generated";
  /** R2 key of the uploaded rows (JSONL); null for an environment that holds or makes its own. */
  readonly key: string | null;
  /** R2 key of the index beside them; absent for rows that came with the run, which are read whole. */
  readonly index_key?: string;
  /** Rows in all; null when there is no end of them. */
  readonly length: number | null;
}
