/**
 * The rollout as a pure state machine. `nextEffect` returns the next action; `advance` applies its outcome.
 *
 * Invariants. Both functions are total and pure: clocks, ids and outcomes are arguments. A state is JSON, so it
 * survives a restart, and replaying the events that led to it gives the same state. Only `closed` ends a rollout, and
 * an ended rollout ignores every event. Exactly one call is outstanding at a time, and its index is the number of
 * answered turns: an answered turn is never sampled again.
 *
 * The order of one turn (verifiers' loop): stop conditions → environment's reply → model call. Stop conditions are
 * checked before every call, also the first, so a condition that is true from the start prevents any call. A rollout
 * whose turns would exceed its `most_characters` makes no further call: it is truncated, as if the context were
 * full.
 */
import {
  type CancelReason,
  environmentFailure,
  type FailureClass,
  type SerializedError,
} from "../../contract/errors.ts";
import type { Json, JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { commonPrefix, type Messages, type ToolDefinition, type Usage } from "../../contract/messages.ts";
import type { TokenPrompt } from "../../contract/prompts.ts";
import type { ForkedFrom } from "../../contract/run.ts";
import {
  type AskedCall,
  addUsage,
  type FailedCall,
  type FleetCallNote,
  historyOf,
  type ModelResponse,
  packTurns,
  promptOf,
  type ReportedScores,
  ROLLOUT_SCHEMA,
  type StoredPrompt,
  type ToolFailed,
  type Trajectory,
  type Turn,
} from "../../contract/trajectory.ts";
import { sizeOf, stateSize } from "../size.ts";
import { idsAfter, packTokens } from "./tokens.ts";

/** The input of a rollout; it never changes. */
export interface RolloutTask {
  readonly id: string;
  readonly task_key: string;
  readonly example_id: number;
  readonly task: JsonObject;
  readonly prompt: Messages;
  readonly answer: string;
  readonly info: Json;
}

/** A model call that is not answered yet. */
export interface Intent extends StoredPrompt {
  /** Calls sent so far for this turn. */
  readonly calls: number;
  /** Failures so far that may be retried. */
  readonly failures: number;
  /** Epoch milliseconds before which the next call must not be sent; 0 = at once. */
  readonly not_before: number;
  /** When the last call was sent (epoch milliseconds), if that is kept with its turn. */
  readonly sent_at?: number;
  /** Set once it waited for an endpoint that is down: epoch milliseconds after which it no longer waits. */
  readonly held_until?: number;
  /** The call of an agent. */
  readonly asked?: AskedCall;
  /** Set before the first call of a turn, in a run whose prompts are token ids. */
  readonly token_prompt?: TokenPrompt;
}

export interface Rollout extends RolloutTask {
  readonly schema: typeof ROLLOUT_SCHEMA;
  readonly phase: "setup" | "reply" | "sample" | "close" | "done";
  readonly initial_state: JsonObject;
  /** The environment's own fields after its last hook. */
  readonly state: JsonObject;
  readonly turns: readonly Turn[];
  /**
   * Ids of the last turn (prompt, then completion), because those of a turn that continues it are stored as a suffix.
   * Not needed once done.
   */
  readonly last_ids: readonly number[];
  readonly intent: Intent | null;
  readonly final_env_response: Messages | null;
  readonly stop_condition: string | null;
  readonly prompt_too_long: boolean;
  readonly is_truncated: boolean;
  readonly error: SerializedError | null;
  readonly failure: FailureClass | null;
  readonly cancelled: CancelReason | null;
  readonly cleanup_errors: readonly SerializedError[];
  /** Failed model calls, oldest first: those that were retried, and the one that ended the rollout. */
  readonly failed_calls: readonly FailedCall[];
  readonly started_at: number;
  readonly ended_at: number | null;
  /** Set if the turns up to this one come from another rollout: their calls and usage are not counted here. */
  readonly forked_from?: ForkedFrom;
  /** Usage of replies that could not be used, as far as the endpoint reported it; absent if there were none. */
  readonly unusable_usage?: Usage;
  /** Number of unusable replies without usage; absent if there were none. */
  readonly unmetered?: number;
  /** Size of its turns in UTF-16 units; absent if nothing was counted yet. */
  readonly held?: number;
  /** The largest size of its turns; absent: `LIMITS.rolloutCharacters`. */
  readonly most_characters?: number;
  /** Calls sent for turns of its agent that were refused; absent if there were none. */
  readonly refused_calls?: number;
  /** Scores that its agent reported; absent unless an agent plays it. */
  readonly reported?: ReportedScores;
}

export type Effect =
  /** Run the environment's setup; answer with `set_up` or `failed`. */
  | { readonly kind: "setup" }
  /**
   * Check the stop conditions, then ask the environment for the next prompt; answer with `stopped`, `replied` or
   * `failed`.
   */
  | { readonly kind: "reply" }
  /** Call the model, not before `not_before`; first `sent`, then `answered`, `call_failed` or `failed`. */
  | { readonly kind: "sample"; readonly turn: number; readonly not_before: number }
  /** Run postRollout and the cleanup handlers; answer with `closed`. */
  | { readonly kind: "close" }
  | { readonly kind: "done" };

/** The effects that the environment performs; the model performs `sample`. */
export type HookEffect = Extract<Effect, { kind: "setup" | "reply" | "close" }>;

export type Event =
  | { readonly type: "set_up"; readonly state: JsonObject }
  | {
      readonly type: "stopped";
      readonly condition: string;
      readonly state: JsonObject;
      /** By an agent. */
      readonly reported?: ReportedScores;
      /** By an agent: a limit cut it short. */
      readonly is_truncated?: boolean;
    }
  | {
      readonly type: "replied";
      /** The whole prompt of the next call. */
      readonly prompt: Messages;
      /** What it continues, if that is known; otherwise it is compared with the conversation of the last turn. */
      readonly continues?: Omit<StoredPrompt, "append">;
      readonly state: JsonObject;
      readonly final_env_response: Messages | null;
      readonly tool_failed?: ToolFailed;
      /** The call of an agent. */
      readonly asked?: AskedCall;
    }
  /** It is decided how the prompt of the outstanding call is sent. */
  | { readonly type: "prompt_decided"; readonly token_prompt: TokenPrompt }
  /** The call is sent. `at` (epoch milliseconds): to be kept with its turn. */
  | { readonly type: "sent"; readonly at?: number }
  | {
      readonly type: "answered";
      readonly response: ModelResponse;
      readonly at: number;
      readonly from_cache?: true;
      readonly dispatch_version?: number;
      /** Kept unchanged with the turn. */
      readonly fleet_call?: FleetCallNote;
      readonly platform_ms?: number;
    }
  | {
      readonly type: "call_failed";
      readonly not_before: number;
      /** Details of the failure; kept on the rollout. */
      readonly as?: Omit<FailedCall, "turn" | "call">;
      /** True if the next call does not count towards `max_retries`. */
      readonly free?: boolean;
      /** Usage of an unusable reply; null if the reply has no usage. */
      readonly usage?: Usage | null;
    }
  /** The endpoint is down: the next call waits, and does not count towards `max_retries`. */
  | { readonly type: "held"; readonly not_before: number; readonly until: number }
  /** The outstanding call of an agent is refused, and the agent may make another one. */
  | { readonly type: "refused" }
  | { readonly type: "prompt_too_long" }
  | { readonly type: "timed_out" }
  | { readonly type: "failed"; readonly failure: FailureClass; readonly error: SerializedError }
  | { readonly type: "cancelled"; readonly reason: CancelReason }
  | {
      readonly type: "closed";
      readonly state: JsonObject;
      readonly error: SerializedError | null;
      readonly cleanup_errors: readonly SerializedError[];
      readonly at: number;
    };

export function newRollout(task: RolloutTask, at: number): Rollout {
  return {
    ...task,
    schema: ROLLOUT_SCHEMA,
    phase: "setup",
    initial_state: {},
    state: {},
    turns: [],
    last_ids: [],
    intent: null,
    final_env_response: null,
    stop_condition: null,
    prompt_too_long: false,
    is_truncated: false,
    error: null,
    failure: null,
    cancelled: null,
    cleanup_errors: [],
    failed_calls: [],
    started_at: at,
    ended_at: null,
  };
}

export function nextEffect(rollout: Rollout): Effect {
  switch (rollout.phase) {
    case "setup":
    case "reply":
    case "close":
    case "done":
      return { kind: rollout.phase };
    case "sample":
      return {
        kind: "sample",
        turn: rollout.turns.length,
        not_before: rollout.intent?.not_before ?? 0,
      };
  }
}

/** The state after an event. An event that does not fit the phase (late or repeated) changes nothing. */
export function advance(rollout: Rollout, event: Event): Rollout {
  if (rollout.phase === "done") return rollout;
  switch (event.type) {
    case "set_up":
      if (rollout.phase !== "setup") return rollout;
      return { ...rollout, phase: "reply", initial_state: event.state, state: event.state };
    case "stopped":
      return rollout.phase === "reply" ? stopped(rollout, event) : rollout;
    case "replied":
      return rollout.phase === "reply" ? reply(rollout, event) : rollout;
    case "prompt_decided":
      // A call that may have been sent keeps its prompt.
      return withIntent(rollout, (intent) => ({ token_prompt: event.token_prompt, ...intent }));
    case "sent":
      return withIntent(rollout, (intent) => ({
        ...intent,
        calls: intent.calls + 1,
        ...(event.at !== undefined && { sent_at: event.at }),
      }));
    case "answered":
      return answer(rollout, event);
    case "call_failed":
      return failCall(rollout, event);
    case "held":
      return withIntent(rollout, ({ held_until = event.until, ...intent }) => {
        return { ...intent, held_until, not_before: Math.min(event.not_before, held_until) };
      });
    case "refused":
      return rollout.phase === "sample" ? refused(rollout) : rollout;
    case "prompt_too_long":
      return stopNow({ ...rollout, prompt_too_long: true, is_truncated: true }, "prompt_too_long");
    case "timed_out":
      return stopNow(rollout, "timeout_reached");
    case "failed":
      return rollout.phase === "close"
        ? rollout
        : stop({ ...rollout, error: event.error, failure: event.failure }, "has_error");
    case "cancelled":
      return stopNow({ ...rollout, cancelled: event.reason }, rollout.stop_condition);
    case "closed":
      return rollout.phase === "close" ? close(rollout, event) : rollout;
  }
}

/** All messages after the prompt (verifiers): the last history + final reply, without the part equal to the prompt. */
export function completionOf(rollout: Pick<Rollout, "turns" | "prompt" | "final_env_response">): Messages {
  // Only an agent ends with an answer of the assistant, even if it made no call.
  const final = rollout.final_env_response ?? [];
  if (rollout.turns.length === 0) return final[0]?.role === "assistant" ? final : [];
  const history = [...historyOf(rollout.turns), ...(rollout.final_env_response ?? [])];
  return history.slice(commonPrefix(history, rollout.prompt));
}

/** The prompt of the call that is outstanding, or of the next one. */
export function outstandingPrompt(rollout: Rollout): Messages {
  const { intent, prompt, turns } = rollout;
  return intent === null ? prompt : promptOf(turns, turns.length, intent);
}

/** The trajectory of a done rollout. `tools`: those the model was offered. */
export function trajectoryOf(rollout: Rollout, tools: readonly ToolDefinition[] = []): Trajectory {
  return {
    schema: ROLLOUT_SCHEMA,
    rollout_id: rollout.id,
    task_key: rollout.task_key,
    example_id: rollout.example_id,
    task: rollout.task,
    prompt: rollout.prompt,
    answer: rollout.answer,
    info: rollout.info,
    initial_state: rollout.initial_state,
    turns: packTurns(rollout.initial_state, rollout.turns),
    final_state: rollout.state,
    final_env_response: rollout.final_env_response,
    completion: completionOf(rollout),
    stop_condition: rollout.stop_condition,
    is_truncated: rollout.is_truncated,
    error: rollout.error,
    cleanup_errors: rollout.cleanup_errors,
    failed_calls: rollout.failed_calls,
    cancelled: rollout.cancelled,
    ...(tools.length > 0 && { tools }),
    usage: usageOf(rollout),
    calls: callsOf(rollout),
    started_at: rollout.started_at,
    ended_at: rollout.ended_at ?? rollout.started_at,
    ...(rollout.reported && { reported: rollout.reported }),
    ...(rollout.forked_from && { forked_from: rollout.forked_from }),
  };
}

/** The turns that it made itself, without those inherited by a fork. */
export function ownTurns({ turns, forked_from }: Rollout): readonly Turn[] {
  return forked_from === undefined ? turns : turns.slice(forked_from.turn + 1);
}

/** Usage of its own turns that a model answered, and of replies that could not be used. */
export function usageOf(rollout: Rollout): Usage {
  const { unusable_usage: usage = null } = rollout;
  return addUsage([...ownTurns(rollout).filter(isPaid), { usage }]);
}

/** False if the turn's answer came from the cache. */
export function isPaid({ from_cache }: Pick<Turn, "from_cache">): boolean {
  return from_cache !== true;
}

/** All calls sent, including the outstanding turn's. Beyond one for each turn that is paid for they are repeats. */
export function callsOf(rollout: Rollout): number {
  const answered = ownTurns(rollout).reduce((sum, turn) => sum + turn.calls, 0);
  return answered + (rollout.refused_calls ?? 0) + (rollout.intent?.calls ?? 0);
}

function refused(rollout: Rollout): Rollout {
  const refused_calls = (rollout.refused_calls ?? 0) + (rollout.intent?.calls ?? 0);
  return { ...rollout, phase: "reply", intent: null, ...(refused_calls > 0 && { refused_calls }) };
}

function stopped(rollout: Rollout, event: Extract<Event, { type: "stopped" }>): Rollout {
  const { condition, state, reported, is_truncated = false } = event;
  const cut = rollout.is_truncated || is_truncated;
  return stop({ ...rollout, state, is_truncated: cut, ...(reported && { reported }) }, condition);
}

function reply(rollout: Rollout, event: Extract<Event, { type: "replied" }>): Rollout {
  const { continues = { keep: commonPrefix(historyOf(rollout.turns), event.prompt) } } = event;
  const final = event.final_env_response;
  const append = final ?? event.prompt.slice(continues.keep);
  const held = (rollout.held ?? 0) + sizeOf(append) + stateSize(rollout, event.state);
  if (held > (rollout.most_characters ?? LIMITS.rolloutCharacters)) {
    return stopNow({ ...rollout, state: event.state, is_truncated: true }, "max_size_reached");
  }
  const turns = withFailures(rollout.turns, event.tool_failed);
  const settled = settleState({ ...rollout, turns, state: event.state, final_env_response: final, held });
  // A final reply is passed to the stop conditions (`has_final_env_response`) without another call.
  if (final !== null) return settled;
  const { asked } = event;
  const intent = { ...continues, append, calls: 0, failures: 0, not_before: 0, ...(asked && { asked }) };
  return { ...settled, phase: "sample", intent };
}

/** Records which tool calls of the last turn failed. */
function withFailures(turns: readonly Turn[], tool_failed?: ToolFailed): readonly Turn[] {
  const last = turns.at(-1);
  if (last === undefined || tool_failed === undefined) return turns;
  return [...turns.slice(0, -1), { ...last, tool_failed }];
}

function answer(rollout: Rollout, event: Extract<Event, { type: "answered" }>): Rollout {
  const { response, at } = event;
  const { first_policy_version, finish_word } = response;
  const { intent } = rollout;
  if (rollout.phase !== "sample" || intent === null) return rollout;
  const { after, keep, append } = intent;
  const tokens = packTokens(after === undefined ? rollout.last_ids : idsAfter(rollout.turns, after), response);
  const turn: Turn = {
    index: rollout.turns.length,
    prompt: { ...(after !== undefined && { after }), keep, append },
    completion: response.message,
    finish_reason: response.finish_reason,
    ...(finish_word !== undefined && { finish_word }),
    usage: response.usage,
    tokens,
    is_truncated: response.finish_reason === "length" || response.tokens_cut === true,
    calls: intent.calls,
    latency_ms: response.latency_ms,
    response_id: response.id,
    model: response.model,
    policy_version: response.policy_version,
    ...(first_policy_version !== undefined && { first_policy_version }),
    ...wayOf(event, intent),
    answered_at: at,
    state_after: null,
    ...askedOf(rollout.turns, intent),
  };
  const last_ids = tokens === null ? [] : [...(response.prompt_ids ?? []), ...(response.completion_ids ?? [])];
  const held = (rollout.held ?? 0) + sizeOf({ ...turn, prompt: null });
  const turns = [...rollout.turns, turn];
  return { ...rollout, phase: "reply", turns, last_ids, intent: null, held };
}

/** Where the answer came from, and when. */
function wayOf(
  { from_cache, dispatch_version, fleet_call, platform_ms }: Extract<Event, { type: "answered" }>,
  { sent_at, token_prompt }: Intent,
): Pick<Turn, "from_cache" | "dispatch_version" | "sent_at" | "sent_prompt" | "fleet_call" | "platform_ms"> {
  return {
    ...(from_cache && { from_cache }),
    ...(dispatch_version !== undefined && { dispatch_version }),
    ...(sent_at !== undefined && { sent_at }),
    ...(fleet_call !== undefined && { fleet_call }),
    ...(platform_ms !== undefined && { platform_ms }),
    ...(token_prompt && { sent_prompt: "messages" in token_prompt ? token_prompt.messages : "token_ids" }),
  };
}

/** Tools are kept only if they are not those of the call before. */
function askedOf(turns: readonly Turn[], { asked }: Intent): Pick<Turn, "asked"> {
  if (asked === undefined) return {};
  const { tools = [], ...rest } = asked;
  return { asked: JSON.stringify(lastTools(turns)) === JSON.stringify(tools) ? rest : asked };
}

/** The tools that an agent offered to the model in its last call; empty if there were none. */
export function lastTools(turns: readonly Pick<Turn, "asked">[]): readonly ToolDefinition[] {
  return turns.findLast(({ asked }) => asked?.tools !== undefined)?.asked?.tools ?? [];
}

/** Stops regularly: sets whether any turn was truncated; the environment may still close. */
function stop(rollout: Rollout, condition: string): Rollout {
  const truncated = rollout.is_truncated || rollout.turns.some((turn) => turn.is_truncated);
  return settleState({ ...rollout, phase: "close", stop_condition: condition, is_truncated: truncated });
}

/** Stops from outside the loop (limits, cancelling). A rollout that is already closing is left to close. */
function stopNow(rollout: Rollout, condition: string | null): Rollout {
  if (rollout.phase === "close") return rollout;
  return settleState({ ...rollout, phase: "close", stop_condition: condition });
}

function close(rollout: Rollout, event: Extract<Event, { type: "closed" }>): Rollout {
  const failedNow = rollout.error === null && event.error !== null;
  return settleState({
    ...rollout,
    phase: "done",
    state: event.state,
    error: rollout.error ?? event.error,
    failure: failedNow ? environmentFailure(event.error) : rollout.failure,
    stop_condition: failedNow ? "has_error" : rollout.stop_condition,
    cleanup_errors: event.cleanup_errors,
    ended_at: event.at,
    last_ids: [],
  });
}

/** Writes the environment's state into the last turn, where readers and forks expect it. */
function settleState(rollout: Rollout): Rollout {
  const last = rollout.turns.at(-1);
  if (last === undefined || last.state_after === rollout.state) return rollout;
  return {
    ...rollout,
    turns: [...rollout.turns.slice(0, -1), { ...last, state_after: rollout.state }],
  };
}

function failCall(rollout: Rollout, event: Extract<Event, { type: "call_failed" }>): Rollout {
  const { as, free, not_before, usage } = event;
  const tries = free === true ? 0 : 1;
  const noted = withIntent(rollout, (intent) => ({ ...intent, failures: intent.failures + tries, not_before }));
  const failed = noted === rollout || usage === undefined ? noted : withUnusable(noted, usage);
  if (as === undefined || failed === rollout) return failed;
  const call = { turn: rollout.turns.length, call: failed.intent?.calls ?? 0, ...as };
  const failed_calls = [...rollout.failed_calls, call].slice(-LIMITS.failedCallsListed);
  return { ...failed, failed_calls };
}

function withUnusable(rollout: Rollout, usage: Usage | null): Rollout {
  if (usage === null) return { ...rollout, unmetered: (rollout.unmetered ?? 0) + 1 };
  const before = rollout.unusable_usage ?? null;
  return { ...rollout, unusable_usage: addUsage([{ usage: before }, { usage }]) };
}

function withIntent(rollout: Rollout, change: (intent: Intent) => Intent): Rollout {
  if (rollout.phase !== "sample" || rollout.intent === null) return rollout;
  return { ...rollout, intent: change(rollout.intent) };
}
