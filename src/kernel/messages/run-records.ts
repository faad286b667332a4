/**
 * The shapes in which a run's Durable Object answers queries about itself and its rollouts. `RolloutEntry` is a row of
 * its SQLite. Times are epoch milliseconds. A number that stands for a boolean is 1 or 0, because SQLite has no
 * booleans.
 */
import type { CancelReason } from "../../contract/errors.ts";
import type { EventName } from "../../contract/event-names.ts";
import type { Judgement } from "../../contract/judgement.ts";
import type { Outcome, RolloutStatus, RunCounts, RunStatus, RunView } from "../../contract/run.ts";
import type { TrainingView } from "../../contract/training-view.ts";
import type { RunSpec } from "./wire.ts";

export type Tally = Readonly<Record<string, number>>;

/** Fields that are more current in a run's object than in its row in D1. */
export type LiveView = Pick<
  RunView,
  "status" | "error" | "status_reason" | "counts" | "report" | "max_concurrent" | "dead_letters" | "last_event"
> & {
  readonly settled_at: number | null;
  /** Null for an eval. */
  readonly training: TrainingView | null;
};

/** Counters that the object keeps in addition to those that the API shows. */
export interface Tallies {
  readonly running: number;
  readonly finished: number;
  readonly retried: number;
  readonly dead_letters: number;
}

/**
 * What an audit compares: the counters that the object updates as it works (`counters`), and the same numbers counted
 * again from its rows (`run_rows`).
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
  /** Digests of trajectories; for each there must be an object in R2. */
  readonly large: readonly string[];
  /** What its ended rollouts spent, summed again from its rows: turns, calls and tokens. */
  readonly spent?: Tally;
  readonly settled: boolean;
  readonly status: Exclude<RunStatus, "queued" | "paused">;
  /** True if the row of the run in D1 should show this same state. */
  readonly row_current: boolean;
  /** Null for a run that is not a training run. */
  readonly training: TrainingRecords | null;
  /**
   * Only for a cancelled run that has not ended: the latest time of its end, and the first rollouts it still waits for.
   */
  readonly draining?: { readonly ends_by: number; readonly rollouts: readonly string[] };
}

export interface TrainingRecords {
  readonly counters: Tally;
  readonly run_rows: Tally;
  /**
   * Ids of the batches that are not void. `samples`: digests of the R2 objects with the training samples of their
   * groups.
   */
  readonly batches: readonly string[];
  readonly samples: readonly string[];
}

// A type, not an interface: SQLite cursors need an index signature.
export type TaskMean = {
  readonly task_key: string;
  /** Mean over the scored rollouts that count. Rows of the dataset with equal keys are one task. */
  readonly mean: number;
  readonly example_id: number;
  /** The first of these rollouts to be dispatched, and its number. */
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

// A type, not an interface: SQLite cursors need an index signature.
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
  /** When the reconciliation next asks the shard for the rollout's state, and how often it has asked. */
  ask_at: number;
  asks: number;
  /** How often in a row the shard did not have the rollout, or did not answer. */
  misses: number;
  /** How often a stop was sent for the rollout. */
  told: number;
  cancel: CancelReason | null;
  example_id: number | null;
  task_key: string | null;
  /**
   * The task in one line; null until the rollout has reported, and for rollouts that ended before this field existed.
   */
  task_text: string | null;
  /** The environment of the group that played the task; null without a group, or if it is unknown. */
  member: string | null;
  digest: string | null;
  /** A hash of what the model said; null for a rollout without a trajectory. */
  said: string | null;
  bytes: number;
  stop_condition: string | null;
  is_truncated: number;
  turns: number;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Part of the prompt tokens. */
  cached_tokens: number;
  /** Turns whose answers came from the project's cache, and their tokens, which are not counted above. */
  reused_turns: number;
  reused_tokens: number;
  started_at: number | null;
  ended_at: number | null;
  error: string | null;
  reward: number | null;
  scores: string | null;
  scoring_errors: string | null;
  /** The number of the shard that plays it, from 1; null for a rollout that takes over another one's trajectory. */
  host: number | null;
  /** `seq` of the rollout whose trajectory this one takes over; null for a rollout that is played. */
  carries: number | null;
  steps: string | null;
  /** The number of its end in the run: 1 for the first, without gaps. */
  finish_seq: number | null;
  judge_calls: number;
  judge_prompt_tokens: number;
  judge_completion_tokens: number;
  /** Micro-dollars; null if judges were called and their cost is unknown. */
  judge_micros: number | null;
  /**
   * JSON: each result of its judges, and its cost. A page of rows has null or `JudgeCalls` here: only a rollout that is
   * read alone has all.
   */
  judgements: string | null;
  /** Micro-dollars, in a run with a cap: what it may spend in all; after its end, what it spent, judges included. */
  ceiling: number;
  spent_micros: number;
  /**
   * The number of its last request for budget, and the cost of the next call that it waits for in micro-dollars (0:
   * none).
   */
  asked: number;
  needs: number;
  /** Calls whose cost is unknown, and the most that they can have cost. */
  lost_calls: number;
  /** Turns whose reply did not report its usage. */
  unmetered: number;
  lost_micros: number;
  /** JSON: `ChargeLines`, what the platform charges for it; null before its end, and if nothing is charged. */
  charge: string | null;
};

/** A judgement in a page of rows: its calls, without the texts that make it large. */
export type JudgeCalls = Omit<Judgement, "reply" | "reason" | "verdict">;

/** How a rollout ends. */
export interface Ending {
  readonly outcome: Outcome;
  readonly reason: string | null;
}

/** A rollout, with its trajectory if the run's object still stores it. */
export type RolloutRecord = {
  readonly entry: RolloutEntry;
  readonly text: string | null;
  /** Its advantage in its group; absent if it has none. */
  readonly advantage?: number;
};

/** An ended rollout's part of a segment. The trajectory's text is null if it is in R2, or if there is none. */
// A type, not an interface: SQLite cursors need an index signature.
export type RolloutLeft = { readonly id: string; readonly digest: string | null; readonly text: string | null };

/** What telemetry gets of a segment: its rollouts, without trajectories, and the run if it has ended. */
export interface SegmentTrace {
  readonly spec: RunSpec;
  /** In the order of their ends. */
  readonly rollouts: readonly RolloutEntry[];
  /** Set for the segment with the last rollout, if the run is over: only this segment reports the end. */
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
