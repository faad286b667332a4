/**
 * What an author of an environment sees: the types of hooks, state, tools and capabilities.
 *
 * Invariants. Hooks are options first and overridable methods second; the base method calls the option. State is data
 * (JSON, checked after every hook); handles live on `state.live` and are reopened after a restart. Scoring sees no
 * `live`. Every inferred type flows from `dataset`, `setupState` and `openLive`, in that order.
 */
import type * as z from "zod";
import type { Json, JsonObject } from "../json.ts";
import type { Messages } from "../messages.ts";
import type { Turn } from "../trajectory.ts";

export type Awaitable<T> = T | Promise<T>;

/** The fields of a rollout's state that are ours; the environment's own stand beside them. */
export interface RolloutFields<Task> {
  readonly prompt: Messages;
  /** Everything said after the prompt, so far. */
  readonly completion: Messages;
  readonly task: Task;
  readonly answer: string;
  readonly info: Json;
  readonly trajectory: readonly Turn[];
  /** Turns answered so far. */
  readonly turn: number;
  /** Set it in `envResponse` to end the rollout with a last reply and no further call. */
  final_env_response: Messages | string | null;
}

/** The environment's own fields: JSON, and no name of ours. */
export type OwnState<S> = {
  readonly [K in keyof S]: K extends keyof RolloutFields<unknown> | "live" ? never : Json;
};
export type State<Task, S = object> = RolloutFields<Task> & S;
export type LiveState<Task, S = object, Live = undefined> = State<Task, S> & {
  readonly live: Live;
};

/** SQL on a store of the rollout's own, apart from the platform's. */
export interface Sql {
  exec(
    query: string,
    ...params: readonly (string | number | null)[]
  ): Promise<readonly Record<string, Json>[]>;
}

/** What an environment may use of the outside world; only what its `needs` name is there. */
export interface Capabilities {
  readonly sql: Sql;
  readonly fetch: (
    url: string,
    init?: { method?: string; headers?: Record<string, string>; body?: string },
  ) => Promise<{ readonly status: number; text(): Promise<string> }>;
  readonly secret: (name: string) => string;
  /** Seeded by the run and the rollout: the same after a restart. In [0, 1). */
  readonly random: () => number;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

export type Need = "sql" | "fetch" | `secret:${string}`;

/** What a tool knows of the call it answers. */
export interface Call {
  readonly id: string;
  /** `rollout:turn:tool_call`; the same after a restart. */
  readonly idempotencyKey: string;
  readonly signal: { readonly aborted: boolean };
}

export interface Injected<T> {
  readonly __inject: T;
}

export interface AnyTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: z.ZodObject;
  /** Names of arguments the model neither sees nor sets. */
  readonly hidden: readonly string[];
  /** False: after a kill between its run and the commit the rollout fails rather than run it twice. */
  readonly idempotent: boolean;
  readonly run: (args: never, call: Call) => Awaitable<unknown>;
}

export interface ScoringArgs<Task, S> {
  readonly prompt: Messages;
  readonly completion: Messages;
  readonly answer: string;
  readonly info: Json;
  readonly task: Task;
  readonly state: Readonly<State<Task, S>>;
  readonly parser: { parseAnswer(completion: Messages | string): string | null };
}
export type Reward<Task, S> = (args: ScoringArgs<Task, S>) => Awaitable<number | boolean | null>;
export type GroupReward<Task, S> = (
  group: readonly ScoringArgs<Task, S>[],
) => Awaitable<readonly (number | null)[]>;
export type Weighted<F> = F | { readonly fn: F; readonly weight: number };

export type Stop<St> =
  | ((state: St) => Awaitable<boolean>)
  | { readonly when: (state: St) => Awaitable<boolean>; readonly priority: number };
export type Cleanup<St> =
  | ((state: St) => Awaitable<void>)
  | { readonly run: (state: St) => Awaitable<void>; readonly priority: number };

/** The arguments a model sent for one tool, decoded. */
export type ToolArgs = { readonly [name: string]: Json };

/** A frozen task row, as a rollout carries it. */
export type TaskRow = JsonObject;
