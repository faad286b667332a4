/** Uploaded datasets: upload, list, read, read rows, delete. */
import * as z from "zod";
import { BODY_TOO_LARGE } from "../../contract/dataset-upload.ts";
import { Deleted, ResourceName } from "../../contract/endpoint.ts";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { mediaTypeOf } from "../../contract/media-type.ts";
import { AnyObject, EXAMPLE, NonEmpty, wholeNumber } from "../../contract/primitives.ts";
import type { Scope } from "../../contract/scope.ts";
import { DatasetList, DatasetRow, DatasetView } from "../../contract/uploaded-dataset.ts";
import type { Database } from "../db/database.ts";
import { datasetViewOf, findDataset, listDatasets } from "../db/datasets.ts";
import { answer, ask, creationReply, readQuery } from "./answer.ts";
import { Refusal, unwrap } from "./errors.ts";
import { idempotencyKeyOf, objectOf, readingToEnd, refuseEncoded, refuseLongerThan } from "./input.ts";
import { linesReply } from "./lines.ts";
import type { ApiContext, Operation } from "./operation.ts";
import { listReply, PageQuery } from "./page.ts";

const UploadQuery = z.strictObject({
  name: ResourceName.optional().describe("unique in the project").meta({ example: "gsm8k-test" }),
  environment: NonEmpty.optional()
    .describe("id, or id@version; every row is checked against its schema")
    .meta({ example: "gsm8k@1" }),
  environment_args: z.string().optional().describe("the environment's arguments, as JSON").meta({ example: "{}" }),
});

const RowQuery = z.strictObject({
  after: wholeNumber(0).optional().describe("index of the last row of the previous page").meta({ example: 99 }),
  limit: wholeNumber(1, LIMITS.resultsPerPage).default(100),
});

export const datasetOperations: readonly Operation[] = [
  {
    id: "createDataset",
    route: "POST /v1/datasets",
    permission: "datasets:write",
    summary: "Upload rows, as JSON lines",
    description:
      "One JSON object a line, in UTF-8. Without `environment` a row needs a `question`, a `prompt`, or an `item` (an object). Blank lines are skipped. Rows are checked as they are read; the first invalid row ends the upload, and nothing is kept. A file over 100 MB is sent in parts: `POST /v1/dataset-uploads`.",
    query: UploadQuery,
    headers: { "Idempotency-Key": "a repeat with the same key, query and file returns the same dataset" },
    body: { schema: AnyObject, example: EXAMPLE.row, contentType: "application/jsonl" },
    reply: {
      status: 201,
      description: "The dataset; it never changes",
      schema: DatasetView,
      headers: {
        location: "where to read the dataset",
        "idempotent-replayed": "true when this is a replay of an earlier request",
      },
    },
    errors: ["invalid_row", "not_found", "conflict", "idempotency_conflict", "rate_limited"],
    handle: uploadDataset,
  },
  {
    id: "listDatasets",
    route: "GET /v1/datasets",
    permission: "datasets:read",
    summary: "List datasets",
    query: PageQuery,
    reply: { description: "One page of datasets", schema: DatasetList },
    handle: (context) => {
      const find = (database: Database, scope: Scope, id: string) => findDataset(database, scope, { id });
      return listReply(context, "a dataset", find, listDatasets, datasetViewOf);
    },
  },
  {
    id: "getDataset",
    route: "GET /v1/datasets/{id}",
    permission: "datasets:read",
    summary: "Read a dataset, by id or name",
    reply: { description: "The dataset", schema: DatasetView },
    handle: (context) => answer(context, context.var.services.readDataset),
  },
  {
    id: "listDatasetRows",
    route: "GET /v1/datasets/{id}/rows",
    permission: "datasets:read",
    summary: "Read a dataset's rows, one JSON object a line",
    query: RowQuery,
    reply: {
      description: "One page of rows, at most about 8 MiB (1 MiB in a deployment); follow the link until there is none",
      contentType: "application/jsonl",
      schema: DatasetRow,
      headers: { link: 'the next page, rel="next"; absent on the last' },
    },
    handle: readRows,
  },
  {
    id: "deleteDataset",
    route: "DELETE /v1/datasets/{id}",
    permission: "datasets:write",
    summary: "Delete a dataset that no unfinished run names",
    reply: {
      description: "Deleted; runs keep their copies of its rows",
      schema: Deleted,
      example: { object: "dataset", id: EXAMPLE.dataset },
    },
    errors: ["conflict"],
    handle: async (context) => {
      const { id } = await ask(context, context.var.services.deleteDataset);
      return context.json({ object: "dataset", id, deleted: true });
    },
  },
];

function uploadDataset(context: ApiContext): Promise<Response> {
  refuseLongerThan(context.req.raw, LIMITS.datasetBodyBytes, BODY_TOO_LARGE);
  return readingToEnd(context, receiveDataset, LIMITS.datasetBodyBytes);
}

async function receiveDataset(context: ApiContext): Promise<Response> {
  const { raw } = context.req;
  const idempotencyKey = idempotencyKeyOf(raw);
  const { name, environment, environment_args } = readQuery(context, UploadQuery);
  requireJsonLines(raw);
  refuseEncoded(raw);
  const upload = {
    name: name ?? null,
    environment: environment ?? null,
    environment_args: argsOf(environment, environment_args),
  };
  const options = { idempotencyKey, now: context.var.now(), allowed: context.var.stillAllowed };
  const made = await context.var.services.createDataset(context.env, context.var.scope, upload, raw.body, options);
  const { dataset, replayed } = unwrap(made);
  return creationReply(context, { folder: "/v1/datasets", status: 201 }, dataset, replayed);
}

function requireJsonLines({ headers }: Request): void {
  if (["application/jsonl", "application/x-ndjson"].includes(mediaTypeOf(headers.get("content-type")))) return;
  const message = "send the rows as content-type: application/jsonl (or application/x-ndjson)";
  throw new Refusal({ code: "invalid_request", message, param: null }, { status: 415 });
}

function argsOf(environment: string | undefined, text: string | undefined): JsonObject {
  if (text === undefined) return {};
  const param = "environment_args";
  if (environment !== undefined) return objectOf(text, param);
  const message = `${param}: needs environment`;
  throw new Refusal({ code: "invalid_request", message, param });
}

async function readRows(context: ApiContext): Promise<Response> {
  const { after = null, limit } = readQuery(context, RowQuery);
  return await linesReply(context, async () => {
    const { lines, next } = await ask(context, context.var.services.readDatasetRows, { after, limit });
    return { rows: lines, next };
  });
}
