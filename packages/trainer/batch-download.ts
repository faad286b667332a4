/**
 * A batch from its manifest: objects fetched, checked and joined with their credits.
 *
 * Invariants. Every object is held against the digest that names it (by the client), and the digests together against
 * the batch's: what trains is exactly what the platform cut. A sample without a credit does not train.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { BatchManifest } from "../../src/contract/trainer-wire.ts";
import { batchDigest, type CreditLine, parseCredits } from "../../src/core/training/batch.ts";
import {
  decodeRows,
  formatOf,
  SampleDecodeError,
  type SampleEncoding,
} from "../../src/core/training/sample-encoding.ts";
import type { SampleRow } from "../../src/core/training/sample-row.ts";

import { BatchDigestError, type TrainerClient } from "../../src/sdk/trainer-client.ts";
import { BatchFault } from "./batch-fault.ts";
import type { TrainingSample } from "./training-sample.ts";

export type BatchSource = Pick<TrainerClient, "objects" | "credits">;

const ENCODINGS: readonly SampleEncoding[] = ["msgpack", "jsonl"];
const unzip = promisify(gunzip);

/** In manifest order. Throws BatchFault, or what the platform refused with. */
export async function downloadBatch(source: BatchSource, manifest: BatchManifest): Promise<TrainingSample[]> {
  const digests = manifest.objects.map(({ sha256 }) => sha256);
  const whole = await batchDigest(digests, manifest.credits.sha256, async (bytes) => digest(bytes));
  if (whole !== manifest.sha256) throw new BatchFault("decode", "the manifest's digest is not its own");
  const [credits, rows] = await Promise.all([downloadCredits(source, manifest), downloadRows(source, manifest)]);
  const byId = new Map(credits.map((credit) => [credit.sample_id, credit]));
  return rows.flatMap((row) => credited(row, byId.get(row.sample_id)));
}

async function downloadCredits(source: BatchSource, { step, credits }: BatchManifest): Promise<CreditLine[]> {
  const text = await source.credits(step);
  check(new TextEncoder().encode(text), credits.sha256);
  return parseCredits(text);
}

async function downloadRows(source: BatchSource, manifest: BatchManifest): Promise<SampleRow[]> {
  const objects = await source.objects(manifest).catch((error: unknown) => {
    if (!(error instanceof BatchDigestError)) throw error;
    throw new BatchFault("decode", error.message, { cause: error });
  });
  const rows: SampleRow[] = [];
  for (const [at, bytes] of objects.entries()) {
    rows.push(...(await rowsOf(bytes, manifest.objects[at]?.format ?? "")));
  }
  return rows;
}

async function rowsOf(bytes: Uint8Array<ArrayBuffer>, format: string): Promise<SampleRow[]> {
  const encoding = ENCODINGS.find((known) => formatOf(known) === format);
  if (encoding === undefined) throw new BatchFault("decode", `${format} is no format this trainer reads`);
  try {
    return decodeRows(new Uint8Array(await unzip(bytes)), encoding);
  } catch (error) {
    if (error instanceof SampleDecodeError) throw new BatchFault("decode", error.message, { cause: error });
    throw error;
  }
}

function credited(row: SampleRow, credit: CreditLine | undefined): TrainingSample[] {
  if (credit === undefined) return [];
  if (credit.advantage === null) {
    throw new BatchFault("invalid", "the batch has no advantages: this trainer computes none of its own");
  }
  const { token_ids: ids, mask, logprobs } = row;
  return [{ ids, mask, logprobs, advantage: credit.advantage }];
}

function check(bytes: Uint8Array, expected: string): void {
  const found = digest(bytes);
  if (found === expected) return;
  throw new BatchFault("decode", `the digest of the credits is ${found}, not ${expected}`);
}

function digest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
