/**
 * A training run from the trainer's side: take a batch, train, remember it, acknowledge it, serve what came of it.
 *
 * Invariants. The order of a step is train, checkpoint, acknowledge, publish: whatever is cut off in between, the next
 * registration says which batch the weights have seen, so none is trained twice and none is left out. While new weights
 * are published the next batch is already asked for. Told to stop, a trainer ends the step it is in.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Leased, Registered } from "../../core/training/trainer-wire.ts";
import { ApiRequestError } from "../../sdk/request-error.ts";
import type { TrainerClient } from "../../sdk/trainer-client.ts";
import { downloadBatch } from "./batch-download.ts";
import { BatchFault } from "./batch-fault.ts";
import type { Batches, Registration } from "./batches.ts";
import { type Checkpoint, writeCheckpoint } from "./checkpoint.ts";
import { type Applied, Fleet, type Replica } from "./fleet.ts";
import { holdLease } from "./held-lease.ts";
import type { Learner } from "./learner.ts";
import { type TrainingSample, trainableTokens } from "./training-sample.ts";

export interface TrainerParts {
  readonly client: Omit<TrainerClient, "lease" | "stream" | "ledger">;
  readonly batches: Batches;
  readonly replicas: readonly Replica[];
  readonly learner: Learner;
  /** The checkpoint's directory. */
  readonly directory: string;
  readonly run_id: string;
  readonly trainer_id: string;
  /** The batch that made the learner's version; null for a beginning. */
  readonly batch: Checkpoint["batch"];
  /** Where later versions were published already, everything sampled by them is given up. */
  readonly rewind: boolean;
  /** For people. */
  readonly say: (line: string) => void;
  /** For programs: right after the fact. */
  readonly tell: (event: TrainerEvent) => void;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

export type TrainerEvent =
  | {
      readonly event: "checkpoint";
      readonly step: number;
      readonly batch_id: string;
      readonly sha256: string;
    }
  | { readonly event: "acked"; readonly step: number }
  | { readonly event: "published"; readonly version: number; readonly sha256: string };

interface Taken extends Leased {
  readonly samples: readonly TrainingSample[];
  readonly held: { end(): void };
}

const KIND = "rollcall-reference";
/** How often replicas are asked what they serve. */
const WATCH_MS = 1000;
/** Registrations in a row, with nothing trained in between, and longer and longer waits: close to a minute in all. */
const MAX_TRIES = 10;
const WAIT_MS = 1000;

export class Trainer {
  readonly #parts: TrainerParts;
  readonly #fleet: Fleet;
  #batch: Checkpoint["batch"];
  /** Null: not registered. */
  #epoch: number | null = null;
  #waitsSince: number;

  constructor(parts: TrainerParts) {
    this.#parts = parts;
    this.#fleet = new Fleet(parts.replicas, (applied) => this.#report(applied), parts.say);
    this.#batch = parts.batch;
    this.#waitsSince = parts.now();
  }

  get version(): number {
    return this.#parts.learner.state.version;
  }

  /** Until the run is over and its last weights are served, or until `stop` aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { learner, say } = this.#parts;
    this.#fleet.set(this.version, learner.state.weights);
    const watch = setInterval(() => {
      this.#fleet.sync().catch((error: unknown) => say(`nothing was reported: ${String(error)}`));
    }, WATCH_MS);
    try {
      await this.#runRegistered(stop).catch((error: unknown) => {
        if (!isRefused(error, "run_finished")) throw error;
      });
      while (!(await this.#fleet.sync())) await wait(WATCH_MS, undefined, { signal: stop });
    } catch (error) {
      if (!(stop.aborted && isAbort(error))) throw error;
    } finally {
      clearInterval(watch);
    }
  }

  /** What the platform does not know of this trainer, or did not manage to keep, a new registration tells it. */
  async #runRegistered(stop: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const before = this.version;
      try {
        return await this.#trainAll(await this.#register(stop), stop);
      } catch (error) {
        if (this.version > before) tries = 0;
        if (!mayPass(error) || tries >= MAX_TRIES) throw error;
        this.#parts.say(`registers again: ${error.message}`);
        await wait(tries * WAIT_MS, undefined, { signal: stop });
      }
    }
  }

  async #register(stop: AbortSignal): Promise<Registered> {
    const { client, trainer_id, rewind } = this.#parts;
    const { version } = this;
    const request = {
      trainer_id,
      kind: KIND,
      protocol: "rl.batch/1",
      version,
      last_acked: this.#batch,
    } as const;
    const options = { signal: stop };
    try {
      return await client.register(request, options);
    } catch (error) {
      const published = error instanceof ApiRequestError ? error.details.published : undefined;
      if (published === undefined) throw error;
      if (rewind) return client.register({ ...request, reset_to: version }, options);
      throw new Error(
        `the checkpoint has version ${version}, but ${published} was published: with --rewind everything after ${version} is given up`,
        { cause: error },
      );
    }
  }

  async #report(applied: Applied): Promise<void> {
    const epoch = this.#epoch;
    if (epoch !== null) await this.#parts.client.reportVersion({ ...applied, epoch });
  }

  async #trainAll({ epoch, published, max_steps }: Registered, stop: AbortSignal): Promise<void> {
    this.#epoch = epoch;
    const who = { trainer_id: this.#parts.trainer_id, epoch };
    let known = published;
    while (this.version < max_steps) {
      const [, taken] = await Promise.all([this.#publish(epoch, known), this.#take(who, stop)]);
      known = this.version;
      try {
        if (stop.aborted) return await this.#giveBack(who, taken, "shutdown");
        await this.#step(who, taken);
      } finally {
        taken.held.end();
      }
      if (stop.aborted) break;
    }
    await this.#publish(epoch, known);
  }

  async #publish(epoch: number, known: number): Promise<void> {
    const { client, learner, tell } = this.#parts;
    const { version, weights } = learner.state;
    const sha256 = this.#fleet.set(version, weights);
    if (version > known) await client.reportVersion({ version, state: "published", epoch, sha256 });
    await this.#fleet.sync();
    tell({ event: "published", version, sha256 });
  }

  /** The next batch that can be read. */
  async #take(who: Registration, stop: AbortSignal): Promise<Taken> {
    const { client, batches, now, say } = this.#parts;
    for (;;) {
      const leased = await batches.next(who, this.version + 1, stop);
      const held = holdLease(client, leased.lease, who.epoch, now(), say);
      try {
        return { ...leased, held, samples: await downloadBatch(client, leased.manifest) };
      } catch (error) {
        held.end();
        if (!(error instanceof BatchFault)) throw error;
        await this.#giveBack(who, leased, error.reason, error.message);
      }
    }
  }

  async #step(who: Registration, taken: Taken): Promise<void> {
    const { client, learner, directory, run_id, now, tell } = this.#parts;
    const { manifest, lease, samples } = taken;
    const { step, batch_id, sha256 } = manifest;
    const began = now();
    const measured = await learner.train(samples).catch((error: unknown) => {
      if (error instanceof BatchFault) return error;
      throw error;
    });
    if (measured instanceof BatchFault) {
      return this.#giveBack(who, taken, measured.reason, measured.message);
    }
    this.#batch = { batch_id, sha256 };
    const metrics = {
      ...measured,
      samples: samples.length,
      tokens: manifest.tokens,
      trainable_tokens: trainableTokens(samples),
      wait_s: (began - this.#waitsSince) / 1000,
      train_s: (now() - began) / 1000,
    };
    await writeCheckpoint(directory, { run_id, batch: this.#batch, state: learner.state });
    tell({ event: "checkpoint", step, batch_id, sha256 });
    const { token } = lease;
    const acked = { token, epoch: who.epoch, batch_id, sha256, produced_version: this.version };
    await client.ack(lease.id, { ...acked, metrics });
    tell({ event: "acked", step });
    this.#waitsSince = now();
  }

  async #giveBack(
    { epoch }: Registration,
    { lease, manifest }: Leased,
    reason: BatchFault["reason"] | "shutdown",
    message?: string,
  ): Promise<void> {
    const { client, say } = this.#parts;
    say(`gives back batch ${manifest.step}: ${message ?? reason}`);
    const { token } = lease;
    const retryable = reason !== "invalid";
    const why = message === undefined ? {} : { message: message.slice(0, 2000) };
    await client.nack(lease.id, { token, epoch, reason, retryable, ...why });
  }
}

function isRefused(error: unknown, code: ApiRequestError["code"]): error is ApiRequestError {
  return error instanceof ApiRequestError && error.code === code;
}

/** Where the platform and the trainer are not at one, a registration with the checkpoint says who is where. */
const AT_ODDS: readonly ApiRequestError["code"][] = [
  "lease_lost",
  "step_mismatch",
  "wrong_lease_token",
  "wrong_batch",
  "version_ahead",
];

/** A lease that ended, or a platform that is not well at the moment. */
function mayPass(error: unknown): error is ApiRequestError {
  if (!(error instanceof ApiRequestError)) return false;
  return AT_ODDS.includes(error.code) || error.status >= 500 || error.code === "unreadable";
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
