/**
 * Batches as their bytes. Objects are served as they are stored and named by their digest, so they may be cached for
 * ever, and a download that broke goes on by `Range`.
 */
import * as z from "zod";
import { wholeNumber } from "../contract/primitives.ts";
import { BatchManifest } from "../contract/trainer-wire.ts";
import { CreditLine } from "../core/training/batch.ts";
import { Refusal, unwrap } from "./errors.ts";
import { parseAs, queryOf } from "./input.ts";
import { CREDIT, MANIFEST } from "./openapi/trainer-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import type { Result, Services, StoredBytes } from "./services.ts";

const ONE = "/v1/runs/{id}/batches/{step}";
export const BatchStep = wholeNumber(1);
const Step = z.strictObject({ step: BatchStep });
const LONGEST_WAIT_S = 60;
const ManifestQuery = z.strictObject({
  max_wait_s: wholeNumber(0, LONGEST_WAIT_S)
    .default(0)
    .describe("how long the request may wait for a batch that is not there yet")
    .meta({ example: 30 }),
});
const ObjectQuery = z.strictObject({
  format: z
    .enum(["msgpack", "jsonl"])
    .optional()
    .describe("in another encoding than the stored one, whole: the digest is not of these bytes")
    .meta({ example: "jsonl" }),
});

export const batchOperations: readonly Operation[] = [
  {
    id: "getBatch",
    method: "get",
    path: ONE,
    trainer: true,
    summary: "Read what a batch is made of",
    description:
      "As soon as it is cut, leased or not: a trainer may read the next batch while it trains one. Of the latest generation, where the run went back: `batch_void` until it has cut the step anew. A manifest never changes; whether it is still the batch of its step says its digest beside that of the lease.",
    query: ManifestQuery,
    reply: {
      status: 200,
      description: "The manifest",
      contentType: "application/json",
      schema: BatchManifest,
      example: MANIFEST,
    },
    errors: ["invalid_request", "unknown_field", "not_found", "batch_void"],
    handle: readManifest,
  },
  {
    id: "getBatchObject",
    method: "get",
    path: `${ONE}/objects/{sha256}`,
    trainer: true,
    summary: "Read one object of a batch: rows of rl.sample/1, gzipped",
    query: ObjectQuery,
    headers: {
      Range: "the part of the bytes to give",
      "If-None-Match": "the digest in quotes, of what you have",
    },
    reply: {
      status: 200,
      description: "The bytes as they are stored; their SHA-256 is in the path",
      contentType: "application/gzip",
      schema: null,
      example: "…",
      headers: { etag: "the digest, in quotes" },
      ranged: true,
    },
    errors: ["invalid_request", "unknown_field", "not_found", "batch_void", "too_large"],
    handle: readObject,
  },
  {
    id: "getBatchCredits",
    method: "get",
    path: `${ONE}/credits`,
    trainer: true,
    summary: "Read what each sample of a batch is worth, a line each",
    description: "In the order of the manifest's rows. A row without a line does not train.",
    reply: {
      status: 200,
      description: "Lines of rl.credit/1",
      contentType: "application/jsonl",
      schema: CreditLine,
      example: CREDIT,
    },
    errors: ["invalid_request", "not_found", "batch_void"],
    handle: (context) => whole(context, "application/jsonl", "readCredits"),
  },
  {
    id: "streamBatch",
    method: "get",
    path: `${ONE}/stream`,
    trainer: true,
    summary: "Read all objects of a batch, one after another",
    description: "Members of gzip concatenate: the whole is one valid gzip stream of all rows.",
    reply: {
      status: 200,
      description: "Every object's bytes, in the order of the manifest",
      contentType: "application/gzip",
      schema: null,
      example: "…",
    },
    errors: ["invalid_request", "not_found", "batch_void", "too_large"],
    handle: (context) => whole(context, "application/gzip", "streamSamples"),
  },
];

function stepOf(context: ApiContext): number {
  return parseAs(Step, { step: pathParam(context, "step") }).step;
}

/** `length` frees a stream from being sent in chunks. */
function bytesReply({ body, bytes }: StoredBytes, type: string, more = {}, status = 200): Response {
  const headers = { "content-type": type, "content-length": String(bytes), ...more };
  return new Response(body, { status, headers });
}

async function whole(context: ApiContext, type: string, part: "readCredits" | "streamSamples"): Promise<Response> {
  const { services } = context.var.dependencies;
  const read: (...asked: Parameters<Services[typeof part]>) => Promise<Result<StoredBytes>> = services[part];
  const id = pathParam(context, "id");
  const stored = unwrap(await read(context.env, context.var.scope, id, stepOf(context)));
  return bytesReply(stored, type);
}

async function readManifest(context: ApiContext): Promise<Response> {
  const { max_wait_s } = parseAs(ManifestQuery, queryOf(context.req.url));
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const step = stepOf(context);
  const read = services.readManifest(context.env, context.var.scope, id, step, max_wait_s);
  return bytesReply(unwrap(await read), "application/json");
}

async function readObject(context: ApiContext): Promise<Response> {
  const { format = null } = parseAs(ObjectQuery, queryOf(context.req.url));
  const sha256 = pathParam(context, "sha256");
  const etag = `"${sha256}"`;
  const known = context.req.header("if-none-match")?.split(/\s*,\s*/) ?? [];
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const object = { step: stepOf(context), sha256, format };
  const range = format === null ? (context.req.header("range") ?? null) : null;
  const asked = { ...object, range, headOnly: format === null && known.includes(etag) };
  const part = unwrap(await services.readSamples(context.env, context.var.scope, id, asked));
  if (format !== null) return bytesReply(part, "application/gzip");
  if (asked.headOnly) return new Response(null, { status: 304, headers: { etag } });
  const headers = { etag, "accept-ranges": "bytes" };
  if (part.range === null) return bytesReply(part, "application/gzip", headers);
  const { from, of } = part.range;
  if (from === null) throw noSuchRange(of);
  const content_range = `bytes ${from}-${from + part.bytes - 1}/${of}`;
  return bytesReply(part, "application/gzip", { ...headers, "content-range": content_range }, 206);
}

function noSuchRange(size: number): Refusal {
  const message = `Range: the object has ${size} bytes`;
  return new Refusal(
    { code: "invalid_request", message, param: "Range" },
    { status: 416, headers: { "content-range": `bytes */${size}` } },
  );
}
