/** Uploads of datasets in parts, on the wire: a large file arrives in several requests, and any of them can be repeated. */
import * as z from "zod";
import { ResourceName } from "./endpoint.ts";
import { LIMITS } from "./limits.ts";
import { AnyObject, Count, EXAMPLE, listOf, MaybeText, NonEmpty, named, namedInput, Seconds } from "./primitives.ts";

export const BODY_TOO_LARGE =
  `a dataset in one request is at most ${LIMITS.datasetBodyBytes} bytes: ` +
  "send a larger file in parts (POST /v1/dataset-uploads), as `rollcall dataset push` does";
export const PART_TOO_LARGE = `a part is at most ${LIMITS.datasetPartBytes} bytes (part_bytes of the upload)`;

const SHA256 = /^[0-9a-f]{64}$/;
const Sha256 = z.string().regex(SHA256, { error: "must be a SHA-256 digest: 64 lower-case hexadecimal digits" });
/** Of a whole file. */
const FileBytes = z
  .int()
  .min(1)
  .max(LIMITS.datasetBytes, { error: `a dataset is at most ${LIMITS.datasetBytes} bytes: split the file` });

export const DatasetUploadRequest = namedInput("DatasetUploadRequest", {
  name: ResourceName.optional().describe("unique in the project").meta({ example: "gsm8k-test" }),
  environment: NonEmpty.optional()
    .describe("id, or id@version; every row is checked against its schema")
    .meta({ example: "gsm8k@1" }),
  environment_args: AnyObject.optional().describe("the environment's arguments").meta({ example: {} }),
  bytes: FileBytes.optional().describe("size of the file, if it is known").meta({ example: 125_829_120 }),
  sha256: Sha256.optional()
    .describe(
      "of the file, in hex, if it is known: a client finds its unfinished upload by it, and it is checked at the end",
    )
    .meta({ example: EXAMPLE.batch_sha256 }),
});
export type DatasetUploadRequest = z.infer<typeof DatasetUploadRequest>;

export const DatasetUploadView = named("DatasetUpload", {
  object: z.literal("dataset_upload"),
  id: z.string().meta({ example: EXAMPLE.upload }),
  name: MaybeText.meta({ example: "gsm8k-test" }),
  environment: MaybeText.meta({ example: "gsm8k@1" }),
  environment_args: AnyObject.meta({ example: {} }),
  bytes: Count.nullable().describe("size of the file; null if it was not given").meta({ example: 125_829_120 }),
  sha256: MaybeText.describe("of the file; null if it was not given").meta({ example: EXAMPLE.batch_sha256 }),
  part_bytes: Count.describe("size of every part but the last").meta({ example: LIMITS.datasetPartBytes }),
  dataset_id: MaybeText.describe("the dataset that it became; null until the upload is completed").meta({
    example: null,
  }),
  created_at: Seconds,
  expires_at: Seconds.describe("seconds since the epoch; after that its parts are deleted").meta({
    example: 1_792_604_800,
  }),
});
export type DatasetUploadView = z.infer<typeof DatasetUploadView>;
export const DatasetUploadList = listOf(DatasetUploadView, "DatasetUploadList", EXAMPLE.upload);

export const DatasetUploadPart = named("DatasetUploadPart", {
  number: z.int().min(1).max(LIMITS.datasetParts).describe("from 1").meta({ example: 1 }),
  bytes: Count.meta({ example: LIMITS.datasetPartBytes }),
});
export type DatasetUploadPart = z.infer<typeof DatasetUploadPart>;

/** An upload with the parts that are stored, so that a client can send the others. */
export const DatasetUploadProgress = z
  .object({
    ...DatasetUploadView.shape,
    parts: z.array(DatasetUploadPart).describe("those that are stored, by number"),
  })
  .meta({ id: "DatasetUploadProgress" });
export type DatasetUploadProgress = z.infer<typeof DatasetUploadProgress>;

export const DatasetUploadEnd = namedInput("DatasetUploadEnd", {
  bytes: FileBytes.describe("size of the file: the sum of its parts").meta({ example: 125_829_120 }),
});
