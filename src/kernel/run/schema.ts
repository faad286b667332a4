/** Tables of a run's own SQLite, and the rows as they are read. Times are epoch milliseconds. */

import type { RunStatus } from "../../contract/run.ts";
import { type CapBook, NEW_CAP, type Wanted } from "../../core/costs/allowance.ts";
import { type LeaseState, NEW_LEASE } from "../endpoint/run-lease.ts";
import type { Migration } from "../kit/migrate.ts";
import type { Counted } from "../messages/latency.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { JudgePace } from "../messages/wire.ts";
import { ANNOUNCEMENTS_SCHEMA } from "./announcements.ts";
import { JUDGING_SCHEMA } from "./judging-store.ts";
import { LOST_HOLDS_SCHEMA, RELEASES_SCHEMA } from "./lost-holds.ts";
import { TRAINING_SCHEMA, type TrainingState } from "./training-state.ts";

export const RUN_SCHEMA = [
  // One row a rollout, made when it is dispatched and never deleted. `finish_seq` numbers the ends, 1 first, without gaps.
  // `host`: the number of the object that plays it. `carries`: `seq` of the attempt whose trajectory this one takes over.
  // `member`: whose task it is, of a group of environments. `steps` (what single turns are worth) and `judgements` are
  // JSON.
  `create table if not exists rollouts (
    seq integer primary key,
    group_index integer not null, slot integer not null, attempt integer not null,
    id text not null, status text not null, outcome text, reason text, superseded_by text,
    ask_at integer not null, asks integer not null default 0, misses integer not null default 0,
    told integer not null default 0, cancel text, host integer, carries integer,
    example_id integer, task_key text, member text, digest text, said text, bytes integer not null default 0,
    stop_condition text, is_truncated integer not null default 0,
    turns integer not null default 0, calls integer not null default 0,
    prompt_tokens integer not null default 0, completion_tokens integer not null default 0,
    started_at integer, ended_at integer, error text,
    reward real, scores text, scoring_errors text, steps text,
    judge_calls integer not null default 0, judge_prompt_tokens integer not null default 0,
    judge_completion_tokens integer not null default 0, judge_micros integer, judgements text,
    finish_seq integer,
    unique (group_index, slot, attempt))`,
  "create index if not exists rollouts_in_flight on rollouts (ask_at) where status != 'done'",
  "create index if not exists rollouts_to_tell on rollouts (seq) where status = 'running' and told = 0 and cancel is not null",
  "create unique index if not exists rollouts_finished on rollouts (finish_seq) where finish_seq is not null",
  // Ended rollouts whose next attempt is still to be dispatched.
  "create table if not exists retries (seq integer primary key)",
  // Requests made with an Idempotency-Key: a repeat changes nothing.
  "create table if not exists requests (operation text not null, key text not null, hash text not null, primary key (operation, key))",
  // Small trajectories of rollouts that no segment covers yet.
  "create table if not exists trajectories (seq integer primary key, text text not null)",
  // Finished rollouts first_seq..last_seq, folded into one R2 object once `key` is set.
  `create table if not exists segments (
    segment integer primary key, first_seq integer not null, last_seq integer not null,
    key text, ask_at integer not null, asks integer not null default 0)`,
  "create index if not exists segments_to_fold on segments (ask_at) where key is null",
  "create table if not exists events (id integer primary key, event text not null, data text not null)",
  // Messages that ended in a dead-letter queue: recorded, and covered by the sweep.
  "create table if not exists dead_letters (id integer primary key autoincrement, queue text not null, body text not null, at integer not null)",
  // Work that may have ended the process: in how many deaths it was the one that was named, and by whom it is named now.
  "create table if not exists suspects (key text primary key, deaths integer not null, boot text)",
  ...JUDGING_SCHEMA,
  ...TRAINING_SCHEMA,
];

/** What the table makes of the columns that are not named when a rollout is dispatched. */
export const NEW_ROLLOUT = {
  ...{ outcome: null, reason: null, superseded_by: null, asks: 0, misses: 0, told: 0, cancel: null },
  ...{ example_id: null, task_key: null, task_text: null, member: null, digest: null, said: null, bytes: 0 },
  ...{ stop_condition: null, is_truncated: 0, turns: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0 },
  ...{ ended_at: null, error: null, reward: null, scores: null, scoring_errors: null, steps: null },
  ...{ judge_calls: 0, judge_prompt_tokens: 0, judge_completion_tokens: 0, judge_micros: null, judgements: null },
  ...{ cached_tokens: 0, charge: null, finish_seq: null },
  ...{ ceiling: 0, spent_micros: 0, asked: 0, needs: 0, lost_calls: 0, lost_micros: 0, unmetered: 0 },
} as const satisfies Partial<RolloutEntry>;

/** Changes of these tables since the first release, for objects made before them as for new ones: see kit/migrate.ts. */
export const RUN_MIGRATIONS: readonly Migration[] = [
  {
    // `charge`: JSON, what the platform charges for a rollout. `push_seq` numbers the batches that a trainer took.
    name: "money",
    statements: [
      "alter table rollouts add column cached_tokens integer not null default 0",
      "alter table rollouts add column charge text",
      "alter table verdicts add column cached_tokens integer not null default 0",
      "alter table train_batches add column push_seq integer",
      "alter table train_batches add column pushed_at integer",
      "create unique index train_batches_pushed on train_batches (push_seq) where push_seq is not null",
    ],
  },
  {
    // Money of a run with `max_cost_micros`: what is let out to rollouts and to units that judges are asked for.
    name: "cap",
    statements: [
      "alter table rollouts add column ceiling integer not null default 0",
      "alter table rollouts add column spent_micros integer not null default 0",
      "alter table rollouts add column asked integer not null default 0",
      "alter table rollouts add column needs integer not null default 0",
      "alter table rollouts add column lost_calls integer not null default 0",
      "alter table rollouts add column lost_micros integer not null default 0",
      "create index rollouts_that_wait on rollouts (needs) where status = 'running' and needs > 0",
      "alter table judging add column needs integer not null default 0",
      "alter table judging add column allowance integer not null default 0",
      "alter table judging add column spent_micros integer not null default 0",
      "alter table judging add column lost_calls integer not null default 0",
      "alter table judging add column lost_micros integer not null default 0",
    ],
  },
  { name: "announcements", statements: ANNOUNCEMENTS_SCHEMA },
  // What people call a task, of 120 characters at most.
  { name: "task text", statements: ["alter table rollouts add column task_text text"] },
  // Turns whose reply did not say what it took.
  { name: "unmetered", statements: ["alter table rollouts add column unmetered integer not null default 0"] },
  { name: "lost holds", statements: LOST_HOLDS_SCHEMA },
  { name: "releases", statements: RELEASES_SCHEMA },
];

/** The run's own row: what changes as it goes. Kept as one JSON value. */
export interface RunHead {
  readonly status: Exclude<RunStatus, "queued" | "paused">;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Set once dispatch has ended early; what is in flight still answers. */
  readonly stop:
    | {
        readonly kind: "cancel";
        readonly reason: "user" | "deadline" | "budget";
        /** Epoch milliseconds. */
        readonly at: number;
      }
    | { readonly kind: "fail"; readonly code: string; readonly message: string }
    | null;
  /** Nothing is dispatched until somebody resumes it. */
  readonly paused: boolean;
  /** Set while it ran; null = as it was asked for. */
  readonly max_concurrent: number | null;
  /** Its deadline counts from here: a retry of an ended run begins it anew. Null = from its creation. */
  readonly deadline_from: number | null;
  /** Rollouts dispatched: first attempts in group-major order, and attempts that retries asked for. */
  readonly dispatched: number;
  /** Attempts that retries asked for, and how many of them are dispatched. */
  readonly retried: number;
  readonly retries_dispatched: number;
  /** Not done: running, or waiting for scores. */
  readonly in_flight: number;
  /** Of those in flight, the ones that have not answered: what `max_concurrent` counts. */
  readonly running: number;
  readonly scored: number;
  readonly unscored: Readonly<Record<string, number>>;
  readonly failed: Readonly<Record<string, number>>;
  readonly cancelled: Readonly<Record<string, number>>;
  /** Ends numbered so far, and how far they are cut into segments. */
  readonly finished: number;
  readonly segmented: number;
  /** What the platform added to turns of rollouts that answered; absent where none did. */
  readonly platform?: Counted;
  /** Bytes of finished trajectories that no segment covers yet. */
  readonly unsegmented_bytes: number;
  /** What its trajectories and training samples take, in characters and bytes of R2. */
  readonly stored_bytes: number;
  readonly last_event: number;
  readonly settled_at: number | null;
  /** When its deletion began: it is nobody's from there on. */
  readonly closed_at: number | null;
  /** True once D1's row of the run says what this head says. */
  readonly row_current: boolean;
  /** Objects that its rollouts were given to, numbered from 1, and how many of them are freed, in that order. */
  readonly hosts: number;
  readonly freed: number;
  /** Messages a queue gave up on. */
  readonly dead_letters: number;
  /** Rollouts and units that ended the process so often that they are not tried again. */
  readonly given_up: number;
  /** The lease of the policy\'s endpoint. It is stored under this name. */
  readonly gate: LeaseState;
  /** What its organisation's object granted it. */
  readonly shares: {
    readonly rollouts: LeaseState;
    readonly messages: LeaseState;
    readonly judgements: LeaseState;
  };
  /** What the endpoints of its judges granted it, by their ids. */
  readonly judge_gates: Readonly<Record<string, LeaseState>>;
  /** How soon judges answer, by the ids of their endpoints. Absent: nobody has answered yet. */
  readonly judge_paces: Readonly<Record<string, JudgePace | "quick">>;
  /** A unit that is judged takes more work than those of quick judges may. */
  readonly judged_heavy?: boolean;
  /** What it met at the endpoints that it called, by their ids. */
  readonly refusals: EndpointRefusals;
  /** Null for a run that trains nothing. */
  readonly training: TrainingState | null;
  readonly books: RunBooks;
  readonly cap: CapState;
}

/** What the run met at one endpoint. */
export interface Refusals {
  /** A call was answered: the key is good. */
  readonly answered: boolean;
  /** Keys of the first tasks that met a 403. */
  readonly tasks: readonly string[];
  /** What the last of those said. */
  readonly said: string;
}

export type EndpointRefusals = Readonly<Record<string, Refusals>>;

/** Of a run with a cap, in micro-dollars. */
export interface CapState extends CapBook {
  /** What rollouts asked for when they asked first: the latest that was heard. Null: none has asked. */
  readonly first: Wanted | null;
  /** Since its cap ended it something was released: it may be retried. */
  readonly reopens?: boolean;
}

/** Money that a run may count on, until a time. */
export interface HoldGrant {
  readonly micros: number;
  readonly until: number;
  /** Why it is not more; null where it is what was asked for. */
  readonly short: HoldShort | null;
}

export interface HoldShort {
  readonly by: "balance" | "budget";
  /** The budget that is used up; null for the balance. */
  readonly budget_id: string | null;
  readonly shortfall_micros: number;
  readonly reason: string;
}

/** What the books of its organisation have heard of the run, and what it may count on. Money is micro-dollars. */
export interface RunBooks {
  /** The last end, and the last batch that its trainer took, that are in the books. */
  readonly ends: number;
  readonly pushes: number;
  /** Batches that its trainer took so far. */
  readonly pushed: number;
  /** What its ended rollouts are charged, and how much of that is in the books. */
  readonly charged: number;
  readonly settled: number;
  /** What is reserved for it; null where nothing is. */
  readonly hold: HoldGrant | null;
}

export const NEW_BOOKS: RunBooks = { ends: 0, pushes: 0, pushed: 0, charged: 0, settled: 0, hold: null };

export const NEW_HEAD: RunHead = {
  status: "running",
  error: null,
  stop: null,
  paused: false,
  max_concurrent: null,
  deadline_from: null,
  dispatched: 0,
  retried: 0,
  retries_dispatched: 0,
  in_flight: 0,
  running: 0,
  scored: 0,
  unscored: {},
  failed: {},
  cancelled: {},
  finished: 0,
  segmented: 0,
  unsegmented_bytes: 0,
  stored_bytes: 0,
  last_event: 0,
  settled_at: null,
  closed_at: null,
  row_current: false,
  hosts: 0,
  freed: 0,
  dead_letters: 0,
  given_up: 0,
  gate: NEW_LEASE,
  shares: { rollouts: NEW_LEASE, messages: NEW_LEASE, judgements: NEW_LEASE },
  judge_gates: {},
  judge_paces: {},
  refusals: {},
  training: null,
  books: NEW_BOOKS,
  cap: { ...NEW_CAP, first: null },
};
