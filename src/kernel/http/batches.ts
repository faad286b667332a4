/**
 * Serves the bytes of batches. Objects are served as they are stored and are named by their digest, so they may be
 * cached forever, and an interrupted download continues with `Range`.
 */
import * as z from "zod";
import { FORMAT_QUERY, type FormatQuery } from "../../contract/batch-format.ts";
import { BATCH_SHA256_HEADER, CUT_ROWS_HEADER } from "../../contract/batch-headers.ts";
import { wholeNumber } from "../../contract/primitives.ts";
import { BatchManifest } from "../../contract/trainer-wire.ts";
import { CreditLine } from "../../core/training/batch.ts";
import type { StoredBytes } from "../service/read-batch.ts";
import { ask, readQuery } from "./answer.ts";
import { Refusal } from "./errors.ts";
import { parseAs } from "./input.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

const ONE = "/v1/runs/{id}/batches/{step}";
export const BatchStep = wholeNumber(1);
const Step = z.strictObject({ step: BatchStep });
const LONGEST_WAIT_S = 60;
const ManifestQuery = z.strictObject({
  max_wait_s: wholeNumber(0, LONGEST_WAIT_S)
    .default(0)
    .describe("how long to wait for a batch that is not ready yet")
    .meta({ example: 30 }),
  ...FORMAT_QUERY,
});
const ObjectQuery = z.strictObject({
  format: z
    .enum(["msgpack", "jsonl"])
    .optional()
    .describe("an encoding other than the stored one, for the whole object; the digest does not match these bytes")
    .meta({ example: "jsonl" }),
});

export const batchOperations: readonly Operation[] = [
  {
    id: "getBatch",
    route: `GET ${ONE}`,
    permission: ["trainer", "runs:read"],
    trainer: true,
    summary: "Read a batch's manifest, or its rows in a trainer's own format",
    description:
      "Available as soon as the batch is built, leased or not: a trainer may read the next batch while it trains one. After a reset it is the batch of the latest generation, and `batch_void` until that is built. A manifest never changes; compare its digest with the lease's to see whether it is still the batch of its step.\n\nWith `format` it is the batch's rows with their advantages, in that trainer's format (`docs/training-data.md`). A format that needs advantages (`prime-rl`, `trl`, `tinker`) is refused if the run computes none. At most 16,777,216 tokens, 4,194,304 in one object.",
    query: ManifestQuery,
    reply: {
      description: "The manifest, or rows",
      schema: BatchManifest,
      headers: {
        [BATCH_SHA256_HEADER]: "with `format`: the manifest's `sha256`, to be held against the lease's",
        [CUT_ROWS_HEADER]: "with `format=prime-rl`: rows that were longer than `seq_len`, and are cut to it",
      },
      otherwise: {
        "application/jsonl": {
          description: "with `format`: a row a line",
          example: '{"input_ids":[1,61,3],"completion_mask":[0,0,1],"…":"…"}',
        },
        "application/vnd.msgpack": {
          description: "with `format=prime-rl`: what `rank_{rank}.bin` holds, a list of micro batches",
          example: "…",
        },
      },
    },
    errors: ["batch_void", "too_large"],
    handle: readManifest,
  },
  {
    id: "getBatchObject",
    route: `GET ${ONE}/objects/{sha256}`,
    permission: ["trainer", "runs:read"],
    trainer: true,
    summary: "Read one object of a batch: rows of rl.sample/1, gzipped",
    query: ObjectQuery,
    headers: {
      Range: "the range of bytes to return",
      "If-None-Match": "the digest of what you have, in quotes",
    },
    reply: {
      description: "The bytes as stored; their SHA-256 is in the path",
      contentType: "application/gzip",
      schema: null,
      example: "…",
      headers: { etag: "the digest, in quotes" },
      ranged: true,
    },
    errors: ["batch_void", "too_large"],
    handle: readObject,
  },
  {
    id: "getBatchCredits",
    route: `GET ${ONE}/credits`,
    permission: ["trainer", "runs:read"],
    trainer: true,
    summary: "Read the credits of a batch, one line per sample",
    description: "In the order of the manifest's rows. A row without a line is not trained on.",
    reply: {
      description: "Lines of rl.credit/1",
      contentType: "application/jsonl",
      schema: CreditLine,
      example: { sample_id: "ro_….0", reward: 1, advantage: 0.5, outcome: "scored" },
    },
    errors: ["batch_void"],
    handle: async (context) => {
      const stored = await ask(context, context.var.services.readCredits, stepOf(context));
      return bytesReply(stored, "application/jsonl");
    },
  },
  {
    id: "streamBatch",
    route: `GET ${ONE}/stream`,
    permission: ["trainer", "runs:read"],
    trainer: true,
    summary: "Read all objects of a batch, one after another",
    description: "Members of gzip concatenate: the whole is one valid gzip stream of all rows.",
    reply: {
      description: "Every object's bytes, in the order of the manifest",
      contentType: "application/gzip",
      schema: null,
      example: "…",
    },
    errors: ["batch_void", "too_large"],
    handle: async (context) => {
      const stored = await ask(context, context.var.services.streamSamples, stepOf(context), context.var.stillAllowed);
      return bytesReply(stored, "application/gzip");
    },
  },
];

function stepOf(context: ApiContext): number {
  return parseAs(Step, { step: pathParam(context, "step") }).step;
}

/** With a content-length, a stream is not sent in chunks. */
function bytesReply({ body, bytes }: StoredBytes, type: string, more = {}, status = 200): Response {
  const headers = { "content-type": type, "content-length": String(bytes), ...more };
  return new Response(body, { status, headers });
}

async function readManifest(context: ApiContext): Promise<Response> {
  const { max_wait_s, ...asked } = readQuery(context, ManifestQuery);
  const query = formatQueryOf(asked);
  if (query !== null) return await readFormatted(context, query, max_wait_s);
  const stored = await ask(context, context.var.services.readManifest, stepOf(context), max_wait_s);
  return bytesReply(stored, "application/json");
}

type Asked = Omit<z.output<typeof ManifestQuery>, "max_wait_s">;

/** Null if no format is requested. */
function formatQueryOf({ format, seq_len, ...share }: Asked): FormatQuery | null {
  const { ranks = 1, rank = 0 } = share;
  if (format === "prime-rl") {
    if (seq_len === undefined) throw refused("seq_len", "prime-rl packs rows: seq_len (in tokens) is required");
    if (rank >= ranks) throw refused("ranks", `rank ${rank} does not exist: ranks go from 0 to ${ranks - 1}`);
    return { format, seq_len, ...share };
  }
  const isPacked = seq_len !== undefined || Object.values(share).some((value) => value !== undefined);
  if (isPacked) throw refused("format", "seq_len, ranks, rank and pad_to_multiple_of need format=prime-rl");
  return format === undefined ? null : { format };
}

function refused(param: string, why: string): Refusal {
  return new Refusal({ code: "invalid_request", message: `${param}: ${why}`, param });
}

async function readFormatted(context: ApiContext, query: FormatQuery, max_wait_s: number): Promise<Response> {
  const asked = { step: stepOf(context), max_wait_s, query };
  const { formatBatch } = context.var.services;
  const { body, sha256, cut_rows } = await ask(context, formatBatch, asked, context.var.stillAllowed);
  const type = query.format === "prime-rl" ? "application/vnd.msgpack" : "application/jsonl";
  const cut = cut_rows === null ? {} : { [CUT_ROWS_HEADER]: String(cut_rows) };
  return new Response(body, { headers: { "content-type": type, [BATCH_SHA256_HEADER]: sha256, ...cut } });
}

async function readObject(context: ApiContext): Promise<Response> {
  const { format = null } = readQuery(context, ObjectQuery);
  const sha256 = pathParam(context, "sha256");
  const etag = `"${sha256}"`;
  const known = context.req.header("if-none-match")?.split(/\s*,\s*/) ?? [];
  const object = { step: stepOf(context), sha256, format };
  const range = format === null ? (context.req.header("range") ?? null) : null;
  const asked = { ...object, range, headOnly: format === null && known.includes(etag) };
  const part = await ask(context, context.var.services.readSamples, asked);
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
