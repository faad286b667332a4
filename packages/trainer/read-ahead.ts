/**
 * Downloads a batch by its manifest, and reads the batch of the next step before it is leased: as soon as it exists,
 * while the previous one is trained.
 *
 * Invariants: the client checks every object against the digest that names it, and the digests together against the
 * batch's digest, so the trainer gets exactly what the platform produced. A batch that was read ahead is identified by
 * its manifest's digest: if the lease is for another batch, that one is read instead. A step whose batch does not exist
 * yet, or is void because the run went back, is waited for.
 */
import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { BatchManifest } from "rollcall/contract";
import { ApiRequestError, BatchDigestError, type TrainerClient } from "rollcall/sdk/trainer";
import {
  batchDigest,
  type CreditLine,
  decodeRows,
  formatOf,
  parseCredits,
  SampleDecodeError,
  type SampleEncoding,
  type SampleRow,
} from "rollcall/training";
import { BatchFault, type TrainingSample } from "./row-batch.ts";

type BatchSource = Pick<TrainerClient, "objects" | "credits">;

const ENCODINGS: readonly SampleEncoding[] = ["msgpack", "jsonl"];
const unzip = promisify(gunzip);

/** In manifest order; a sample without a credit is not trained on. Throws BatchFault, or the platform's error. */
export async function downloadBatch(source: BatchSource, manifest: BatchManifest): Promise<TrainingSample[]> {
  const digests = manifest.objects.map(({ sha256 }) => sha256);
  const whole = await batchDigest(digests, manifest.credits.sha256, async (bytes) => digestOf(bytes));
  if (whole !== manifest.sha256) throw new BatchFault("decode", "the manifest's digest is not its own");
  const [credits, rows] = await Promise.all([downloadCredits(source, manifest), downloadRows(source, manifest)]);
  const byId = new Map(credits.map((credit) => [credit.sample_id, credit]));
  return rows.flatMap((row) => {
    const credit = byId.get(row.sample_id);
    return credit === undefined ? [] : sampleOf(row, credit);
  });
}

async function downloadCredits(source: BatchSource, { step, credits }: BatchManifest): Promise<CreditLine[]> {
  const text = await source.credits(step);
  const digest = digestOf(new TextEncoder().encode(text));
  if (digest === credits.sha256) return parseCredits(text);
  throw new BatchFault("decode", `the digest of the credits is ${digest}, not ${credits.sha256}`);
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

function sampleOf({ token_ids: ids, mask, logprobs }: SampleRow, { advantage, weight }: CreditLine): TrainingSample {
  if (mask.some((bit) => bit > 1)) throw new BatchFault("invalid", "a mask holds a number that is neither 0 nor 1");
  if (advantage !== null) return { ids, mask, logprobs, advantage, ...(weight !== undefined && { weight }) };
  throw new BatchFault("invalid", "the batch has no advantages: this trainer computes none of its own");
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export interface BatchRead {
  readonly manifest: BatchManifest;
  readonly samples: readonly TrainingSample[];
}

const LONGEST_WAIT_S = 30;
/** Used when the request itself does not wait: the run is over, and the lease will report that. */
const ASK_AGAIN_MS = 1000;

interface Reading {
  readonly step: number;
  readonly batch: Promise<BatchRead>;
  readonly abort: AbortController;
}

/** One batch at a time. */
export class ReadAhead {
  readonly #client: BatchSource & Pick<TrainerClient, "manifest">;
  #reading: Reading | null = null;

  constructor(client: BatchSource & Pick<TrainerClient, "manifest">) {
    this.#client = client;
  }

  /**
   * The batch of this step, as soon as it exists. Starts reading it, and drops what was read of another. Rejects when a
   * download fails, and when another step is requested.
   */
  of(step: number): Promise<BatchRead> {
    if (this.#reading?.step === step) return this.#reading.batch;
    this.end();
    const abort = new AbortController();
    const batch = this.#read(step, abort.signal);
    this.#reading = { step, abort, batch };
    return batch;
  }

  /** Like `of`, for a step that is needed later: a later `of` gets the error; without one, the error is ignored. */
  begin(step: number): void {
    this.of(step).catch(() => undefined);
  }

  /** Drops what was read: it could not be trained on, or its registration is over. */
  end(): void {
    this.#reading?.abort.abort();
    this.#reading = null;
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
