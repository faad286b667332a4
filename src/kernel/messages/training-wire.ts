/**
 * What a training run's object, its trainer's object and the consumers say to each other. As in wire.ts: everything may
 * come twice, and arguments and results only ever gain optional fields. Times are epoch milliseconds.
 */
import type { RunFleet } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Acked, Leased, LeaseView, Registered, WeightsOut, WeightVersions } from "../../contract/trainer-wire.ts";
import type { StoredTrainer, TrainerTarget, TrainingSpec } from "../../contract/training-request.ts";
import type { ServedWeights } from "../../core/training/numbering.ts";
import type { TrainerShares } from "./trainer-time.ts";
import type { RunSpec } from "./wire.ts";

export type { StoredTrainer, TrainingSpec };

/** One sample as the run's object knows it: its tokens are in R2. */
export interface SampleNote {
  readonly sample_id: string;
  readonly rollout_id: string;
  readonly tokens: number;
  readonly trainable_tokens: number;
  readonly policy_version_start: number;
  readonly policy_version_end: number;
}

/** What the scoring consumer made of a whole group, beside its scores. */
export interface GroupSamples {
  readonly group: number;
  /** The object with the group's rows, in R2 under its digest; null when there is nothing to train. */
  readonly object: {
    readonly sha256: string;
    readonly bytes: number;
    readonly format: string;
  } | null;
  /** In the order of the rows in the object. */
  readonly samples: readonly SampleNote[];
  /** Rollouts no sample could be made of, by cause (`no_tokens`, `length_mismatch`, `missing_logprob`, …). */
  readonly untrainable: Readonly<Record<string, number>>;
  /** The rows: rollouts' first ones, those begun anew, and those of which something was overwritten. */
  readonly branches: GroupSamples["transitions"];
  /** Between turns: continued by exact prefix, started anew. */
  readonly transitions: {
    readonly clean: number;
    readonly forked: number;
    readonly realigned: number;
  };
  /** Per rollout, what a length penalty and the metrics count. */
  readonly lengths: Readonly<
    Record<string, { readonly output: number; readonly total: number; readonly turns: number }>
  >;
}

/** A batch the trainer may have: the run's object tells its trainer's object. */
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
  /** Whose replicas serve what it publishes; absent for a run on an endpoint. */
  readonly fleet?: RunFleet;
}

/** Everything the run's object needs to know of its trainer; the later `seq` is the truth. */
export interface TrainerSnapshot {
  readonly seq: number;
  readonly epoch: number;
  readonly generation: number;
  /** Set with a new generation: the version everything went back to. */
  readonly reset_to: number;
  readonly published: number;
  readonly applied: {
    readonly min: number;
    readonly max: number;
    readonly by_replica: Readonly<Record<string, number>>;
  };
  /** Version new groups are to be sampled by: the least applied one, or the published one where no replica reports. */
  readonly serving: number;
  readonly acked_step: number;
  readonly leased_step: number | null;
  /** Acks since the step the run's object knew. */
  readonly acks: readonly {
    readonly step: number;
    readonly at: number;
    readonly produced_version: number;
    readonly metrics: Readonly<Record<string, number | null>>;
    /** Names of metrics that came as no finite number. */
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
  /** `next_step`: the batch that has to be acknowledged first. */
  | { readonly code: "version_ahead"; readonly message: string; readonly next_step: number }
  | { readonly code: "lease_held"; readonly message: string }
  | { readonly code: "needs_reset"; readonly published: number }
  | { readonly code: "run_finished" }
  | { readonly code: "conflict"; readonly message: string; readonly param?: string };
export type Answer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: TrainerRefusal };

/** Nothing to lease yet, and why. */
export interface Waiting {
  readonly waiting: "waiting_for_rollouts" | "paused" | "draining";
  readonly retry_after_s: number;
}

export interface TrainerRpc {
  /** Begins it; a no-op after the first. */
  create(spec: TrainerSpec): Promise<void>;
  /** Batches in step order; repeated ones change nothing. Answers how it stands, whoever asks. */
  ready(
    batches: readonly ReadyBatch[],
    known: { readonly acked_step: number; readonly paused: boolean; readonly ended: boolean },
  ): Promise<TrainerSnapshot | null>;
  /** How it stands. Null: nobody created it. `known`: acks after this step come along. */
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
      /** The weights it made are out: taken with the acknowledgement, in one write. */
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
    /** Said by the run's fleet, of weights of this generation: it is no trainer, and no epoch fences it off. */
    readonly of_fleet?: { readonly generation: number };
    /** Likewise: the replicas that take calls. What others serve holds nothing back. */
    readonly rotation?: readonly string[];
  }): Promise<Answer<WeightVersions>>;
  weightVersions(): Promise<WeightVersions | null>;
  /** Which weights engines served from when on, in order: the latest 1,000 changes. Null: nobody created it. */
  served(): Promise<readonly ServedWeights[] | null>;
  /**
   * What is known of a batch, by step: the one of the latest generation, `void` where the run went back and has not cut
   * it anew. `max_wait_s`: how long to wait for one that can be read.
   */
  batch(
    step: number,
    asked?: { readonly max_wait_s: number },
  ): Promise<(ReadyBatch & { readonly state: string }) | null>;
  /** A dead batch is offered again. */
  revive(step: number): Promise<boolean>;
  /** Frees its storage, since its run is deleted: it is unknown from here on. */
  free(): Promise<void>;
}

/** For whoever finds the trainer's object missing and creates it. Null for a run that trains nothing. */
export function trainerSpecOf({ scope, run_id, training, trainer, fleet }: RunSpec): TrainerSpec | null {
  if (training === undefined) return null;
  const { trainer: target, max_steps } = training;
  const { base_url } = trainer ?? { base_url: "" };
  return { scope, run_id, target, max_steps, base_url, ...(fleet !== undefined && { fleet }) };
}
