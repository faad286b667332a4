/**
 * The shapes in which a run's Durable Object answers questions about itself and about its rollouts. `RolloutEntry` is a
 * row of its SQLite. Times are epoch milliseconds; a number that says yes or no is 1 or 0, as SQLite has no booleans.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { EventName } from "../../contract/event-names.ts";
import type { Outcome, RolloutStatus, RunCounts, RunStatus, RunView } from "../../contract/run.ts";
import type { TrainingView } from "../../contract/training-view.ts";
import type { RunSpec } from "./wire.ts";

export type Tally = Readonly<Record<string, number>>;

/** What a run's object knows better than its row in D1. */
export type LiveView = Pick<
  RunView,
  "status" | "error" | "flow" | "counts" | "report" | "max_concurrent" | "dead_letters" | "last_event"
> & {
  readonly settled_at: number | null;
  /** Null for an eval. */
  readonly training: TrainingView | null;
};

/** Counters that the object keeps beside those that the API shows. */
export interface Tallies {
  readonly running: number;
  readonly finished: number;
  readonly retried: number;
  readonly dead_letters: number;
}

/**
 * What an audit compares: the counters that the object keeps as it goes (`counters`), and the same numbers, counted anew
 * from its rows (`run_rows`).
 */
export interface RunRecords {
  readonly counters: RunCounts;
  readonly run_rows: RunCounts;
  readonly tallies: { readonly counters: Tallies; readonly run_rows: Tallies };
  /** The highest `finish_seq`. It equals the number of ended rollouts, unless an end is missing. */
  readonly last_end: number;
  /** Slots in which not exactly one attempt counts: none, or several. */
  readonly doubled_slots: number;
  readonly segmented: number;
  readonly segments: readonly { first_seq: number; last_seq: number; key: string | null }[];
  /** Digests of the trajectories that must each be an object of R2. */
  readonly large: readonly string[];
  /** What its ended rollouts spent, summed anew from its rows: turns, calls and tokens. */
  readonly spent?: Tally;
  readonly settled: boolean;
  readonly status: Exclude<RunStatus, "queued" | "paused">;
  /** True when the row of the run in D1 should show this same state. */
  readonly row_current: boolean;
  /** Null for a run that trains nothing. */
  readonly training: TrainingRecords | null;
  /** Only for a cancelled run that has not ended: when it must have ended, and the first rollouts it still waits for. */
  readonly draining?: { readonly ends_by: number; readonly rollouts: readonly string[] };
}

export interface TrainingRecords {
  readonly counters: Tally;
  readonly run_rows: Tally;
  /** Ids of the batches that are not void; `samples`: digests of the R2 objects with the training samples of their groups. */
  readonly batches: readonly string[];
  readonly samples: readonly string[];
}

// A type, not an interface: SQLite cursors want an index signature.
export type TaskMean = {
  readonly task_key: string;
  /** Over the scored rollouts that count. Rows of the dataset with equal keys are one task. */
  readonly mean: number;
  readonly example_id: number;
  /** The one of these rollouts that was dispatched first, and its number. */
  readonly rollout_id: string;
  readonly seq?: number;
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

// A type, not an interface: SQLite cursors want an index signature.
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
  /** When the sweep next asks the object that plays the rollout how it stands, and how often it has asked. */
  ask_at: number;
  asks: number;
  /** How often in a row that object did not know the rollout, or did not answer. */
  misses: number;
  /** How often the rollout was told to stop. */
  told: number;
  cancel: CancelReason | null;
  example_id: number | null;
  task_key: string | null;
  /** What the task asks, in a line; null until the rollout has reported, and for one that ended before there were these. */
  task_text: string | null;
  /** The environment of the group that played the task; null where none of a group did, or nobody knows which. */
  member: string | null;
  digest: string | null;
  /** A hash of what the model said; null for a rollout that left no trajectory. */
  said: string | null;
  bytes: number;
  stop_condition: string | null;
  is_truncated: number;
  turns: number;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Of the prompt's. */
  cached_tokens: number;
  started_at: number | null;
  ended_at: number | null;
  error: string | null;
  reward: number | null;
  scores: string | null;
  scoring_errors: string | null;
  /** The number of the object that plays it, from 1; null for one that takes over another's trajectory. */
  host: number | null;
  /** `seq` of the rollout whose trajectory this one takes over; null for one that is played. */
  carries: number | null;
  steps: string | null;
  /** The number of its end in the run: 1 for the first, without gaps. */
  finish_seq: number | null;
  judge_calls: number;
  judge_prompt_tokens: number;
  judge_completion_tokens: number;
  /** Micro-dollars; null where judges were asked and their cost cannot be known. */
  judge_micros: number | null;
  /** JSON: each result of its judges, and what it cost. */
  judgements: string | null;
  /** Micro-dollars, in a run with a cap: what it may spend in all, and from its end on what it spent, its judges included. */
  ceiling: number;
  spent_micros: number;
  /** The last of its asks that was heard, and what it waits for: micro-dollars of its next call; 0: for nothing. */
  asked: number;
  needs: number;
  /** Calls of which nobody knows what they took, and the most that can be. */
  lost_calls: number;
  /** Turns whose reply did not say what it took. */
  unmetered: number;
  lost_micros: number;
  /** JSON: `ChargeLines`, what the platform charges for it; null before its end, and where nothing is charged. */
  charge: string | null;
};

/** How a rollout ends. */
export interface Ending {
  readonly outcome: Outcome;
  readonly reason: string | null;
}

/** A rollout, and its trajectory when the run still holds it. */
export type RolloutRecord = {
  readonly entry: RolloutEntry;
  readonly text: string | null;
  /** Its advantage over its group; absent for a rollout that has none. */
  readonly advantage?: number;
};

/** What an ended rollout left for its segment: its trajectory's text is null where that is in R2, or where there is none. */
// A type, not an interface: SQLite cursors want an index signature.
export type RolloutLeft = { readonly id: string; readonly digest: string | null; readonly text: string | null };

/** What a segment is told of to who watches: its rollouts, without what they left, and the run once it has ended. */
export interface SegmentTrace {
  readonly spec: RunSpec;
  /** In the order of their ends. */
  readonly rollouts: readonly RolloutEntry[];
  /** Set for the segment with the last of them, if the run is over: no other tells of it. */
  readonly ended: { readonly at: number; readonly status: string; readonly error: string | null } | null;
}

/** A row of the segments: ended rollouts `first_seq` to `last_seq`, in one object of R2 once `key` is set. */
export type SegmentEntry = {
  segment: number;
  first_seq: number;
  last_seq: number;
  key: string | null;
  ask_at: number;
  asks: number;
};
