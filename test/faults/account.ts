/** The records of one plan after it was played: from the API, from the model, from the tools. Plain data. */
import type { RunAudit } from "../../src/contract/audit.ts";
import type { Judgement } from "../../src/contract/judgement.ts";
import type { ResultRow, RunView } from "../../src/contract/run.ts";
import type { RunEvent } from "../../src/contract/run-events.ts";
import type { Billed } from "./billing.ts";
import type { ToolRun } from "./desk.ts";
import type { AskedCall, Said } from "./fault-model.ts";
import type { Control, FaultPlan, Victim } from "./plan.ts";

/** One crash of workerd. */
export interface Death {
  readonly victim: Victim;
  /** Epoch milliseconds between which it crashed. */
  readonly after: number;
  readonly before: number;
  /** The minimum number of rollouts in flight: calls that waited for their answer. */
  readonly in_flight: number;
  /** Epoch milliseconds at which the platform reported that it answers again. */
  readonly ready_at: number;
  /** From that report to the first call of the model; null if no call was left to make. */
  readonly recovery_ms: number | null;
}

/** A run as the API returns it once it has ended, or once its time was up. */
export interface Told {
  readonly run: RunView;
  readonly results: readonly ResultRow[];
  /** The turns stored with each rollout that sampled them itself, by the idempotency key of their calls. */
  readonly turns: ReadonlyMap<string, Said>;
  /** When a call timed out, as its rollout recorded it (epoch seconds), by idempotency key. */
  readonly timed_out: ReadonlyMap<string, readonly number[]>;
  /** All of them, from the first; a snapshot in place of events that are no longer kept. */
  readonly events: readonly RunEvent[];
  /** Of all rollouts of the run. */
  readonly judgements: readonly Judgement[];
  readonly audit: RunAudit;
}

/** Epoch milliseconds between which a store failed. */
export interface Outage {
  readonly from: number;
  readonly to: number;
}

/** A request of the run's owner, and when the platform had done it (epoch milliseconds). */
export interface Asking {
  readonly does: Control["does"] | "resume";
  readonly at: number;
}

export interface Account {
  readonly plan: FaultPlan;
  readonly calm: Told;
  readonly told: Told;
  /** Calls of the model, by idempotency key. */
  readonly calls: ReadonlyMap<string, AskedCall>;
  /** The largest number of calls that waited for their answers at once. */
  readonly most_open: number;
  /** Calls of the judge, by idempotency key; empty if the plan has no judge. */
  readonly judge_calls: ReadonlyMap<string, AskedCall>;
  readonly most_judging: number;
  readonly tool_runs: readonly ToolRun[];
  /** What it saw of other organisations: ids in API answers, and runs that it could read. */
  readonly foreign: readonly string[];
  readonly deaths: readonly Death[];
  readonly outages: readonly Outage[];
  readonly askings: readonly Asking[];
  readonly injected: Injected;
  /** For a paid plan: the state of the ledger. */
  readonly billed: Billed | null;
}

/** Faults that happened, by kind. */
export interface Injected {
  readonly dropped: number;
  readonly duplicated: number;
  readonly delayed: number;
  /** By queue: its messages that were dropped, duplicated or delayed. */
  readonly queues: Readonly<Record<string, number>>;
  readonly store_failures: number;
  readonly replies_lost: number;
  readonly isolates_lost: number;
  readonly model_faults: number;
}

export interface Violation {
  readonly rule: string;
  readonly detail: string;
}
