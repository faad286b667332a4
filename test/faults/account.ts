/** What is known of one plan once it has been played: from the API, from the model, from the tools. Plain data. */
import type { RunAudit } from "../../src/contract/audit.ts";
import type { Judgement } from "../../src/contract/judgement.ts";
import type { ResultRow, RunView } from "../../src/contract/run.ts";
import type { RunEvent } from "../../src/contract/run-events.ts";
import type { Billed } from "./billing.ts";
import type { ToolRun } from "./desk.ts";
import type { AskedCall, Said } from "./fault-model.ts";
import type { Control, FaultPlan, Victim } from "./plan.ts";

/** One death of workerd. */
export interface Death {
  readonly victim: Victim;
  /** Epoch milliseconds between which it died. */
  readonly after: number;
  readonly before: number;
  /** Rollouts in flight at least: calls that waited for their answer. */
  readonly in_flight: number;
  /** Epoch milliseconds of the platform's word that it answers again. */
  readonly ready_at: number;
  /** From that word to the first call of the model; null when none was left to make. */
  readonly recovery_ms: number | null;
}

/** A run as the API tells it once it has ended, or once nobody waited for it any longer. */
export interface Told {
  readonly run: RunView;
  readonly results: readonly ResultRow[];
  /** The turns stored with each rollout that sampled them itself, by the idempotency key of their calls. */
  readonly turns: ReadonlyMap<string, Said>;
  /** When a call was given up because its time had passed, as its rollout tells (epoch seconds), by idempotency key. */
  readonly timed_out: ReadonlyMap<string, readonly number[]>;
  /** All of them, from the first; a snapshot in place of those that are kept no longer. */
  readonly events: readonly RunEvent[];
  /** Of all rollouts. */
  readonly judgements: readonly Judgement[];
  readonly audit: RunAudit;
}

/** Epoch milliseconds between which a store failed. */
export interface Outage {
  readonly from: number;
  readonly to: number;
}

/** Something its owner asked of the run, and when the platform had done it (epoch milliseconds). */
export interface Asking {
  readonly does: Control["does"] | "resume";
  readonly at: number;
}

export interface Account {
  readonly plan: FaultPlan;
  readonly calm: Told;
  readonly told: Told;
  /** By idempotency key. */
  readonly calls: ReadonlyMap<string, AskedCall>;
  /** The most calls that waited for their answers at once. */
  readonly most_open: number;
  /** Calls of the judge, by idempotency key; none where the plan asks none. */
  readonly judge_calls: ReadonlyMap<string, AskedCall>;
  readonly most_judging: number;
  readonly tool_runs: readonly ToolRun[];
  /** What it saw of other organisations: ids in what it was told, and runs that answered it. */
  readonly foreign: readonly string[];
  readonly deaths: readonly Death[];
  readonly outages: readonly Outage[];
  readonly askings: readonly Asking[];
  readonly injected: Injected;
  /** Of a plan that is paid for: what the ledger says. */
  readonly billed: Billed | null;
}

/** Faults that happened, by kind. */
export interface Injected {
  readonly dropped: number;
  readonly duplicated: number;
  readonly delayed: number;
  readonly store_failures: number;
  readonly replies_lost: number;
  readonly model_faults: number;
}

export interface Violation {
  readonly rule: string;
  readonly detail: string;
}
