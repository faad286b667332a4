/**
 * The state a hook is handed, made afresh from the rollout for every effect, and what is stored of it afterwards.
 *
 * Invariants. Our fields are getters, so a hook that assigns one fails loudly; `final_env_response` alone is theirs to
 * set. Everything else on the object is the environment's own, must be JSON and is copied on the way in and out, so
 * nothing a hook keeps hold of can change what was stored.
 */
import { EnvError } from "../../contract/errors.ts";
import { cloneJson, findNonJson, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Messages } from "../../contract/messages.ts";
import { tokenUsage } from "../../contract/trajectory.ts";
import { completionOf, type Rollout } from "../rollout/rollout.ts";
import { exceedsUtf8, utf8Bytes } from "../size.ts";
import type { Awaitable, LiveState, RoutedRow } from "./contract.ts";

/** A state whose task, own fields and handles nobody here needs to know. */
export type HookState = LiveState<unknown, object, unknown>;

/** What hooks may need of the attempt around them, and must not store. */
export interface HookContext {
  readonly rolloutId: string;
  readonly signal: { readonly aborted: boolean };
  readonly limit: StageLimit;
  /** Told of a tool that must not run twice, right before it runs. */
  readonly unrepeatable: (tool: string) => void;
  /** Told of every tool call that is answered; `key`: which of the turn's it is (tool-call.ts). */
  readonly toolAnswered: (key: string, failed: boolean) => void;
  /** What hooks see as task and info, where that is not as the rollout carries them. */
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

// Beside the states and not on them: a context is no data, and hooks should not meet it.
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

/** Adds the fields `setupState` returned. Throws EnvError when they are no fields, or one takes a name of ours. */
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

/** The environment's own fields, as they are stored. Throws EnvError when they are not JSON, or too large. */
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
 * The parts of a rollout that run environment code. `setup`: setupState, and openLive whenever handles are opened.
 * `turn`: the stop conditions and the environment's reply. `tool`: one tool call of it. `cleanup`: postRollout, each
 * cleanup handler and closeLive, and handles opened for them.
 */
export type Stage = "setup" | "turn" | "tool" | "cleanup";

/**
 * What `work` gives, or a rejection with StageTimeoutError once the stage's time is over. `what` names the code in the
 * error. The work itself goes on: nothing can stop it.
 */
export type StageLimit = <T>(stage: Stage, what: string, work: Awaitable<T>) => Promise<T>;

/** Core has no timers: without a limit from whoever runs a rollout, as in an author's tests, nothing is cut short. */
export const unlimited: StageLimit = async (_stage, _what, work) => await work;
