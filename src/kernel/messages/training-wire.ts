/**
 * The messages between a training run's object, its trainer's object and the consumers. As in wire.ts, every message
 * may arrive twice, and arguments and results only ever gain optional fields. Times are epoch milliseconds.
 */
import type { RunFleet } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Acked, Leased, LeaseView, Registered, WeightsOut, WeightVersions } from "../../contract/trainer-wire.ts";
import type { StoredTrainer, TrainerTarget, TrainingSpec } from "../../contract/training-request.ts";
import type { ServedWeights } from "../../core/training/numbering.ts";
import type { TrainerShares } from "./trainer-time.ts";
import type { RunSpec } from "./wire.ts";

export type { StoredTrainer, TrainingSpec };

/** One sample as the run's object stores it: its tokens are in R2. */
export interface SampleNote {
  readonly sample_id: string;
  readonly rollout_id: string;
  readonly tokens: number;
  readonly trainable_tokens: number;
  readonly policy_version_start: number;
  readonly policy_version_end: number;
}

/** What the scoring consumer made of a whole group, besides its scores. */
export interface GroupSamples {
  readonly group: number;
  /** The R2 object with the group's rows, stored under its digest; null if there is nothing to train on. */
  readonly object: {
    readonly sha256: string;
    readonly bytes: number;
    readonly format: string;
  } | null;
  /** In the order of the rows in the object. */
  readonly samples: readonly SampleNote[];
  /** Rollouts that gave no sample, by cause (`no_tokens`, `length_mismatch`, `missing_logprob`, …). */
  readonly untrainable: Readonly<Record<string, number>>;
  /** Rollouts in which a filter found something, by filter; absent: the run has no filters. */
  readonly flagged?: Readonly<Record<string, number>>;
  /** Those of them that give no sample, by the filter that left them out. */
  readonly filtered?: Readonly<Record<string, number>>;
  /** The rows: the first of each rollout, rows that start again, and rows of which something was overwritten. */
  readonly branches: GroupSamples["transitions"];
  /** Transitions between turns: continued by exact prefix, or started again. */
  readonly transitions: {
    readonly clean: number;
    readonly forked: number;
    readonly realigned: number;
  };
  /** Later turns of scored rollouts by how their prompts were sent; absent in a run whose prompts are messages. */
  readonly prompts?: Readonly<Record<string, number>>;
  /** For each rollout, what a length penalty and the metrics count. */
  readonly lengths: Readonly<
    Record<string, { readonly output: number; readonly total: number; readonly turns: number }>
  >;
}

/** A batch that the trainer may have. The run's object sends it to the trainer's object. */
export interface ReadyBatch {
  readonly step: number;
  readonly generation: number;
  readonly batch_id: string;
  readonly sha256: string;
  /** R2 key of the manifest. */
  readonly manifest_key: string;
  readonly max_policy_version: number;
}

export interface TrainerSpec extends StoredTrainer {
  readonly scope: Scope;
  readonly run_id: string;
  readonly target: TrainerTarget;
  readonly max_steps: number;
  /** The fleet whose replicas serve the published weights; absent for a run on an endpoint. */
  readonly fleet?: RunFleet;
}

/** Everything that the run's object needs to know about its trainer. The snapshot with the later `seq` is valid. */
export interface TrainerSnapshot {
  readonly seq: number;
  readonly epoch: number;
  readonly generation: number;
  /** Set with a new generation: the version to which the run was reset. */
  readonly reset_to: number;
  readonly published: number;
  readonly applied: {
    readonly min: number;
    readonly max: number;
    readonly by_replica: Readonly<Record<string, number>>;
  };
  /** Version to sample new groups with: the lowest applied one, or the published one if no replica reports. */
  readonly serving: number;
  readonly acked_step: number;
  readonly leased_step: number | null;
  /** Acknowledgements after the step that the run's object has. */
  readonly acks: readonly {
    readonly step: number;
    readonly at: number;
    readonly produced_version: number;
    readonly metrics: Readonly<Record<string, number | null>>;
    /** Names of metrics whose values were not finite numbers. */
    readonly not_finite?: readonly string[];
  }[];
  readonly dead: {
    readonly step: number;
    readonly batch_id: string;
    readonly reason: string;
  } | null;
  readonly trainer: {
    readonly id: string;
    readonly kind: string;
    readonly last_seen_at: number | null;
  } | null;
  readonly time: TrainerShares;
}

export type TrainerRefusal =
  | { readonly code: "unknown" }
  | { readonly code: "epoch_fenced"; readonly epoch: number }
  | { readonly code: "step_mismatch"; readonly next_step: number }
  | { readonly code: "lease_lost" }
  | { readonly code: "wrong_token" }
  | { readonly code: "wrong_batch"; readonly message: string }
  /** `next_step`: the batch that must be acknowledged first. */
  | { readonly code: "version_ahead"; readonly message: string; readonly next_step: number }
  | { readonly code: "lease_held"; readonly message: string }
  | { readonly code: "needs_reset"; readonly published: number }
  | { readonly code: "run_finished" }
  | { readonly code: "conflict"; readonly message: string; readonly param?: string };
export type Answer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: TrainerRefusal };

/** There is nothing to lease yet, and why. */
export interface Waiting {
  readonly waiting: "waiting_for_rollouts" | "paused" | "draining";
  readonly retry_after_s: number;
}

export interface TrainerRpc {
  /** Creates the object; does nothing after the first call. */
  create(spec: TrainerSpec): Promise<void>;
  /** Batches in step order; repeated ones change nothing. Returns the current snapshot. */
  ready(
    batches: readonly ReadyBatch[],
    known: { readonly acked_step: number; readonly paused: boolean; readonly ended: boolean },
  ): Promise<TrainerSnapshot | null>;
  /** The current snapshot. Null: the object does not exist. `known`: acknowledgements after this step are included. */
  snapshot(known: { readonly acked_step: number }): Promise<TrainerSnapshot | null>;
  register(asked: {
    readonly trainer_id: string;
    readonly kind: string;
    readonly version?: number | undefined;
    readonly last_acked: { readonly batch_id: string; readonly sha256: string } | null;
    readonly reset_to?: number | undefined;
  }): Promise<Answer<Registered>>;
  lease(asked: {
    readonly trainer_id: string;
    readonly epoch: number;
    readonly want_step: number;
    readonly max_wait_s: number;
    readonly ttl_s?: number | undefined;
  }): Promise<Answer<Leased | Waiting>>;
  heartbeat(
    lease: string,
    asked: {
      readonly token: string;
      readonly epoch: number;
      readonly progress?: { readonly phase: string; readonly done: number; readonly total: number } | undefined;
    },
  ): Promise<Answer<Pick<LeaseView, "expires_at">>>;
  ack(
    lease: string,
    asked: {
      readonly token: string;
      readonly epoch: number;
      readonly batch_id: string;
      readonly sha256: string;
      readonly produced_version: number;
      readonly metrics: Readonly<Record<string, number | null>>;
      readonly not_finite?: readonly string[];
      /** The weights of this step are published: stored with the acknowledgement, in one write. */
      readonly published?: WeightsOut | undefined;
    },
  ): Promise<Answer<Acked>>;
  nack(
    lease: string,
    asked: {
      readonly token: string;
      readonly epoch: number;
      readonly reason: string;
      readonly retryable: boolean;
      readonly message?: string | undefined;
    },
  ): Promise<Answer<{ readonly state: "ready" | "dead" }>>;
  report(asked: {
    readonly version: number;
    readonly state: "pending" | "published" | "applied" | "failed";
    readonly epoch: number;
    readonly replica?: string | undefined;
    readonly label?: string | undefined;
    readonly location?: string | undefined;
    readonly sha256?: string | undefined;
    /**
     * The report comes from the run's fleet, about weights of this generation. It has no epoch, so it is never fenced.
     */
    readonly of_fleet?: { readonly generation: number };
    /** From the fleet too: the replicas that accept calls. Others do not delay anything. */
    readonly rotation?: readonly string[];
  }): Promise<Answer<WeightVersions>>;
  weightVersions(): Promise<WeightVersions | null>;
  /**
   * Which weights the engines served from which time on, in order: the latest 1,000 changes. Null: it does not exist.
   */
  served(): Promise<readonly ServedWeights[] | null>;
  /**
   * The batch of a step in the latest generation; `void` if the run was reset and has not cut it again. `max_wait_s`:
   * how long to wait until one can be read.
   */
  batch(
    step: number,
    asked?: { readonly max_wait_s: number },
  ): Promise<(ReadyBatch & { readonly state: string }) | null>;
  /** Offers a dead batch again. */
  revive(step: number): Promise<boolean>;
  /** Frees its storage, because its run is deleted. After that it is unknown. */
  free(): Promise<void>;
}

/** For callers that find no trainer's object and create it. Null for a run that is not a training run. */
export function trainerSpecOf({ scope, run_id, training, trainer, fleet }: RunSpec): TrainerSpec | null {
  if (training === undefined) return null;
  const { trainer: target, max_steps } = training;
  const { base_url } = trainer ?? { base_url: "" };
  return { scope, run_id, target, max_steps, base_url, ...(fleet !== undefined && { fleet }) };
}
