/**
 * The messages between objects, queues and consumers. Messages hold ids only and stay under 1 kB. Every receiver may
 * get any of them twice. RPC arguments and results only ever gain optional fields.
 */

import type { AgentSettings } from "../../contract/agent.ts";
import type { CancelReason, FailureClass, SerializedError } from "../../contract/errors.ts";
import type { RunLimits } from "../../contract/eval-request.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { ResolvedJudge } from "../../contract/judgement.ts";
import type { Usage } from "../../contract/messages.ts";
import type { TokenForm } from "../../contract/prompts.ts";
import type { ReusedUsage } from "../../contract/report.ts";
import type { EnvironmentPin, RunFleet, RunSpec } from "../../contract/run-spec.ts";
import type { Sampling } from "../../contract/sampling.ts";
import type { Scope } from "../../contract/scope.ts";
import type { CostPrices, QuotaAsk, Spending } from "../../core/costs/call-budget.ts";
import type { MadeTask } from "../../core/protocol/environment-code.ts";
import type { ForkPoint } from "../../core/rollout/fork.ts";
import type { ScoreRecord } from "../../core/rubrics/score.ts";
import type { Latencies } from "./latency.ts";

export type { EnvironmentPin, ResolvedJudge as JudgeTarget, RunSpec };

/** The place of a rollout in its run. */
export interface RolloutSlot {
  readonly group: number;
  readonly slot: number;
  readonly attempt: number;
}

/** Everything that one rollout needs for its whole life, including the task row. */
export interface RolloutSpec extends RolloutSlot {
  readonly scope: Scope;
  readonly run_id: string;
  readonly rollout_id: string;
  /** The number of the shard that plays it, in its run. */
  readonly host: number;
  /** How many gatherers its run has; absent if its object is called without one. */
  readonly gatherers?: number;
  readonly example_id: number;
  readonly task_key: string;
  /** The environment of the task, in a run of a group of environments. */
  readonly member?: string;
  readonly row: JsonObject;
  /** The task that its row makes; absent if it is large: the object that plays the rollout then makes it again. */
  readonly task?: MadeTask["task"];
  /** Size in memory of its row, its task and the turns it begins with (UTF-16 units). */
  readonly characters?: number;
  readonly environment: EnvironmentPin;
  readonly environment_args: JsonObject;
  /** As in the run's spec. */
  readonly needs?: readonly string[];
  readonly model: string;
  readonly endpoint_id: string;
  /** For a run on a fleet; `endpoint_id` is then the fleet's id. */
  readonly fleet?: RunFleet;
  /** The address by which its tokens are charged; absent if nothing is charged. */
  readonly address?: string;
  readonly sampling: Sampling;
  readonly limits: RunLimits;
  readonly seed: number;
  /**
   * Its score depends only on its own trajectory, so the shard that played it scores it (scoring/score-in-place.ts).
   */
  readonly scored_in_place?: boolean;
  /** How many rollouts are scored at once, itself included; absent: it is scored alone. */
  readonly scored_together?: number;
  /** The turns of another rollout that it begins with, instead of the environment's setup. */
  readonly from?: ForkPoint;
  /** In a training run: the version of the weights when its group was dispatched. */
  readonly policy_version?: number;
  /** In a training run: the number of resets of the run before it began. */
  readonly policy_generation?: number;
  /** As in the run's spec. */
  readonly answer_cache?: boolean;
  /** As in the run's spec. */
  readonly prompts?: TokenForm;
  /** Only in a run with a cap. */
  readonly budget?: RolloutBudget;
  /** As in the run's spec. */
  readonly agent?: AgentSettings;
}

/** What a rollout may spend before it asks its run for more, in micro-dollars. */
export interface RolloutBudget {
  readonly ceiling: number;
  /** What it counts for from its start, whatever it does. It is part of the ceiling. */
  readonly base: number;
  readonly prices: CostPrices;
}

/** A request for more budget by a rollout of a run with a cap. */
export interface RolloutBudgetAsk extends RolloutSlot, QuotaAsk {
  /** Number of this request. A later request replaces earlier ones. */
  readonly asks: number;
}

/**
 * `ceiling`: what it may spend in all; null: not enough for its next call, so it waits. `over`: it no longer runs.
 */
export interface BudgetReply {
  readonly ceiling: number | null;
  readonly over?: boolean;
}

/** What a rollout of an agent has spent (micro-dollars) after so many requests: it gave back the rest of its budget. */
export interface UnspentBudget {
  readonly asks: number;
  readonly spent: number;
}

/** The state of a rollout. `next_event_at`: do not ask again before then (epoch ms). */
export type RolloutStanding =
  | { readonly state: "running"; readonly next_event_at: number }
  | { readonly state: "answered" }
  | { readonly state: "expired" }
  | { readonly state: "unknown" }
  /** Its stored data cannot be read. */
  | { readonly state: "unreadable" };

/** The final report of a rollout: everything that its run stores about it, except scores. */
export interface RolloutReport extends RolloutSlot {
  readonly rollout_id: string;
  readonly example_id: number;
  readonly task_key: string;
  /** What its task asks; absent if there is no text for it, or the prompt was never made. */
  readonly task_text?: string;
  /** The environment of the task, in a run of a group of environments. */
  readonly member?: string;
  readonly failure: FailureClass | null;
  readonly cancelled: CancelReason | null;
  readonly error: SerializedError | null;
  /** Set if every other rollout of the run would fail in the same way. */
  readonly stop_run: { readonly code: string; readonly message: string } | null;
  /** sha256 of the trajectory; null if none could be made. */
  readonly digest: string | null;
  /** Hash of the prompt and of what was said after it. */
  readonly said?: string;
  readonly bytes: number;
  /** The trajectory itself if it is small (`LIMITS.inlineTrajectoryBytes`); a larger one is in R2 under its digest. */
  readonly trajectory: string | null;
  readonly stop_condition: string | null;
  readonly is_truncated: boolean;
  readonly turns: number;
  readonly calls: number;
  /** Calls that were answered with 429. */
  readonly limited?: number;
  /** Whether the last reply came whole, or as a stream that began late; absent if that is unknown. */
  readonly replies_whole?: boolean;
  /** Own turns whose answers came from the cache; absent if there are none. */
  readonly reused?: ReusedUsage;
  /** Latencies of the answered calls of its own turns. */
  readonly latencies?: Latencies;
  readonly usage: Usage;
  /** Replies that did not report their usage: the cost of the rollout is unknown. */
  readonly unmetered?: number;
  /** Absent for a rollout that was never started. */
  readonly spent?: Spending;
  readonly started_at: number;
  readonly ended_at: number;
  /** Its scores, if the shard scored it. */
  readonly record?: ScoreRecord;
}

/**
 * Work that may have ended the process: a rollout to be started, a running rollout, or a scoring group to be scored.
 */
export type QuarantineKey = `${"start" | "rollout"}/${number}/${number}/${number}` | `unit/${number}`;

/** One rollout to start. */
export interface Starter extends RolloutSlot {
  readonly rollout_id: string;
  /** The number of the shard that plays it; null if it takes over the trajectory of another rollout. */
  readonly host: number | null;
  /** It may have ended the process before, so it is started alone (quarantine.ts). */
  readonly quarantine?: boolean;
  /** The attempt of this run whose trajectory it takes over instead of sampling one. */
  readonly carries?: RolloutSlot;
  /** In a training run: the row that its group plays; if absent, the group's number decides. */
  readonly example_index?: number;
  /** In a training run: the version of the weights when the group was dispatched. */
  readonly policy_version?: number;
  /** In a training run: the number of resets of the run so far. */
  readonly policy_generation?: number;
  /** In a run with a cap: what it may spend before it asks for more. */
  readonly ceiling?: number;
}

/** A rollout whose trajectory another one takes over. `attempt` null: the latest attempt that has ended. */
export interface SourceSlot extends Omit<RolloutSlot, "attempt"> {
  readonly attempt: number | null;
}

/** Where a finished trajectory is: here (`text`), in R2 under its digest, or (if digest is null) nowhere. */
export interface StoredTrajectory {
  readonly digest: string | null;
  readonly text: string | null;
}

/** One rollout whose trajectory must be scored. */
export interface Member extends Starter, StoredTrajectory {
  /** The size of its trajectory as JSON; absent in a message of an earlier release. */
  readonly bytes?: number;
}

export interface ScoringGroup {
  readonly unit: number;
  /** It may have ended the process before, so it is scored alone (quarantine.ts). */
  readonly quarantine?: boolean;
  /** In a training run: weights with a later version cannot have sampled it. */
  readonly newest_version?: number;
  readonly members: readonly Member[];
}

/** A retry. `classes` null: the default classes. `hash` distinguishes a repeat of the key from another request. */
export interface RetryOrder {
  readonly classes: readonly string[] | null;
  readonly key: string | null;
  readonly hash: string;
  /** The hashes of the same order under secrets before the current one. */
  readonly hashes_before?: readonly string[] | undefined;
}

/** `unknown`: the run does not exist. */
export type RetryRefusal = "unknown" | "cancelled" | "capped" | "draining" | "key_reused" | "training";

export type ScoredMember = RolloutSlot & { readonly record: ScoreRecord };

interface Address {
  readonly scope: Scope;
  readonly run_id: string;
  /** How many gatherers the run has; absent if its object is called without one. */
  readonly gatherers?: number;
}

/**
 * `rollout-groups`: start these. A message older than 10 minutes is dropped, because the reconciliation has sent it
 * again.
 */
export interface GroupsMessage extends Address {
  readonly kind: "groups";
  readonly sent_at: number;
  readonly rollouts: readonly (readonly [group: number, slot: number, attempt: number])[];
  /** They begin with stored turns, or take over stored trajectories, which may be large. */
  readonly carries?: true;
}

/**
 * `rollout-scores`: score these groups. `heavy`: they exceeded the work limit of that queue (scoring/scoring-pass.ts).
 * `members`: the maximum number of rollouts in a scoring group, if its scores may be computed beside those of other
 * messages.
 */
export interface ScoresMessage extends Address {
  readonly kind: "scores";
  readonly units: readonly number[];
  readonly heavy?: true;
  readonly members?: number;
}

/**
 * How fast the judges of an endpoint answer a run. `slow`: they answer, but late. `silent`: no answer came in the time
 * that a judge has. Absent: fast, or not known yet.
 */
export type JudgePace = "slow" | "silent";

/** `rollout-judgements`: call the judges of this scoring group. */
export interface JudgementMessage extends Address {
  readonly kind: "judgement";
  readonly unit: number;
  readonly pace?: JudgePace;
  /** The maximum number of rollouts in the scoring group. */
  readonly members: number;
}

/** `run-segments`: compact this segment. */
export interface SegmentMessage extends Address {
  readonly kind: "segment";
  readonly segment: number;
}

/** One delivery of a message. Another copy of the message has another id, or a lower attempt. */
export interface Delivery {
  readonly id: string;
  /** From 1. A higher number means that earlier deliveries failed. */
  readonly attempt: number;
  /** For a judgement: the queue that it was sent to. */
  readonly pace?: JudgePace;
}

export type RunMessage = GroupsMessage | ScoresMessage | SegmentMessage | JudgementMessage;

export const START_MESSAGE_LIFE_MS = 10 * 60_000;
