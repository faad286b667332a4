/**
 * What a training run's object keeps of its training: counters in the run's head, and rows by group, batch, step, eval.
 * Steps count from 1, policy versions from 0. Times are epoch milliseconds.
 *
 * Invariants. A group is open until all its members have ended; then it is buffered or dropped, and from the buffer
 * shipped or dropped. It goes back (shipped to buffered) in a reset alone. `open`, `buffered`, `shipped` and `dropped`
 * add up to the groups that were opened.
 */

import { NO_TIME, sharesOf } from "../messages/trainer-time.ts";
import type { GroupSamples, TrainerSnapshot } from "../messages/training-wire.ts";

export const TRAINING_SCHEMA = [
  // One row a group, made when it opens. `position` numbers those that are whole, in the order they became so.
  `create table if not exists train_groups (
      group_index integer primary key, example_index integer not null, dispatch_version integer not null,
      state text not null, reason text, position integer, arrived_step integer, step integer,
      void_above integer, max_version integer, mean real,
      rollouts integer not null default 0, samples integer not null default 0,
      tokens integer not null default 0, bytes integer not null default 0,
      made text, credits text, facts text)`,
  "create index if not exists train_groups_by_state on train_groups (state, position)",
  "create index if not exists train_groups_by_position on train_groups (position)",
  "create index if not exists train_groups_by_step on train_groups (step)",
  "create index if not exists train_groups_by_arrival on train_groups (arrived_step)",
  // One row a batch that was cut. A reset voids those after it, and their steps are cut again.
  `create table if not exists train_batches (
      step integer not null, generation integer not null, batch_id text not null, state text not null,
      sha256 text, manifest_key text, max_version integer not null,
      groups integer not null, rollouts integer not null, samples integer not null, tokens integer not null,
      cut_at integer not null, primary key (step, generation))`,
  "create index if not exists train_batches_by_state on train_batches (state, step)",
  "create table if not exists train_steps (step integer primary key, at integer not null, metrics text not null)",
  // Evals of the run's own weights: begun, followed, and noted in the series at their step.
  `create table if not exists train_evals (
      step integer not null, generation integer not null, policy_version integer not null, run_id text,
      state text not null, tries integer not null default 0, due_at integer not null,
      primary key (step, generation))`,
  "create index if not exists train_evals_by_state on train_evals (state, due_at)",
];

/** Of the run's head. */
export interface TrainingState {
  /** Of the batch that is collected now; max_steps + 1 once all are cut. */
  readonly step: number;
  readonly groups_opened: number;
  readonly groups_open: number;
  /** Groups that became whole so far: the last `position`. */
  readonly positions: number;
  readonly buffered: Buffered;
  readonly shipped: number;
  readonly dropped: Counts;
  /** Rollouts of groups that were dropped since the last batch because they were too old. */
  readonly stale: number;
  readonly batches: { readonly shipped: number; readonly voided: number };
  /** Batches cut with nothing to train in them, in a row; */
  readonly empty: number;
  /** rollouts that arrived since the last group that trains; */
  readonly barren: number;
  /** and what became of their groups. */
  readonly barren_causes: Counts;
  /** Of scored rollouts: what a batch of tokens is estimated by. */
  readonly seen: { readonly rollouts: number; readonly tokens: number };
  /** Largest off-policy lag of a rollout that was shipped. */
  readonly max_lag: number;
  readonly transitions: GroupSamples["transitions"];
  /** Rows that were made. */
  readonly branches: GroupSamples["transitions"];
  readonly untrainable: Counts;
  /** Its trainer's object, as last heard of; its acks are rows of batches. */
  readonly trainer: KnownTrainer;
  /** What the trainer's object has acknowledged of this run. */
  readonly told: { readonly paused: boolean; readonly ended: boolean };
  /** The last eval that was begun, by step; -1: none. */
  readonly evaluated: number;
}

export type Counts = Readonly<Record<string, number>>;
export interface Buffered {
  readonly groups: number;
  readonly rollouts: number;
  readonly samples: number;
  readonly tokens: number;
  readonly bytes: number;
}
export type KnownTrainer = Omit<TrainerSnapshot, "acks">;

export const NEW_TRAINING: TrainingState = {
  step: 1,
  groups_opened: 0,
  groups_open: 0,
  positions: 0,
  buffered: { groups: 0, rollouts: 0, samples: 0, tokens: 0, bytes: 0 },
  shipped: 0,
  dropped: {},
  stale: 0,
  batches: { shipped: 0, voided: 0 },
  empty: 0,
  barren: 0,
  barren_causes: {},
  seen: { rollouts: 0, tokens: 0 },
  max_lag: 0,
  transitions: { clean: 0, forked: 0, realigned: 0 },
  branches: { clean: 0, forked: 0, realigned: 0 },
  untrainable: {},
  trainer: {
    seq: -1,
    epoch: 0,
    generation: 0,
    reset_to: 0,
    published: 0,
    applied: { min: 0, max: 0, by_replica: {} },
    serving: 0,
    acked_step: 0,
    leased_step: null,
    dead: null,
    trainer: null,
    time: sharesOf(NO_TIME),
  },
  told: { paused: false, ended: false },
  evaluated: -1,
};

/** Why a group was dropped. `unused`: every batch was cut before it was whole. */
export type Dropped = "zero_variance" | "too_few" | "untrainable" | "stale" | "version_reset" | "unused";

// Types, not interfaces: SQLite cursors want an index signature.
export type TrainGroup = {
  group_index: number;
  example_index: number;
  dispatch_version: number;
  state: "open" | "buffered" | "shipped" | "dropped";
  reason: Dropped | null;
  position: number | null;
  /** The step that was collected when it became whole; */
  arrived_step: number | null;
  /** and the one it was shipped for. */
  step: number | null;
  /** Weights above this version are gone, whatever is called so now; null: none are. */
  void_above: number | null;
  /** Newest version that sampled any of it. */
  max_version: number | null;
  /** Of its rewards. */
  mean: number | null;
  /** What it counts towards a batch. */
  rollouts: number;
  samples: number;
  tokens: number;
  bytes: number;
  /** JSON: its object, and the samples in it. */
  made: string | null;
  /** JSON: `Credit` by rollout. */
  credits: string | null;
  /** JSON: what the series are made of. */
  facts: string | null;
};

/** A group in the buffer, as far as a batch is counted. */
export type BufferedGroup = Pick<
  TrainGroup,
  "group_index" | "dispatch_version" | "max_version" | "rollouts" | "samples" | "tokens" | "bytes"
>;

/** What a group kept of what the consumer made of it. */
export type Made = Pick<GroupSamples, "object" | "samples">;
export interface Credit {
  readonly reward: number;
  readonly advantage: number | null;
  readonly outcome: "scored" | "truncated";
}

export type TrainBatch = {
  step: number;
  generation: number;
  batch_id: string;
  /** Cut; in R2; known to the trainer's object. Who leases it stands there, until it is acknowledged. */
  state: "building" | "built" | "ready" | "acked" | "dead" | "void";
  sha256: string | null;
  manifest_key: string | null;
  max_version: number;
  groups: number;
  rollouts: number;
  samples: number;
  tokens: number;
  cut_at: number;
  /** Which of the batches that a trainer took it is, from 1, and when it did; null: none has. */
  push_seq: number | null;
  pushed_at: number | null;
};

export type TrainEval = {
  step: number;
  generation: number;
  policy_version: number;
  run_id: string | null;
  state: "due" | "running" | "done" | "failed";
  tries: number;
  due_at: number;
};

/** A group more that was dropped. */
export function withDropped(training: TrainingState, reason: Dropped, rollouts: number): TrainingState {
  const stale = training.stale + (reason === "stale" ? rollouts : 0);
  return { ...training, dropped: plus(training.dropped, reason), stale };
}

export function plus(counts: Counts, name: string, by = 1): Counts {
  return { ...counts, [name]: (counts[name] ?? 0) + by };
}
