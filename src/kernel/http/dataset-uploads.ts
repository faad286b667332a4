/** Uploads of datasets in parts: create, list, read, send a part, complete, delete. */
import * as z from "zod";
import {
  DatasetUploadEnd,
  DatasetUploadList,
  DatasetUploadPart,
  DatasetUploadProgress,
  DatasetUploadRequest,
  DatasetUploadView,
  PART_TOO_LARGE,
} from "../../contract/dataset-upload.ts";
import { Deleted } from "../../contract/endpoint.ts";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { mediaTypeOf } from "../../contract/media-type.ts";
import { EXAMPLE, wholeNumber } from "../../contract/primitives.ts";
import { DatasetView } from "../../contract/uploaded-dataset.ts";
import { databaseOf } from "../db/database.ts";
import { findUpload, listUploads, uploadViewOf } from "../db/dataset-uploads.ts";
import {
  answer,
  ask,
  CREATED_HEADERS,
  creationReply,
  IDEMPOTENCY_HEADER,
  readBody,
  readCreation,
  readQuery,
} from "./answer.ts";
import { Refusal, unwrap } from "./errors.ts";
import { parseAs, readingToEnd, refuseEncoded, refuseLongerThan } from "./input.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import { PageQuery, pageOf, positionOf } from "./page.ts";

const PATH = "/v1/dataset-uploads";
const ListQuery = z.strictObject({
  ...PageQuery.shape,
  sha256: DatasetUploadRequest.shape.sha256.describe("only uploads of the file with this SHA-256"),
});
export const PartNumber = wholeNumber(1, LIMITS.datasetParts);
const PartPath = z.strictObject({ number: PartNumber });

export const datasetUploadOperations: readonly Operation[] = [
  {
    id: "createDatasetUpload",
    route: `POST ${PATH}`,
    permission: "datasets:write",
    summary: "Begin the upload of a dataset in parts",
    description:
      "For a file over 100 MB. Send its bytes in parts of `part_bytes`, in any order, then complete the upload. A part can be sent again at any time: it replaces the part before. An upload expires seven days after its creation.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: DatasetUploadRequest },
    reply: {
      status: 201,
      description: "The upload, without parts",
      schema: DatasetUploadView,
      headers: CREATED_HEADERS,
    },
    errors: ["not_found", "conflict", "idempotency_conflict"],
    handle: createUpload,
  },
  {
    id: "listDatasetUploads",
    route: `GET ${PATH}`,
    permission: "datasets:read",
    summary: "List uploads of datasets in parts",
    query: ListQuery,
    reply: { description: "One page of uploads that have not expired", schema: DatasetUploadList },
    handle: listAll,
  },
  {
    id: "getDatasetUpload",
    route: `GET ${PATH}/{id}`,
    permission: "datasets:read",
    summary: "Read an upload and the parts that are stored",
    reply: { description: "The upload", schema: DatasetUploadProgress },
    handle: (context) => answer(context, context.var.services.readDatasetUpload),
  },
  {
    id: "putDatasetUploadPart",
    route: `PUT ${PATH}/{id}/parts/{number}`,
    permission: "datasets:write",
    summary: "Send a part of a dataset",
    description:
      "Part 1 has the first `part_bytes` bytes of the file, part 2 the next, and the last part has the rest. A part may begin and end within a row.",
    body: {
      schema: z.string().describe("bytes of the file"),
      example: `${JSON.stringify(EXAMPLE.row)}\n`,
      contentType: "application/octet-stream",
    },
    reply: { description: "The part is stored", schema: DatasetUploadPart },
    errors: ["conflict"],
    unlogged: true,
    handle: (context) => {
      refuseLongerThan(context.req.raw, LIMITS.datasetPartBytes, PART_TOO_LARGE);
      return readingToEnd(context, putPart, LIMITS.datasetPartBytes);
    },
  },
  {
    id: "completeDatasetUpload",
    route: `POST ${PATH}/{id}/complete`,
    permission: "datasets:write",
    summary: "Make a dataset of the parts",
    description:
      "The rows are checked like those of an upload in one request. If a row is invalid, no dataset is created and the upload is kept: send the corrected part again, or delete the upload. A repeat returns the same dataset.",
    body: { schema: DatasetUploadEnd },
    reply: {
      status: 201,
      description: "The dataset; it never changes",
      schema: DatasetView,
      headers: { ...CREATED_HEADERS, "idempotent-replayed": "true when the upload was completed before" },
    },
    errors: ["invalid_row", "conflict"],
    handle: complete,
  },
  {
    id: "deleteDatasetUpload",
    route: `DELETE ${PATH}/{id}`,
    permission: "datasets:write",
    summary: "Delete an upload and its parts",
    reply: {
      description: "Deleted; a dataset that it became stays",
      schema: Deleted,
      example: { object: "dataset_upload", id: EXAMPLE.upload },
    },
    handle: async (context) => {
      const { id } = await ask(context, context.var.services.deleteDatasetUpload);
      return context.json({ object: "dataset_upload", id, deleted: true });
    },
  },
];

async function createUpload(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, DatasetUploadRequest);
  const { name = null, environment = null, environment_args, bytes = null, sha256 = null } = request;
  if (environment === null && environment_args !== undefined) {
    const param = "environment_args";
    throw new Refusal({ code: "invalid_request", message: `${param}: needs environment`, param });
  }
  const file = { name, environment, environment_args: (environment_args ?? {}) as JsonObject, bytes, sha256 };
  const made = await context.var.services.createDatasetUpload(context.env, context.var.scope, file, options);
  const { value, replayed } = unwrap(made);
  return creationReply(context, { folder: PATH, status: 201 }, uploadViewOf(value), replayed);
}

async function listAll(context: ApiContext): Promise<Response> {
  const { after, limit, order, sha256 } = readQuery(context, ListQuery);
  const database = databaseOf(context.env);
  const { scope, now } = context.var;
  const position = await positionOf(after, "a dataset upload", (id) => findUpload(database, scope, id));
  const page = { after: position, limit: limit + 1, order };
  const rows = await listUploads(database, scope, page, { now: now(), sha256 });
  return context.json(pageOf(rows.map(uploadViewOf), limit));
}

async function putPart(context: ApiContext): Promise<Response> {
  const { raw } = context.req;
  const { number } = parseAs(PartPath, { number: pathParam(context, "number") });
  requireBytes(raw);
  refuseEncoded(raw);
  const options = { now: context.var.now(), allowed: context.var.stillAllowed };
  const { putDatasetUploadPart } = context.var.services;
  return context.json(await ask(context, putDatasetUploadPart, number, raw.body, options));
}

function requireBytes({ headers }: Request): void {
  if (mediaTypeOf(headers.get("content-type")) === "application/octet-stream") return;
  const message = "send the part as content-type: application/octet-stream";
  throw new Refusal({ code: "invalid_request", message, param: null }, { status: 415 });
}

async function complete(context: ApiContext): Promise<Response> {
  const { bytes } = await readBody(context, DatasetUploadEnd);
  const options = { now: context.var.now(), allowed: context.var.stillAllowed };
  const { dataset, replayed } = await ask(context, context.var.services.completeDatasetUpload, bytes, options);
  return creationReply(context, { folder: "/v1/datasets", status: 201 }, dataset, replayed);
}
