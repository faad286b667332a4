/**
 * What travels between objects, queues and consumers. Messages hold ids only and stay under 1 kB; every receiver may
 * see any of these twice. RPC arguments and results only ever gain optional fields.
 */

import type { CancelReason, FailureClass, SerializedError } from "../../contract/errors.ts";
import type { RunLimits } from "../../contract/eval-request.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { ResolvedJudge } from "../../contract/judgement.ts";
import type { Usage } from "../../contract/messages.ts";
import type { EnvironmentPin, RunFleet, RunSpec } from "../../contract/run-spec.ts";
import type { Sampling } from "../../contract/sampling.ts";
import type { Scope } from "../../contract/scope.ts";
import type { CeilingAsk, CostPrices, Spending } from "../../core/costs/allowance.ts";
import type { ForkPoint } from "../../core/rollout/fork.ts";
import type { ScoreRecord } from "../../core/rubrics/score.ts";
import type { Latencies } from "./latency.ts";

export type { EnvironmentPin, ResolvedJudge as JudgeTarget, RunSpec };

/** Where a rollout stands in its run. */
export interface RolloutSlot {
  readonly group: number;
  readonly slot: number;
  readonly attempt: number;
}

/** Everything one rollout needs for its whole life, the task row included. */
export interface RolloutSpec extends RolloutSlot {
  readonly scope: Scope;
  readonly run_id: string;
  readonly rollout_id: string;
  /** The number of the object that plays it, among those of its run. */
  readonly host: number;
  readonly example_id: number;
  readonly task_key: string;
  /** Whose task it is, in a run of a group of environments. */
  readonly member?: string;
  readonly row: JsonObject;
  /** Of its row, its prompt and the turns it begins with, in memory (UTF-16 units). */
  readonly characters?: number;
  readonly environment: EnvironmentPin;
  readonly environment_args: JsonObject;
  readonly model: string;
  readonly endpoint_id: string;
  /** Of a run on a fleet, whose id `endpoint_id` is then. */
  readonly fleet?: RunFleet;
  /** The address that its tokens are charged by; absent where nothing is charged. */
  readonly address?: string;
  readonly sampling: Sampling;
  readonly limits: RunLimits;
  readonly seed: number;
  /** Its score is a matter of its own trajectory alone: it is scored where it was played (scoring/score-in-place.ts). */
  readonly scored_in_place?: boolean;
  /** What it begins with instead of the environment's setup: the turns of another rollout. */
  readonly from?: ForkPoint;
  /** Of a training run: the weights its group was dispatched by, */
  readonly policy_version?: number;
  /** and the resets of the run before it began. */
  readonly policy_generation?: number;
  /** In a run with a cap. */
  readonly budget?: RolloutBudget;
}

/** What a rollout may spend before it asks its run for more, in micro-dollars. */
export interface RolloutBudget {
  readonly ceiling: number;
  /** What it counts for from its start, whatever it does: part of the ceiling. */
  readonly base: number;
  readonly prices: CostPrices;
}

/** A rollout of a run with a cap asks for more. */
export interface AllowanceAsk extends RolloutSlot, CeilingAsk {
  /** Counts its asks: what an earlier one asked for is void. */
  readonly asks: number;
}

/** `ceiling`: what it may spend in all; null: not enough for its next call, and it waits. `over`: nobody awaits its end. */
export interface AllowanceReply {
  readonly ceiling: number | null;
  readonly over?: boolean;
}

/** What a rollout says of itself when asked. `next_event_at`: do not ask again before (epoch ms). */
export type RolloutStanding =
  | { readonly state: "running"; readonly next_event_at: number }
  | { readonly state: "answered" }
  | { readonly state: "expired" }
  | { readonly state: "unknown" }
  /** What is stored of it cannot be read. */
  | { readonly state: "unreadable" };

/** The final report of a rollout: everything its run keeps of it, short of scores. */
export interface RolloutReport extends RolloutSlot {
  readonly rollout_id: string;
  readonly example_id: number;
  readonly task_key: string;
  /** What its task asks; absent where nobody says it in words, or the prompt was never made. */
  readonly task_text?: string;
  /** Whose task it is, in a run of a group of environments. */
  readonly member?: string;
  readonly failure: FailureClass | null;
  readonly cancelled: CancelReason | null;
  readonly error: SerializedError | null;
  /** Set when every other rollout of the run would fail alike. */
  readonly stop_run: { readonly code: string; readonly message: string } | null;
  /** sha256 of the trajectory; null when none could be made. */
  readonly digest: string | null;
  /** Hash of the prompt and what was said after it. */
  readonly said?: string;
  readonly bytes: number;
  /** The trajectory itself when it is small (`LIMITS.inlineTrajectoryBytes`); a larger one is in R2 under its digest. */
  readonly trajectory: string | null;
  readonly stop_condition: string | null;
  readonly is_truncated: boolean;
  readonly turns: number;
  readonly calls: number;
  /** Calls that were answered with 429. */
  readonly limited?: number;
  /** Of its own turns. */
  readonly latencies?: Latencies;
  readonly usage: Usage;
  /** Replies that did not say what they took: what the rollout cost is unknown. */
  readonly unmetered?: number;
  /** Absent of one that was never begun. */
  readonly spent?: Spending;
  readonly started_at: number;
  readonly ended_at: number;
  /** Its scores, where it was scored in its own object. */
  readonly record?: ScoreRecord;
}

/** Work that may have ended the process: a place that is to be started, a rollout, or a unit that is to be scored. */
export type SuspectKey = `${"start" | "rollout"}/${number}/${number}/${number}` | `unit/${number}`;

/** One rollout to start. */
export interface Starter extends RolloutSlot {
  readonly rollout_id: string;
  /** The number of the object that plays it; null: none does, since it takes over what another one left. */
  readonly host: number | null;
  /** It may have ended the process before: it is begun alone (suspects.ts). */
  readonly suspect?: boolean;
  /** The attempt of this run whose trajectory it takes over, in place of sampling one. */
  readonly carries?: RolloutSlot;
  /** Of a training run: which row its group plays (else the group's number says), */
  readonly example_index?: number;
  /** the weights the group was dispatched by, */
  readonly policy_version?: number;
  /** and the resets of the run so far. */
  readonly policy_generation?: number;
  /** In a run with a cap: what it may spend before it asks for more. */
  readonly ceiling?: number;
}

/** A rollout whose trajectory another one takes over; `attempt` null = the latest that has ended. */
export interface SourceSlot extends Omit<RolloutSlot, "attempt"> {
  readonly attempt: number | null;
}

/** Where a finished trajectory is: here (`text`), in R2 under its digest, or (digest null) nowhere. */
export interface StoredTrajectory {
  readonly digest: string | null;
  readonly text: string | null;
}

/** One rollout whose trajectory is to be scored. */
export interface Member extends Starter, StoredTrajectory {}

export interface Unit {
  readonly unit: number;
  /** It may have ended the process before: it is scored alone (suspects.ts). */
  readonly suspect?: boolean;
  /** Of a training run: no weights can have sampled it that have a later version. */
  readonly newest_version?: number;
  readonly members: readonly Member[];
}

/** What a retry asks for: `classes` null = the usual ones; `hash` tells a repeat of the key from another request. */
export interface RetryOrder {
  readonly classes: readonly string[] | null;
  readonly key: string | null;
  readonly hash: string;
  /** What the same order was kept as under secrets before the current one. */
  readonly hashes_before?: readonly string[] | undefined;
}

/** `unknown`: nobody created this run. */
export type RetryRefusal = "unknown" | "cancelled" | "capped" | "draining" | "key_reused" | "training";

export type ScoredMember = RolloutSlot & { readonly record: ScoreRecord };

interface Address {
  readonly scope: Scope;
  readonly run_id: string;
}

/** `rollout-groups`: start these. Older than 10 minutes: the sweep has long re-sent it, so it is dropped. */
export interface GroupsMessage extends Address {
  readonly kind: "groups";
  readonly sent_at: number;
  readonly rollouts: readonly (readonly [group: number, slot: number, attempt: number])[];
}

/** `rollout-scores`: score these units. `heavy`: they took more work than that queue gives them (scoring/scoring-pass.ts). */
export interface ScoresMessage extends Address {
  readonly kind: "scores";
  readonly units: readonly number[];
  readonly heavy?: true;
}

/**
 * How soon the judges of an endpoint answer a run. `slow`: not soon, but they do. `silent`: nothing was heard of them in
 * the time that a judge has. Absent: soon, or nobody knows yet.
 */
export type JudgePace = "slow" | "silent";

/** `rollout-judgements`: ask the judges of this unit. */
export interface JudgementMessage extends Address {
  readonly kind: "judgement";
  readonly unit: number;
  readonly pace?: JudgePace;
  /** Rollouts of the unit, at most. */
  readonly members: number;
}

/** `run-segments`: fold this segment. */
export interface SegmentMessage extends Address {
  readonly kind: "segment";
  readonly segment: number;
}

/** One hand-over of a message: whoever else holds a copy of it has another id, or came before. */
export interface Delivery {
  readonly id: string;
  /** From 1; a later one means that an earlier one came to nothing. */
  readonly attempt: number;
  /** Of a judgement: for which queue it was sent. */
  readonly pace?: JudgePace;
}

export type RunMessage = GroupsMessage | ScoresMessage | SegmentMessage | JudgementMessage;

export const START_MESSAGE_LIFE_MS = 10 * 60_000;
