/**
 * The loop of a training run: lease a batch, train, store the result, acknowledge the batch, serve the new weights.
 *
 * Invariants: the order of a step is train, checkpoint, acknowledge and publish, serve. After an interruption at any
 * point, the next registration reports which batch the weights include, so no batch is trained twice and none is left
 * out. Meanwhile the next step already trains on the batch that was read ahead. Its result counts only once that same
 * batch is leased and the step before is acknowledged; until then it is only in memory. A trainer that is stopped
 * finishes the step whose lease it has.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Leased, Registered } from "rollcall/contract";
import { ApiRequestError, type TrainerClient } from "rollcall/sdk/trainer";
import { type Batches, holdLease, type Registration } from "./batches.ts";
import { type Checkpoint, writeCheckpoint } from "./checkpoint.ts";
import { type Applied, Fleet, type PackedWeights, packWeights, type Replica } from "./fleet.ts";
import type { Learner, LearnerState, Trained } from "./learner.ts";
import { type BatchRead, downloadBatch, ReadAhead } from "./read-ahead.ts";
import { BatchFault, trainableTokens } from "./row-batch.ts";

export interface TrainerParts {
  readonly client: Omit<TrainerClient, "lease" | "object" | "stream" | "batchAs" | "weightVersions">;
  readonly batches: Batches;
  readonly replicas: readonly Replica[];
  readonly learner: Learner;
  /** The checkpoint's directory. */
  readonly directory: string;
  readonly run_id: string;
  readonly trainer_id: string;
  /** The start: its checkpoint, or the initial state. */
  readonly from: Pick<Checkpoint, "batch" | "state">;
  /** If later versions were already published, discards everything that was sampled with them. */
  readonly rewind: boolean;
  /** Messages for people. */
  readonly log: (line: string) => void;
  /** Events for programs, sent right after they happened. */
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

interface TakenLease extends Leased {
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The result of training on a batch, with its start and end in epoch milliseconds. */
interface Attempt {
  readonly read: BatchRead;
  readonly result: Trained | BatchFault;
  readonly began: number;
  readonly ended: number;
}

interface Step {
  readonly taken: TakenLease;
  readonly state: LearnerState;
  readonly metrics: Readonly<Record<string, number>>;
}

/** The end of a step, which continues while the next step trains. */
interface Closing {
  /** Resolves when the step is in the checkpoint, acknowledged and published. */
  readonly acked: Promise<void>;
  /** Resolves when every reachable replica also has the weights. */
  readonly served: Promise<void>;
}

/** How often the trainer checks which version each replica serves. */
const WATCH_MS = 1000;
/** Registrations in a row without any training in between, with increasing waits: close to a minute in all. */
const MAX_TRIES = 10;
const WAIT_MS = 1000;

export class Trainer {
  readonly #parts: TrainerParts;
  readonly #fleet: Fleet;
  readonly #ahead: ReadAhead;
  /** The content of the checkpoint. */
  #kept: TrainerParts["from"];
  /** Null if not registered. */
  #epoch: number | null = null;
  /** The lease that is kept alive with heartbeats. */
  #held: { end(): void } | null = null;

  constructor(parts: TrainerParts) {
    this.#parts = parts;
    this.#fleet = new Fleet(parts.replicas, (applied) => this.#report(applied), parts.log);
    this.#ahead = new ReadAhead(parts.client);
    this.#kept = parts.from;
  }

  get version(): number {
    return this.#kept.state.version;
  }

  /** Runs until the run is over and its last weights are served, or until `stop` aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { log } = this.#parts;
    this.#fleet.set(packWeights(this.version, this.#kept.state.weights));
    const watch = setInterval(() => {
      this.#fleet.sync().catch((error: unknown) => log(`nothing was reported: ${String(error)}`));
    }, WATCH_MS);
    try {
      await this.#runRegistered(stop).catch((error: unknown) => {
        const isOver = error instanceof ApiRequestError && error.code === "run_finished";
        if (!isOver) throw error;
      });
      while (!(await this.#fleet.sync())) await wait(WATCH_MS, undefined, { signal: stop });
    } catch (error) {
      const isAbort = error instanceof Error && error.name === "AbortError";
      if (!(stop.aborted && isAbort)) throw error;
    } finally {
      clearInterval(watch);
    }
  }

  /** Registers again if that may help: this gives the platform the state of the trainer that it is missing. */
  async #runRegistered(stop: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const before = this.version;
      try {
        return await this.#trainAll(await this.#register(stop), stop);
      } catch (error) {
        if (this.version > before) tries = 0;
        if (!isPassing(error) || tries >= MAX_TRIES) throw error;
        this.#parts.log(`registers again: ${error.message}`);
        await wait(tries * WAIT_MS, undefined, { signal: stop });
      }
    }
  }

  async #register(stop: AbortSignal): Promise<Registered> {
    const { client, trainer_id, rewind } = this.#parts;
    const { version } = this;
    const request = {
      trainer_id,
      kind: "rollcall-reference",
      protocol: "rl.batch/1",
      version,
      last_acked: this.#kept.batch,
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
    let { state } = this.#kept;
    let closing = this.#publishKept(epoch, published);
    try {
      while (state.version < max_steps && !stop.aborted) {
        const next = { before: state, acked: closing.acked, last: max_steps };
        const step = await this.#next(who, next, stop);
        await closing.served;
        if (step === null) continue;
        state = step.state;
        closing = this.#close(epoch, step);
      }
    } finally {
      this.#ahead.end();
      this.#stopHeartbeat();
    }
    await closing.served;
  }

  #stopHeartbeat(): void {
    this.#held?.end();
    this.#held = null;
  }

  /** Reports the checkpoint's version if the platform does not have it as published, and serves it everywhere. */
  #publishKept(epoch: number, published: number): Closing {
    const { version } = this;
    const packed = packWeights(version, this.#kept.state.weights);
    const { sha256 } = packed;
    const report = async () => {
      if (version <= published) return;
      await this.#parts.client.reportVersion({ version, state: "published", epoch, sha256 });
    };
    return this.#serveAfter(report(), packed);
  }

  #close(epoch: number, step: Step): Closing {
    const packed = packWeights(step.state.version, step.state.weights);
    const acked = this.#acknowledge(epoch, step, packed.sha256).finally(() => this.#stopHeartbeat());
    return this.#serveAfter(acked, packed);
  }

  #serveAfter(before: Promise<void>, packed: PackedWeights): Closing {
    const { version, sha256 } = packed;
    const serve = async () => {
      this.#fleet.set(packed);
      await this.#fleet.sync();
      this.#parts.tell({ event: "published", version, sha256 });
    };
    const acked = deferRejection(before);
    return { acked, served: deferRejection(acked.then(serve)) };
  }

  async #acknowledge(epoch: number, { taken, state, metrics }: Step, sha256: string) {
    const { client, directory, run_id, tell } = this.#parts;
    const { lease, manifest } = taken;
    const batch = { batch_id: manifest.batch_id, sha256: manifest.sha256 };
    await writeCheckpoint(directory, { run_id, batch, state });
    this.#kept = { batch, state };
    const { step } = manifest;
    tell({ event: "checkpoint", step, ...batch });
    const ack = { token: lease.token, epoch, ...batch, produced_version: state.version, metrics };
    await client.ack(lease.id, { ...ack, published: { sha256 } });
    tell({ event: "acked", step });
  }

  /** Trains the step after `before`. Null if its batch was given back. */
  async #next(
    who: Registration,
    { before, acked, last }: { before: LearnerState; acked: Promise<void>; last: number },
    stop: AbortSignal,
  ): Promise<Step | null> {
    const free = this.#parts.now();
    const leasing = deferRejection(acked.then(() => this.#lease(who, before.version + 1, stop)));
    const ahead = await this.#trainAhead(before, leasing, last);
    const taken = await leasing;
    if (taken === null) return null;
    const isSame = ahead?.read.manifest.sha256 === taken.manifest.sha256;
    const attempt = isSame ? ahead : await this.#trainLeased(before, taken);
    const { read, result, began, ended } = attempt;
    if (result instanceof BatchFault) {
      this.#stopHeartbeat();
      this.#ahead.end();
      await this.#giveBack(who, taken, result.reason, result.message);
      return null;
    }
    const metrics = {
      ...result.metrics,
      samples: read.samples.length,
      tokens: read.manifest.tokens,
      trainable_tokens: trainableTokens(read.samples),
      wait_s: (began - free + Math.max(0, taken.at - ended)) / 1000,
      train_s: (ended - began) / 1000,
    };
    return { taken, state: result.state, metrics };
  }

  /**
   * Trains on the read-ahead batch before its lease is there. Null if it could not be read. Rejects as the lease does.
   */
  async #trainAhead(before: LearnerState, leasing: Promise<TakenLease | null>, last: number): Promise<Attempt | null> {
    const step = before.version + 1;
    const reading = this.#ahead.of(step).catch((error: unknown) => {
      this.#parts.log(`batch ${step} was not read ahead: ${String(error)}`);
      return null;
    });
    const read = await Promise.race([reading, leasing.then((taken) => (taken === null ? null : reading))]);
    if (read === null) return null;
    if (step < last) this.#ahead.begin(step + 1);
    const attempt = this.#train(before, read);
    // Waits until the one computing thread is free before handling a lease that failed.
    await Promise.allSettled([attempt, leasing]);
    return attempt;
  }

  async #trainLeased(before: LearnerState, { manifest }: TakenLease): Promise<Attempt> {
    try {
      const samples = await downloadBatch(this.#parts.client, manifest);
      return await this.#train(before, { manifest, samples });
    } catch (error) {
      if (!(error instanceof BatchFault)) throw error;
      const at = this.#parts.now();
      return { read: { manifest, samples: [] }, result: error, began: at, ended: at };
    }
  }

  async #train(before: LearnerState, read: BatchRead): Promise<Attempt> {
    const { learner, now } = this.#parts;
    const began = now();
    const result = await learner.train(before, read.samples).catch((error: unknown) => {
      if (error instanceof BatchFault) return error;
      throw error;
    });
    return { read, result, began, ended: now() };
  }

  /** Null if the trainer was stopped and gave the batch back. */
  async #lease(who: Registration, step: number, stop: AbortSignal): Promise<TakenLease | null> {
    const { client, batches, now, log } = this.#parts;
    const leased = await batches.next(who, step, stop);
    if (stop.aborted) {
      await this.#giveBack(who, leased, "shutdown");
      return null;
    }
    const at = now();
    this.#held = holdLease(client, leased.lease, who.epoch, at, log);
    return { ...leased, at };
  }

  async #giveBack(
    { epoch }: Registration,
    { lease, manifest }: Leased,
    reason: BatchFault["reason"] | "shutdown",
    message?: string,
  ): Promise<void> {
    const { client, log } = this.#parts;
    log(`gives back batch ${manifest.step}: ${message ?? reason}`);
    const { token } = lease;
    const retryable = reason !== "invalid";
    const why = message === undefined ? {} : { message: message.slice(0, 2000) };
    await client.nack(lease.id, { token, epoch, reason, retryable, ...why });
  }
}

/** If the platform and the trainer disagree, a registration with the checkpoint resolves it. */
const DISAGREEMENTS: readonly ApiRequestError["code"][] = [
  "lease_lost",
  "step_mismatch",
  "wrong_lease_token",
  "wrong_batch",
  "version_ahead",
];

/** A lease that ended, or a temporary problem of the platform. */
function isPassing(error: unknown): error is ApiRequestError {
  if (!(error instanceof ApiRequestError)) return false;
  return DISAGREEMENTS.includes(error.code) || error.status >= 500 || error.code === "unreadable";
}

/** Its rejection is handled where it is awaited, which may be long after. */
function deferRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
