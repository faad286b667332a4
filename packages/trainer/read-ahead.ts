/**
 * The batch of the next step, read before it is leased: as soon as it is cut, while the one before it trains.
 *
 * Invariants. What is read is known by its manifest's digest: whoever has the lease of another batch reads that instead.
 * One batch at a time. A step whose batch is not there yet, or void because the run went back, is waited for.
 */

import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { BatchManifest } from "../../src/contract/trainer-wire.ts";
import { batchDigest, type CreditLine, parseCredits } from "../../src/core/training/batch.ts";
import {
  decodeRows,
  formatOf,
  SampleDecodeError,
  type SampleEncoding,
  type SampleRow,
} from "../../src/core/training/sample-row.ts";
import { ApiRequestError } from "../../src/sdk/request-error.ts";
import { BatchDigestError, type TrainerClient } from "../../src/sdk/trainer-client.ts";

import { BatchFault, type TrainingSample } from "./row-batch.ts";

export type BatchSource = Pick<TrainerClient, "objects" | "credits">;

const ENCODINGS: readonly SampleEncoding[] = ["msgpack", "jsonl"];

const unzip = promisify(gunzip);

export interface BatchRead {
  readonly manifest: BatchManifest;
  readonly samples: readonly TrainingSample[];
}

const LONGEST_WAIT_S = 30;
/** Where the request itself does not wait: the run is over, and whoever leases hears of that. */
const ASK_AGAIN_MS = 1000;

interface Reading {
  readonly step: number;
  readonly batch: Promise<BatchRead>;
  readonly abort: AbortController;
}

export class ReadAhead {
  readonly #client: BatchSource & Pick<TrainerClient, "manifest">;
  #reading: Reading | null = null;

  constructor(client: BatchSource & Pick<TrainerClient, "manifest">) {
    this.#client = client;
  }

  /** The batch of this step, whenever it is there. Rejects as a download does, and once another is begun. */
  of(step: number): Promise<BatchRead> {
    return (this.#reading?.step === step ? this.#reading : this.#begin(step)).batch;
  }

  /** From now on this step's batch is read, and what was read of another is forgotten. */
  begin(step: number): void {
    if (this.#reading?.step !== step) this.#begin(step);
  }

  /** Forgets what was read: it could not be trained, or belongs to a registration that is over. */
  end(): void {
    this.#reading?.abort.abort();
    this.#reading = null;
  }

  #begin(step: number): Reading {
    this.end();
    const abort = new AbortController();
    const batch = this.#read(step, abort.signal);
    // Whoever asks for it hears why it failed; where nobody does, nothing is lost.
    batch.catch(() => undefined);
    this.#reading = { step, abort, batch };
    return this.#reading;
  }

  async #read(step: number, signal: AbortSignal): Promise<BatchRead> {
    const manifest = await this.#manifest(step, signal);
    return { manifest, samples: await downloadBatch(this.#client, manifest) };
  }

  async #manifest(step: number, signal: AbortSignal): Promise<BatchManifest> {
    for (;;) {
      try {
        return await this.#client.manifest(step, { maxWaitS: LONGEST_WAIT_S, signal });
      } catch (error) {
        if (!isNotThere(error)) throw error;
        await wait(ASK_AGAIN_MS, undefined, { signal });
      }
    }
  }
}

function isNotThere(error: unknown): boolean {
  return error instanceof ApiRequestError && (error.code === "not_found" || error.code === "batch_void");
}

/**
 * A batch from its manifest: objects fetched, checked and joined with their credits.
 *
 * Invariants. Every object is held against the digest that names it (by the client), and the digests together against
 * the batch's: what trains is exactly what the platform cut. A sample without a credit does not train.
 */

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
