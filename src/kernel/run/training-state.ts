/**
 * What a training run's object stores about its training: counters in the run's head, and rows by group, batch, step
 * and eval. Steps count from 1, policy versions from 0. Times are epoch milliseconds.
 *
 * Invariants. A group is open until all its members have ended. Then it is buffered or dropped; a buffered group is
 * shipped or dropped. Only a reset moves it back, from shipped to buffered. `open`, `buffered`, `shipped` and `dropped`
 * add up to the groups that were opened.
 */

import { sharedMembers } from "../../core/training/members.ts";
import { NO_TIME, sharesOf } from "../messages/trainer-time.ts";
import type { GroupSamples, TrainerSnapshot, TrainingSpec } from "../messages/training-wire.ts";

export const TRAINING_SCHEMA = [
  // One row per group, inserted when it opens. `position` numbers complete groups, in the order of their completion.
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
  // One row per cut batch. A reset voids the batches after it, and their steps are cut again.
  `create table if not exists train_batches (
      step integer not null, generation integer not null, batch_id text not null, state text not null,
      sha256 text, manifest_key text, max_version integer not null,
      groups integer not null, rollouts integer not null, samples integer not null, tokens integer not null,
      cut_at integer not null, primary key (step, generation))`,
  "create index if not exists train_batches_by_state on train_batches (state, step)",
  "create table if not exists train_steps (step integer primary key, at integer not null, metrics text not null)",
  // Evals of the run's own weights: started, followed, and entered in the series at their step.
  `create table if not exists train_evals (
      step integer not null, generation integer not null, policy_version integer not null, run_id text,
      state text not null, tries integer not null default 0, due_at integer not null,
      primary key (step, generation))`,
  "create index if not exists train_evals_by_state on train_evals (state, due_at)",
];

/** Columns of groups that are opened by ratio; null in other runs. */
export const MEMBERS_SCHEMA = [
  "alter table train_groups add column member text",
  "alter table train_groups add column size integer",
  "alter table train_groups add column slots_before integer",
  "create index train_groups_by_slot on train_groups (slots_before) where slots_before is not null",
];

/** Several evals of one step: the table gets `place` in its key. */
export const EVALS_SCHEMA = [
  `create table train_evals_by_place (
      step integer not null, generation integer not null, place integer not null, policy_version integer not null,
      run_id text, state text not null, tries integer not null default 0, due_at integer not null,
      primary key (step, generation, place))`,
  `insert into train_evals_by_place select step, generation, 0, policy_version, run_id, state, tries, due_at
      from train_evals`,
  "drop table train_evals",
  "alter table train_evals_by_place rename to train_evals",
  "create index train_evals_by_state on train_evals (state, due_at)",
];

/** The training part of the run's head. */
export interface TrainingState {
  /** The step of the batch that is being collected; max_steps + 1 once all are cut. */
  readonly step: number;
  readonly groups_opened: number;
  readonly groups_open: number;
  /** Set in a run that opens groups by ratio: their sizes may differ. */
  readonly shared?: SharedState;
  /** Groups completed so far: the last `position`. */
  readonly positions: number;
  readonly buffered: Buffered;
  readonly shipped: number;
  readonly dropped: Counts;
  /** Rollouts of groups that were dropped as too old since the last batch. */
  readonly stale: number;
  readonly batches: { readonly shipped: number; readonly voided: number };
  /** Batches in a row that were cut with nothing to train on; */
  readonly empty: number;
  /** rollouts that arrived since the last group that can be trained on; */
  readonly barren: number;
  /** and why their groups were dropped. */
  readonly barren_causes: Counts;
  /** Totals of scored rollouts, from which the tokens of a batch are estimated. */
  readonly seen: { readonly rollouts: number; readonly tokens: number };
  /** Largest off-policy lag of a rollout that was shipped. */
  readonly max_lag: number;
  readonly transitions: GroupSamples["transitions"];
  /** Counts of the sample rows that were built, by kind of branch. */
  readonly branches: GroupSamples["transitions"];
  /** As in `GroupSamples`. */
  readonly prompts?: Counts;
  readonly untrainable: Counts;
  /** Rollouts in which a filter found something, by filter; absent: none. */
  readonly flagged?: Counts;
  /** Those that were left out of training, by filter. */
  readonly filtered?: Counts;
  /** The last snapshot from its trainer's object, without the acks: those are in the rows of batches. */
  readonly trainer: KnownTrainer;
  /** What the trainer's object has acknowledged about this run. */
  readonly told: { readonly paused: boolean; readonly ended: boolean };
  /** The step at which the first eval was last started; -1: none. */
  readonly evaluated: number;
  /** The same for the other evals; absent: none was started. */
  readonly evaluated_others?: readonly number[];
}

export interface SharedState {
  /** Rollout slots of all groups, and of the open ones. */
  readonly slots: number;
  readonly slots_open: number;
  /** Groups opened, by member, in the order of the spec. */
  readonly opened: readonly number[];
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

const NEW_TRAINING: TrainingState = {
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

export function newTraining(asked: Pick<TrainingSpec, "members">): TrainingState {
  const members = sharedMembers(asked);
  return { ...NEW_TRAINING, ...(members !== null && { shared: newShared(members.length) }) };
}

/** The step at which the eval was last started; -1: never. `place`: its index in the list of evals. */
export function evaluatedStep({ evaluated, evaluated_others = [] }: TrainingState, place: number): number {
  return place === 0 ? evaluated : (evaluated_others[place - 1] ?? -1);
}

export function withEvaluated(training: TrainingState, place: number, step: number): TrainingState {
  if (place === 0) return { ...training, evaluated: step };
  const { evaluated_others = [] } = training;
  const length = Math.max(place, evaluated_others.length);
  const others = Array.from({ length }, (_, at) => (at === place - 1 ? step : (evaluated_others[at] ?? -1)));
  return { ...training, evaluated_others: others };
}

/** After a reset to `version`: evals of later weights are made again. */
export function withoutEvalsAfter({ evaluated, evaluated_others }: TrainingState, version: number) {
  const others = evaluated_others?.map((step) => Math.min(step, version));
  return { evaluated: Math.min(evaluated, version), ...(others !== undefined && { evaluated_others: others }) };
}

/** `members`: their number. */
export function newShared(members: number): SharedState {
  return { slots: 0, slots_open: 0, opened: Array.from({ length: members }, () => 0) };
}

/** Why a group was dropped. `unused`: every batch was cut before the group was complete. */
export type Dropped = "zero_variance" | "too_few" | "untrainable" | "filtered" | "stale" | "version_reset" | "unused";

// Types, not interfaces: SQLite cursors require an index signature.
export type TrainGroup = {
  group_index: number;
  example_index: number;
  dispatch_version: number;
  state: "open" | "buffered" | "shipped" | "dropped";
  reason: Dropped | null;
  position: number | null;
  /** The step that was being collected when it was completed, */
  arrived_step: number | null;
  /** and the step it was shipped for. */
  step: number | null;
  /** Weights with a version above this were discarded by a reset, even if the number is used again; null: none were. */
  void_above: number | null;
  /** The newest version that sampled any part of it. */
  max_version: number | null;
  /** Mean of its rewards. */
  mean: number | null;
  /** Its size as counted for a batch. */
  rollouts: number;
  samples: number;
  tokens: number;
  bytes: number;
  /** JSON: the key of its object, and the samples in it. */
  made: string | null;
  /** JSON: a `Credit` per rollout. */
  credits: string | null;
  /** JSON: the values that the series are computed from. */
  facts: string | null;
  /** In a run that opens groups by ratio: its member, its size, and how many slots the groups before it have. */
  member: string | null;
  size: number | null;
  slots_before: number | null;
};

/** The columns of a buffered group that a batch is cut by. */
export type BufferedGroup = Pick<
  TrainGroup,
  "group_index" | "dispatch_version" | "max_version" | "rollouts" | "samples" | "tokens" | "bytes"
>;

/** The part of the consumer's samples that a group stores. */
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
  /** Cut; stored in R2; reported to the trainer's object, which keeps its lease; acknowledged. */
  state: "building" | "built" | "ready" | "acked" | "dead" | "void";
  sha256: string | null;
  manifest_key: string | null;
  max_version: number;
  groups: number;
  rollouts: number;
  samples: number;
  tokens: number;
  cut_at: number;
  /** Its number among the batches taken by a trainer, from 1, and when it was taken; null: not taken. */
  push_seq: number | null;
  pushed_at: number | null;
};

export type TrainEval = {
  /** Index in the run's list of evals. */
  place: number;
  step: number;
  generation: number;
  policy_version: number;
  run_id: string | null;
  state: "due" | "running" | "done" | "failed";
  tries: number;
  due_at: number;
};

/** With one open group of this size less. */
export function withoutOpen({ shared }: TrainingState, size: number): Pick<TrainingState, "shared"> {
  return shared === undefined ? {} : { shared: { ...shared, slots_open: shared.slots_open - size } };
}

/** Counts one more dropped group. */
export function withDropped(training: TrainingState, reason: Dropped, rollouts: number): TrainingState {
  const stale = training.stale + (reason === "stale" ? rollouts : 0);
  return { ...training, dropped: plus(training.dropped, reason), stale };
}

export function plusAll(counts: Counts, more: Counts): Counts {
  return Object.entries(more).reduce((sum, [name, by]) => plus(sum, name, by), counts);
}

export function plus(counts: Counts, name: string, by = 1): Counts {
  return { ...counts, [name]: (counts[name] ?? 0) + by };
}
