/** What a run's object says of itself and of its rollouts, to those that ask it: rows, pages, counters. Times are epoch milliseconds. */
import type { CancelReason } from "../../contract/errors.ts";
import type { EventName } from "../../contract/event-names.ts";
import type { Outcome, RolloutInFlight, RolloutStatus, RunCounts, RunStatus, RunView } from "../../contract/run.ts";
import type { TrainingView } from "../../contract/training-view.ts";
import type { RolloutSlot } from "./wire.ts";

export type Tally = Readonly<Record<string, number>>;

/** Which of them; `after` is the place of the last one seen. */
export interface InFlightQuery {
  readonly status: RolloutInFlight["status"] | null;
  readonly after: RolloutSlot | null;
  readonly limit: number;
}

export type InFlightEntry = Omit<RolloutInFlight, "object" | "run_id">;

/** What a run's object knows better than its row in D1. */
export type LiveView = Pick<
  RunView,
  "status" | "error" | "flow" | "counts" | "report" | "max_concurrent" | "dead_letters"
> & {
  readonly settled_at: number | null;
  /** Null for an eval. */
  readonly training: TrainingView | null;
};

/** What the object keeps beside the counts that the API shows. */
export interface Tallies {
  readonly running: number;
  readonly finished: number;
  readonly drained: number;
  readonly retried: number;
  readonly dead_letters: number;
}

export interface RunRecords {
  readonly counters: RunCounts;
  readonly run_rows: RunCounts;
  readonly tallies: { readonly counters: Tallies; readonly run_rows: Tallies };
  /** Highest number of an end: as many as have ended, when none is missing. */
  readonly last_end: number;
  /** Slots in which no attempt counts, or more than one. */
  readonly doubled_slots: number;
  readonly segmented: number;
  readonly segments: readonly { first_seq: number; last_seq: number; key: string | null }[];
  /** Digests of trajectories that must be R2 objects of their own. */
  readonly large: readonly string[];
  readonly settled: boolean;
  readonly status: Exclude<RunStatus, "queued" | "paused">;
  /** True once D1's row of the run should say the same. */
  readonly row_current: boolean;
  /** Null for a run that trains nothing. */
  readonly training: TrainingRecords | null;
  /** Of a run that was cancelled and goes on: when it must have ended (epoch ms), and the first rollouts it waits for. */
  readonly draining?: { readonly ends_by: number; readonly rollouts: readonly string[] };
}

/** What D1 must have of a finished rollout, once it is drained. */
export type AuditRow = Pick<
  RolloutEntry,
  | "id"
  | "outcome"
  | "reason"
  | "reward"
  | "turns"
  | "calls"
  | "prompt_tokens"
  | "completion_tokens"
  | "judge_calls"
  | "judge_prompt_tokens"
  | "judge_completion_tokens"
  | "judge_micros"
  | "digest"
  | "superseded_by"
> & { finish_seq: number; drained: number };

export interface TrainingRecords {
  readonly counters: Tally;
  readonly run_rows: Tally;
  /** Ids of batches that are not void, and digests of the objects of the groups in them. */
  readonly batches: readonly string[];
  readonly samples: readonly string[];
}

// A type, not an interface: SQLite cursors want an index signature.
export type TaskMean = {
  readonly task_key: string;
  /** Of the scored rollouts that count; rows with equal keys are one task. */
  readonly mean: number;
  readonly example_id: number;
  /** The first of them to be dispatched. */
  readonly rollout_id: string;
};

/** Keys from `from` up to but not including `to`; null: to the end. */
export interface KeyRange {
  readonly from: string;
  readonly to: string | null;
}

export interface StoredEvent {
  readonly id: number;
  readonly event: EventName;
  readonly data: object;
}

export type RolloutEntry = {
  seq: number;
  group_index: number;
  slot: number;
  attempt: number;
  id: string;
  status: RolloutStatus;
  outcome: Outcome | null;
  reason: string | null;
  superseded_by: string | null;
  ask_at: number;
  asks: number;
  /** Times in a row that its object did not know it or did not answer. */
  misses: number;
  told: number;
  cancel: CancelReason | null;
  example_id: number | null;
  task_key: string | null;
  /** Null where no group of environments plays, or nobody knows whose task it was. */
  member: string | null;
  digest: string | null;
  /** Hash of what was said; null of one that left nothing. */
  said: string | null;
  bytes: number;
  stop_condition: string | null;
  is_truncated: number;
  turns: number;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  started_at: number | null;
  ended_at: number | null;
  error: string | null;
  reward: number | null;
  scores: string | null;
  scoring_errors: string | null;
  carries: number | null;
  steps: string | null;
  finish_seq: number | null;
  drained: number;
  judge_calls: number;
  judge_prompt_tokens: number;
  judge_completion_tokens: number;
  /** Micro-dollars; null where judges were asked and nobody can know. */
  judge_micros: number | null;
  /** JSON: what its judges said, and of every verdict what it cost. */
  judgements: string | null;
};

/** A rollout, and its trajectory when the run still holds it. */
export type RolloutRecord = {
  readonly entry: RolloutEntry;
  readonly text: string | null;
  /** Over its group; absent where it has none. */
  readonly advantage?: number;
};

export type SegmentEntry = {
  segment: number;
  first_seq: number;
  last_seq: number;
  key: string | null;
  ask_at: number;
  asks: number;
};
