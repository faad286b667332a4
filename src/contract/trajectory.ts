/**
 * The result of a rollout: its turns, its states, how it stopped.
 *
 * Invariants. A conversation is a turn's prompt + completion. A turn continues the conversation of an earlier turn, by
 * default of the turn before: its prompt is the first `keep` messages of that conversation, then `append`. So a history
 * that only grows is stored once, also if several conversations alternate, and a history that a hook rewrote is stored
 * completely. A turn's tokens keep only the suffix of prompt ids beyond the ids of the turn that it continues (`forked`
 * if they are not a continuation). States are stored as top-level changes against the previous turn, whole every
 * `WHOLE_STATE_EVERY` turns (an RFC 7396 merge patch cannot set a member to null, so removed keys are listed instead).
 * Everything here is JSON and has the schema's number.
 */
import type { CancelReason, FailureClass, SerializedError } from "./errors.ts";
import { canonicalJson, type Json, type JsonObject } from "./json.ts";
import type { FinishReason, Message, Messages, ToolDefinition, Usage } from "./messages.ts";
import type { SentPrompt } from "./prompts.ts";
import type { ForkedFrom } from "./run.ts";
import type { Sampling } from "./sampling.ts";

/** Raised, with a named migration (src/core/rollout/migrations.ts), whenever the stored shape changes. */
export const ROLLOUT_SCHEMA = 1;
const WHOLE_STATE_EVERY = 8;

/** The tokens of one turn, verbatim from the engine. Blobs are base64 of little-endian arrays. */
export interface TurnTokens {
  /** int32: prompt ids beyond the prompt + completion ids of the turn that it continues, or all of them if `forked`. */
  readonly prompt_suffix_ids: string;
  readonly forked: boolean;
  /** int32: the sampled ids. */
  readonly completion_ids: string;
  /** float32: natural-log probabilities, one per sampled id; null if the engine sent none. */
  readonly completion_logprobs: string | null;
  /** Lengths, so that a reader can allocate and a checker can compare. */
  readonly prompt_length: number;
  readonly completion_length: number;
}

/** The response of one model call, as the client returns it. */
export interface ModelResponse {
  readonly id: string | null;
  readonly model: string | null;
  readonly message: Message;
  readonly finish_reason: FinishReason;
  /** The server's own finish reason, if it is not a `FinishReason`. */
  readonly finish_word?: string;
  readonly usage: Usage | null;
  readonly prompt_ids: readonly number[] | null;
  readonly completion_ids: readonly number[] | null;
  readonly completion_logprobs: readonly number[] | null;
  /** True if its ids were cut to the environment's `maxSeqLen`. */
  readonly tokens_cut?: boolean;
  /** The label of the weights, if the engine sent one. */
  readonly policy_version: string | null;
  /** The label of the weights that sampled the first token, if other weights sampled the last. */
  readonly first_policy_version?: string;
  readonly latency_ms: number;
}

/** The call of a turn on a fleet, with the sequence numbers of the fleet's object (src/fleets/rpc.ts). */
export interface FleetCallNote {
  readonly replica_id: string;
  readonly number: number;
  /** Null if its end was never numbered: then it is unknown which weights sampled it. */
  readonly end: number | null;
  /** The model name in the call. */
  readonly model: string;
  /** The version of the weights when the call was sent, if the run's own weights are served there. */
  readonly version?: number;
  /** While the rollout is not over: its end is numbered later, and noted in `ends` of a later turn or of the last. */
  readonly open?: true;
  /** While the rollout is not over: ends of its turns that were numbered by then. */
  readonly ends?: readonly TurnEnd[];
}

/** The number of the end of a turn's call on a fleet; null as `FleetCallNote.end`. */
export interface TurnEnd {
  readonly turn: number;
  readonly end: number | null;
}

/** A call that an agent made, in addition to its messages. Source: src/agents. */
export interface AskedCall {
  /** sha256 of the request's form and body: a repeat of it is answered from storage. */
  readonly hash: string;
  /** Its `Idempotency-Key`; absent if it had none. */
  readonly key?: string;
  /** The lease under which it was made. */
  readonly lease: number;
  /** Absent in a stored turn: as in the call before; none, if there was none. */
  readonly tools?: readonly ToolDefinition[];
  readonly sampling: Sampling;
  /** Present if the agent excluded the call from training. */
  readonly train?: false;
}

/** Scores that came with the end of an agent's rollout. */
export interface ReportedScores {
  /** Null: it could not be produced, so the rollout has no reward. */
  readonly rewards: Readonly<Record<string, { readonly score: number | null; readonly weight: number }>>;
  readonly metrics: Readonly<Record<string, number | null>>;
}

export const NOTHING_REPORTED: ReportedScores = { rewards: {}, metrics: {} };

/** A prompt, as it is stored: the beginning of an earlier conversation, and what follows it. */
export interface StoredPrompt {
  /** The index of the turn whose conversation it continues; absent: the turn before. */
  readonly after?: number | undefined;
  /** How many messages of that conversation it begins with. */
  readonly keep: number;
  readonly append: Messages;
}

export interface Turn {
  readonly index: number;
  readonly prompt: StoredPrompt;
  readonly completion: Message;
  readonly finish_reason: FinishReason;
  /** The server's own finish reason, if it is not a `FinishReason`. */
  readonly finish_word?: string;
  readonly usage: Usage | null;
  readonly tokens: TurnTokens | null;
  readonly is_truncated: boolean;
  /**
   * Calls sent for this turn: 1, plus one for every retry and for every call sent again after a restart. One less if
   * its answer came from the cache.
   */
  readonly calls: number;
  /** True if its answer came from the project's cache: its usage was paid for by another turn. */
  readonly from_cache?: true;
  readonly latency_ms: number;
  readonly response_id: string | null;
  readonly model: string | null;
  readonly policy_version: string | null;
  readonly first_policy_version?: string;
  /** In a training run: the version with which its group was dispatched. */
  readonly dispatch_version?: number;
  /** In a training run: when the answered call was sent (epoch milliseconds). */
  readonly sent_at?: number;
  /** In a run on a fleet. */
  readonly fleet_call?: FleetCallNote;
  /** Time of the call in addition to `latency_ms`, in milliseconds, without hooks and waits for leases. */
  readonly platform_ms?: number;
  readonly answered_at: number;
  /** The environment's own state after its reply to this turn; null until it has replied. */
  readonly state_after: JsonObject | null;
  readonly tool_failed?: ToolFailed;
  /** In a run of an agent. */
  readonly asked?: AskedCall;
  /** In a run whose prompts are token ids, for each turn but the first. */
  readonly sent_prompt?: SentPrompt;
}

/**
 * Whether each tool call failed, in the order of the calls, as recorded when it was answered; null if it was not
 * answered by one of the library's environments with tools. Absent if none of the calls was.
 */
export type ToolFailed = readonly (boolean | null)[];

/** A turn while it is scored: functions may set its reward and advantage; otherwise the rollout's are used. */
export interface CreditedTurn extends Turn {
  reward?: number | null;
  advantage?: number | null;
}

/** A model call that failed. */
export interface FailedCall {
  readonly turn: number;
  /** The number of the call within the turn, from 1. */
  readonly call: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly failure: Extract<FailureClass, "provider" | "timeout">;
  /** The error's class. */
  readonly error: string;
  readonly message: string;
  /** HTTP status of the reply that refused the call; absent if no reply came or it could not be used. */
  readonly status?: number;
  /** The fleet's replica that failed the call. */
  readonly replica?: string;
}

/** A rollout that has ended and is not scored yet. */
export interface Trajectory {
  /** The schema of the release that wrote it. */
  readonly schema: number;
  readonly rollout_id: string;
  readonly task_key: string;
  readonly example_id: number;
  readonly task: JsonObject;
  readonly prompt: Messages;
  readonly answer: string;
  readonly info: Json;
  readonly initial_state: JsonObject;
  readonly turns: readonly StoredTurn[];
  readonly final_state: JsonObject;
  readonly final_env_response: Messages | null;
  readonly completion: Messages;
  readonly stop_condition: string | null;
  readonly is_truncated: boolean;
  readonly error: SerializedError | null;
  readonly cleanup_errors: readonly SerializedError[];
  readonly failed_calls: readonly FailedCall[];
  readonly cancelled: CancelReason | null;
  /** The tools that the model was offered; absent if there were none. */
  readonly tools?: readonly ToolDefinition[];
  /** In a run of an agent. */
  readonly reported?: ReportedScores;
  /** Usage of its own turns: inherited and cached turns were paid for when they were made. */
  readonly usage: Usage;
  readonly calls: number;
  readonly forked_from?: ForkedFrom;
  /** The rollout that sampled it: this rollout copies it to be scored again. */
  readonly rescored_from?: string;
  /** Milliseconds since the epoch. */
  readonly started_at: number;
  readonly ended_at: number;
}

export interface StatePatch {
  readonly whole?: JsonObject;
  readonly set?: JsonObject;
  readonly unset?: readonly string[];
}
export type StoredTurn = Omit<Turn, "state_after"> & { readonly state_after: StatePatch | null };

export function packState(before: JsonObject, after: JsonObject, index: number): StatePatch {
  if (index % WHOLE_STATE_EVERY === WHOLE_STATE_EVERY - 1) return { whole: after };
  const set = Object.fromEntries(Object.entries(after).filter(([key, value]) => !sameJson(before[key], value)));
  const unset = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  return unset.length === 0 ? { set } : { set, unset };
}

export function unpackState(before: JsonObject, patch: StatePatch): JsonObject {
  if (patch.whole !== undefined) return patch.whole;
  const kept = Object.entries(before).filter(([key]) => !patch.unset?.includes(key));
  return { ...Object.fromEntries(kept), ...patch.set };
}

/** Packs turns for storage; `unpackTurns` is its inverse. */
export function packTurns(initial: JsonObject, turns: readonly Turn[]): StoredTurn[] {
  let before = initial;
  return turns.map((turn) => {
    const { state_after, ...rest } = turn;
    if (state_after === null) return { ...rest, state_after: null };
    const patch = packState(before, state_after, turn.index);
    before = state_after;
    return { ...rest, state_after: patch };
  });
}

export function unpackTurns(initial: JsonObject, turns: readonly StoredTurn[]): Turn[] {
  let before = initial;
  return turns.map((turn) => {
    if (turn.state_after === null) return { ...turn, state_after: null };
    before = unpackState(before, turn.state_after);
    return { ...turn, state_after: before };
  });
}

/** Whether the turn may be trained on: an agent can exclude calls, such as those of a simulated user. */
export function isTrained({ asked }: Pick<Turn, "asked">): boolean {
  return asked?.train !== false;
}

/** The index of the turn that turn `index` continues; -1 if it is the first one. */
export function continuedBy(index: number, { after = index - 1 }: Pick<StoredPrompt, "after"> = {}): number {
  return Math.min(after, index - 1);
}

type Spoken = Pick<Turn, "prompt" | "completion">;

/** The whole prompt of turn `index`, which need not be among `turns`: those before it, or all of the rollout. */
export function promptOf(turns: readonly Spoken[], index: number, { keep, append, ...prompt }: StoredPrompt): Messages {
  return [...conversationOf(turns, continuedBy(index, prompt), keep), ...append];
}

/** Prompt + completion of the last of `turns`, which are all up to that one; empty if there is none. */
export function historyOf(turns: readonly Spoken[]): Messages {
  return conversationOf(turns, turns.length - 1, Number.POSITIVE_INFINITY);
}

/** The first `most` messages of the conversation of turn `index`. */
function conversationOf(turns: readonly Spoken[], index: number, most: number): Message[] {
  const parts: Messages[] = [];
  let [at, left] = [index, most];
  while (left > 0) {
    const turn = turns[at];
    if (turn === undefined) break;
    const { keep, append } = turn.prompt;
    if (left > keep) parts.push([...append, turn.completion].slice(0, left - keep));
    left = Math.min(left, keep);
    at = continuedBy(at, turn.prompt);
  }
  return parts.reverse().flat();
}

export function addUsage(turns: readonly Pick<Turn, "usage">[]): Usage {
  const total = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  let cached_tokens = 0;
  for (const { usage } of turns) {
    total.prompt_tokens += usage?.prompt_tokens ?? 0;
    total.completion_tokens += usage?.completion_tokens ?? 0;
    total.total_tokens += usage?.total_tokens ?? 0;
    cached_tokens += usage?.cached_tokens ?? 0;
  }
  return { ...total, ...(cached_tokens > 0 && { cached_tokens }) };
}

/** Tokens of a rollout with verifiers' field names. */
export interface TokenUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
}

/** Null if no turn has a usage. */
export function tokenUsage(turns: readonly Pick<Turn, "usage">[]): TokenUsage | null {
  if (turns.every(({ usage }) => usage === null)) return null;
  const { prompt_tokens, completion_tokens } = addUsage(turns);
  return { input_tokens: prompt_tokens, output_tokens: completion_tokens };
}

function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  return a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b);
}
