/**
 * Makes the state that a hook gets, from the rollout and newly for every effect, and reads from it what is stored.
 *
 * Invariants. Library fields are getters, so a hook that assigns one gets an error; it may only set
 * `final_env_response`. All other fields are the environment's own, must be JSON and are copied on the way in and out,
 * so that a reference that a hook keeps cannot change what was stored.
 */
import { EnvError } from "../../contract/errors.ts";
import { cloneJson, findNonJson, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Messages } from "../../contract/messages.ts";
import { tokenUsage } from "../../contract/trajectory.ts";
import { completionOf, type Rollout } from "../rollout/rollout.ts";
import { exceedsUtf8, utf8Bytes } from "../size.ts";
import type { Awaitable, LiveState, RoutedRow } from "./contract.ts";

/** A state of unknown task, own fields and handles. */
export type HookState = LiveState<unknown, object, unknown>;

/** Data about the attempt that hooks use and must not store. */
export interface HookContext {
  readonly rolloutId: string;
  readonly signal: { readonly aborted: boolean };
  readonly limit: StageLimit;
  /** Called right before a tool runs that must not run twice. */
  readonly unrepeatable: (tool: string) => Awaitable<void>;
  /** Called for every answered tool call; `key` identifies the call within the turn (tool-call.ts). */
  readonly toolAnswered: (key: string, failed: boolean) => void;
  /** The task and info that hooks see, if they differ from the rollout's. */
  readonly row?: RoutedRow;
}

const RESERVED: ReadonlySet<string> = new Set([
  "prompt",
  "completion",
  "task",
  "answer",
  "info",
  "trajectory",
  "turn",
  "is_truncated",
  "stop_condition",
  "error",
  "usage",
  "final_env_response",
  "live",
]);

// Kept outside of the states: a context is not data, and hooks should not see it.
const contexts = new WeakMap<object, HookContext>();

export function openState(rollout: Rollout, live: unknown, context: HookContext): HookState {
  const { task, info } = context.row ?? rollout;
  let completion: Messages | undefined;
  const state: HookState = {
    ...cloneJson(rollout.state),
    get prompt() {
      return rollout.prompt;
    },
    get completion() {
      completion ??= completionOf(rollout);
      return completion;
    },
    get task() {
      return task;
    },
    get answer() {
      return rollout.answer;
    },
    get info() {
      return info;
    },
    get trajectory() {
      return rollout.turns;
    },
    get turn() {
      return rollout.turns.length;
    },
    get is_truncated() {
      return rollout.is_truncated;
    },
    get stop_condition() {
      return rollout.stop_condition;
    },
    get error() {
      return rollout.error;
    },
    get usage() {
      return tokenUsage(rollout.turns);
    },
    get live() {
      return live;
    },
    final_env_response: rollout.final_env_response,
  };
  contexts.set(state, context);
  return state;
}

/** The context of a state that `openState` made. Throws EnvError for any other object, a copy included. */
export function contextOf(state: object): HookContext {
  const context = contexts.get(state);
  if (context === undefined) throw new EnvError("return the state itself, not a copy");
  return context;
}

/**
 * Adds the fields returned by `setupState`. Throws EnvError if they are not an object, or one has a library field's
 * name.
 */
export function addOwn(state: HookState, fields: unknown): void {
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    throw new EnvError("setupState must return an object of fields");
  }
  const taken = Object.keys(fields).find((key) => RESERVED.has(key));
  if (taken !== undefined) {
    throw new EnvError(`state.${taken} is a field of the rollout; setupState must not return it`);
  }
  Object.assign(state, fields);
}

/** The environment's own fields, for storage. Throws EnvError if they are not JSON, or too large. */
export function ownState(state: HookState): JsonObject {
  const members = Object.entries(Object.getOwnPropertyDescriptors(state))
    .filter(([key]) => !RESERVED.has(key))
    .map(([key, property]): [string, unknown] => [key, property.value]);
  for (const [key, value] of members) requireStorable(key, value);
  const text = JSON.stringify(Object.fromEntries(members));
  if (exceedsUtf8(text, LIMITS.stateBytes)) {
    const size = utf8Bytes(text);
    throw new EnvError(`the state is ${size} bytes as JSON; the maximum is ${LIMITS.stateBytes}`);
  }
  return JSON.parse(text) as JsonObject;
}

function requireStorable(key: string, value: unknown): void {
  if (value === undefined) return;
  const bad = findNonJson(value, `state.${key}`);
  if (bad === null) return;
  const advice = /^(NaN|-?Infinity)$/.test(bad.found) ? "" : "; return it from openLive";
  throw new EnvError(`state.${key} cannot be stored${advice} (${bad.path} is ${bad.found})`);
}

/**
 * The stages of a rollout that run environment code. `setup`: setupState, and openLive whenever handles are opened.
 * `turn`: the stop conditions and the environment's reply. `tool`: one tool call. `cleanup`: postRollout, each cleanup
 * handler and closeLive, and opening handles for them.
 */
export type Stage = "setup" | "turn" | "tool" | "cleanup";

/**
 * Returns the result of `work`, or rejects with StageTimeoutError when the stage's time is over. `what` names the code
 * in the error. The work itself continues: nothing can stop it.
 */
export type StageLimit = <T>(stage: Stage, what: string, work: Awaitable<T>) => Promise<T>;

/** Core has no timers: unless the caller sets a limit, as in an author's tests, there is none. */
export const unlimited: StageLimit = async (_stage, _what, work) => await work;
