/** Tables of a run's own SQLite, and the types of their rows. Times are epoch milliseconds. */

import type { RunStatus } from "../../contract/run.ts";
import { type CapAccounting, NEW_CAP, type Wanted } from "../../core/costs/call-budget.ts";
import { type LeaseState, NEW_LEASE } from "../endpoint/run-lease.ts";
import type { Migration } from "../kit/migrate.ts";
import type { Counted } from "../messages/latency.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { JudgePace } from "../messages/wire.ts";
import { ANNOUNCEMENTS_SCHEMA } from "./announcements.ts";
import { JUDGING_SCHEMA } from "./judging-store.ts";
import { LOST_RESERVATIONS_SCHEMA, RELEASES_SCHEMA } from "./lost-reservations.ts";
import { EVALS_SCHEMA, MEMBERS_SCHEMA, TRAINING_SCHEMA, type TrainingState } from "./training-state.ts";

export const RUN_SCHEMA = [
  // One row per rollout, inserted when it is dispatched and never deleted. `finish_seq` numbers the ends from 1,
  // without gaps. `host`: the number of the object that plays it. `carries`: `seq` of the attempt whose trajectory it
  // takes over. `member`: the environment that the task belongs to, in a group of environments. `steps` (rewards of
  // single turns) and `judgements` are JSON.
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
  // Ended rollouts whose next attempt is not dispatched yet.
  "create table if not exists retries (seq integer primary key)",
  // Requests made with an Idempotency-Key: a repeated request changes nothing.
  "create table if not exists requests (operation text not null, key text not null, hash text not null, primary key (operation, key))",
  // Small trajectories of rollouts that are not in a segment yet.
  "create table if not exists trajectories (seq integer primary key, text text not null)",
  // Finished rollouts first_seq..last_seq. They are compacted into one R2 object once `key` is set.
  `create table if not exists segments (
    segment integer primary key, first_seq integer not null, last_seq integer not null,
    key text, ask_at integer not null, asks integer not null default 0)`,
  "create index if not exists segments_to_fold on segments (ask_at) where key is null",
  "create table if not exists events (id integer primary key, event text not null, data text not null)",
  // Messages that ended in a dead-letter queue. They are recorded here; reconciliation does their work.
  "create table if not exists dead_letters (id integer primary key autoincrement, queue text not null, body text not null, at integer not null)",
  // Quarantine: work that may have killed the process. `deaths`: how many deaths it was named in. `boot`: the boot of
  // the process that is trying it now.
  "create table if not exists suspects (key text primary key, deaths integer not null, boot text)",
  ...JUDGING_SCHEMA,
  ...TRAINING_SCHEMA,
];

/** The values of the columns that an insert of a dispatched rollout does not name. */
export const NEW_ROLLOUT = {
  ...{ outcome: null, reason: null, superseded_by: null, asks: 0, misses: 0, told: 0, cancel: null },
  ...{ example_id: null, task_key: null, task_text: null, member: null, digest: null, said: null, bytes: 0 },
  ...{ stop_condition: null, is_truncated: 0, turns: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0 },
  ...{ ended_at: null, error: null, reward: null, scores: null, scoring_errors: null, steps: null },
  ...{ judge_calls: 0, judge_prompt_tokens: 0, judge_completion_tokens: 0, judge_micros: null, judgements: null },
  ...{ cached_tokens: 0, reused_turns: 0, reused_tokens: 0, charge: null, finish_seq: null },
  ...{ ceiling: 0, spent_micros: 0, asked: 0, needs: 0, lost_calls: 0, lost_micros: 0, unmetered: 0 },
} as const satisfies Partial<RolloutEntry>;

/** The other columns, which the insert names. */
const NAMED: Readonly<Record<Exclude<keyof RolloutEntry, keyof typeof NEW_ROLLOUT>, true>> = {
  ...{ seq: true, group_index: true, slot: true, attempt: true, id: true, status: true },
  ...{ ask_at: true, host: true, carries: true, started_at: true },
};

/**
 * The columns of `RolloutEntry` for a page of rows, with `judgements` null: a row may hold a megabyte of them, and a call
 * between objects carries only 32 MiB.
 */
export const PAGE_COLUMNS = columnsWith("null");

/** The same with judgements as `JudgeCalls`: without the texts that make them large. */
export const JUDGED_COLUMNS = columnsWith(`iif(judgements is null, null,
  (select json_group_array(json_remove(value, '$.reply', '$.reason', '$.verdict')) from json_each(judgements)))`);

function columnsWith(judgements: string): string {
  const names = Object.keys({ ...NAMED, ...NEW_ROLLOUT });
  return names.map((name) => (name === "judgements" ? `${judgements} as judgements` : name)).join(", ");
}

/** Changes of these tables since the first release. They run for old and for new objects: see kit/migrate.ts. */
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
    // Money in a run with `max_cost_micros`: reservations of rollouts and of scoring groups whose judges are called.
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
  // The label of a task for people, at most 120 characters.
  { name: "task text", statements: ["alter table rollouts add column task_text text"] },
  // Turns whose reply did not report its usage.
  { name: "unmetered", statements: ["alter table rollouts add column unmetered integer not null default 0"] },
  { name: "lost holds", statements: LOST_RESERVATIONS_SCHEMA },
  { name: "releases", statements: RELEASES_SCHEMA },
  {
    // Turns whose answers came from the project's cache, and their tokens, which are in no other column.
    name: "reused answers",
    statements: [
      "alter table rollouts add column reused_turns integer not null default 0",
      "alter table rollouts add column reused_tokens integer not null default 0",
    ],
  },
  // The judge's last reply, as it came.
  { name: "judge replies", statements: ["alter table verdicts add column reply text"] },
  { name: "members", statements: MEMBERS_SCHEMA },
  { name: "several evals", statements: EVALS_SCHEMA },
];

/** The mutable state of the run itself, stored as one JSON value. */
export interface RunHead {
  readonly status: Exclude<RunStatus, "queued" | "paused">;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Set when dispatch ended early. Rollouts in flight still report their results. */
  readonly stop:
    | {
        readonly kind: "cancel";
        readonly reason: "user" | "deadline" | "budget";
        /** Epoch milliseconds. */
        readonly at: number;
      }
    | { readonly kind: "fail"; readonly code: string; readonly message: string }
    | null;
  /** True: nothing is dispatched until the run is resumed. */
  readonly paused: boolean;
  /** The value set while the run was running; null: the value of the request. */
  readonly max_concurrent: number | null;
  /** Epoch milliseconds from which the deadline counts: the last retry of the ended run. Null: from its creation. */
  readonly deadline_from: number | null;
  /** Rollouts dispatched: first attempts in group-major order, and attempts created by retries. */
  readonly dispatched: number;
  /** Attempts created by retries, and how many of them are dispatched. */
  readonly retried: number;
  readonly retries_dispatched: number;
  /** Rollouts that are not done: running, or waiting for scores. */
  readonly in_flight: number;
  /** Rollouts in flight that have not reported yet: `max_concurrent` limits this number. */
  readonly running: number;
  readonly scored: number;
  readonly unscored: Readonly<Record<string, number>>;
  readonly failed: Readonly<Record<string, number>>;
  readonly cancelled: Readonly<Record<string, number>>;
  /** How many ends are numbered so far, and how many of them are in segments. */
  readonly finished: number;
  readonly segmented: number;
  /** The platform's own time in the turns of rollouts that reported; absent if there is none. */
  readonly platform?: Counted;
  /** Bytes of finished trajectories that are not in a segment yet. */
  readonly unsegmented_bytes: number;
  /** The size of its trajectories and training samples, in characters and bytes of R2. */
  readonly stored_bytes: number;
  readonly last_event: number;
  readonly settled_at: number | null;
  /** When its deletion began; null if it is not being deleted. From then on nobody can read or change it. */
  readonly closed_at: number | null;
  /** True if the run's row in D1 agrees with this head. */
  readonly row_current: boolean;
  /** The status that the row has; absent until it was written. */
  readonly row_status?: RunStatus;
  /** Shards (objects) that its rollouts were assigned to, numbered from 1, and how many are freed, in that order. */
  readonly hosts: number;
  readonly freed: number;
  /** Whether its model replies whole, by the latest report; absent: by its spec. */
  readonly replies_whole?: boolean;
  /** Messages that ended in a dead-letter queue. */
  readonly dead_letters: number;
  /** Rollouts and scoring groups that killed the process so often that they are not tried again. */
  readonly given_up: number;
  /** The lease of the policy's endpoint. It is stored under this name. */
  readonly gate: LeaseState;
  /** The leases of its organisation's object. */
  readonly shares: {
    readonly rollouts: LeaseState;
    readonly messages: LeaseState;
    readonly judgements: LeaseState;
  };
  /** The leases of its judges' endpoints, by endpoint id. */
  readonly judge_gates: Readonly<Record<string, LeaseState>>;
  /** How fast judges answer, by the ids of their endpoints. Absent: no judge has answered yet. */
  readonly judge_paces: Readonly<Record<string, JudgePace | "quick">>;
  /** True if one of its judged scoring groups needs more work than the queues of quick judges accept. */
  readonly judged_heavy?: boolean;
  /** Refusals by the endpoints that it called, by endpoint id. */
  readonly refusals: EndpointRefusals;
  /** Null for a run that trains nothing. */
  readonly training: TrainingState | null;
  readonly books: RunAccounting;
  readonly cap: CapState;
}

/** Answers of one endpoint that decide whether its key is refused. */
export interface Refusals {
  /** True once a call was answered: the key is valid. */
  readonly answered: boolean;
  /** Keys of the first tasks that got a 403. */
  readonly tasks: readonly string[];
  /** The message of the last 403. */
  readonly said: string;
}

export type EndpointRefusals = Readonly<Record<string, Refusals>>;

/** State of a run's cost cap, in micro-dollars. */
export interface CapState extends CapAccounting {
  /** The first request of a rollout, the latest one received. Null: no rollout has requested money yet. */
  readonly first: Wanted | null;
  /** True if a reservation was released after the cap ended the run: the run may be retried. */
  readonly reopens?: boolean;
  /** True once a call did not fit into what was left while rollouts waited for their agents: nothing more begins. */
  readonly closed?: boolean;
}

/** Money reserved for a run, until a time (epoch milliseconds). */
export interface GrantedReservation {
  readonly micros: number;
  readonly until: number;
  /** Why it is less than the run requested; null if it is not less. */
  readonly short: ReservationShortfall | null;
}

export interface ReservationShortfall {
  readonly by: "balance" | "budget";
  /** The budget that is used up; null if it is the balance. */
  readonly budget_id: string | null;
  readonly shortfall_micros: number;
  readonly reason: string;
}

/** What the organisation's ledger has of the run, and the reservation it holds. Money is in micro-dollars. */
export interface RunAccounting {
  /** The last end, and the last batch taken by the trainer, that are in the ledger. */
  readonly ends: number;
  readonly pushes: number;
  /** Batches taken by its trainer so far. */
  readonly pushed: number;
  /** The charge of its ended rollouts, and how much of it is in the ledger. */
  readonly charged: number;
  readonly settled: number;
  /** The current reservation; null if there is none. */
  readonly hold: GrantedReservation | null;
}

export const NEW_ACCOUNTING: RunAccounting = { ends: 0, pushes: 0, pushed: 0, charged: 0, settled: 0, hold: null };

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
  books: NEW_ACCOUNTING,
  cap: { ...NEW_CAP, first: null },
};
