/**
 * The batch of the next step, read before it is leased: as soon as it is cut, while the one before it trains.
 *
 * Invariants. What is read is known by its manifest's digest: whoever has the lease of another batch reads that instead.
 * One batch at a time. A step whose batch is not there yet, or void because the run went back, is waited for.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { BatchManifest } from "../../src/contract/trainer-wire.ts";
import { ApiRequestError } from "../../src/sdk/request-error.ts";
import type { TrainerClient } from "../../src/sdk/trainer-client.ts";
import { type BatchSource, downloadBatch } from "./batch-download.ts";
import type { TrainingSample } from "./training-sample.ts";

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
