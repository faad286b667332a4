/** How an agent plays a rollout: calls to the object that has the rollout. Fields are only added. */
import type { FailureClass } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { FinishReason, Message, Messages, ToolDefinition, Usage } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";
import type { ReportedScores } from "../../contract/trajectory.ts";

/** A worker takes a rollout. */
export interface TakeOrder {
  readonly rollout_id: string;
  readonly worker: string;
}

export interface TakenRollout {
  /** From 1. A later lease ends this one. */
  readonly lease: number;
  readonly task: JsonObject;
  readonly prompt: Messages;
  /** Epoch milliseconds; null if there is none. */
  readonly deadline: number | null;
}

/** One model call of an agent. */
export interface AgentCall {
  readonly messages: Messages;
  readonly tools: readonly ToolDefinition[];
  readonly sampling: Sampling;
  /** sha256 of the request's form and body. */
  readonly hash: string;
  readonly key: string | null;
  /** Whether the caller says that it repeats a call. */
  readonly retry: boolean;
  /** False: the turn is excluded from training. Absent: it is not. */
  readonly train?: boolean;
}

export interface AgentRefusal {
  /** The HTTP status. */
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

export interface AgentAnswer {
  readonly kind: "answered";
  /** The number of the turn. */
  readonly turn: number;
  readonly model: string | null;
  readonly message: Message;
  readonly finish_reason: FinishReason;
  readonly usage: Usage | null;
  /** Epoch milliseconds. */
  readonly answered_at: number;
}

export type AgentReply = AgentAnswer | ({ readonly kind: "refused" } & AgentRefusal);

/** How an agent ended its rollout. */
export interface AgentFinish {
  readonly answer: string | null;
  /** Merged over the environment's state. */
  readonly state: JsonObject;
  /** Null: it reports no scores. */
  readonly reported: ReportedScores | null;
  readonly stop_condition: string | null;
  readonly is_truncated: boolean;
  readonly error: { readonly failure: FailureClass; readonly error: string; readonly message: string } | null;
}

/** What an agent reported cannot end the rollout: nothing has changed, and it may report something else. */
export interface RefusedFinish {
  readonly field: string;
  readonly message: string;
}

/** `ended`: it counts. `lost`: another lease counts now. `over`: how the rollout ended otherwise, as a text. */
export type FinishReply =
  | "ended"
  | "lost"
  | "unknown"
  | { readonly over: string }
  | { readonly refused: RefusedFinish };
