/**
 * The types that an author of an environment uses: hooks, state, tools and capabilities.
 *
 * Invariants. Hooks are options first and overridable methods second; the base method calls the option. State is data
 * (JSON, checked after every hook); handles are on `state.live` and are reopened after a restart. Scoring gets no
 * `live`. All types are inferred from `dataset`, `setupState` and `openLive`, in that order.
 */
import type * as z from "zod";
import type { SerializedError } from "../../contract/errors.ts";
import type { Json, JsonObject } from "../../contract/json.ts";
import type { Messages } from "../../contract/messages.ts";
import type { CreditedTurn, TokenUsage, Turn } from "../../contract/trajectory.ts";
import type { Judge } from "../rubrics/judges.ts";
import type { Budgeted } from "../rubrics/work.ts";

export type Awaitable<T> = T | Promise<T>;

/** The library's fields of a rollout's state; the environment's own are on the same object. */
export interface RolloutFields<Task> {
  readonly prompt: Messages;
  /** All messages after the prompt so far. */
  readonly completion: Messages;
  readonly task: Task;
  readonly answer: string;
  readonly info: Json;
  readonly trajectory: readonly Turn[];
  /** Turns answered so far. */
  readonly turn: number;
  /** Whether the prompt grew too long, or a turn was cut at its token limit; set when the rollout stops. */
  readonly is_truncated: boolean;
  /** Null until it has stopped: it is set in `postRollout`, cleanup and scoring. */
  readonly stop_condition: string | null;
  /** The error of a failed rollout, set at the same time. A failed rollout is not scored. */
  readonly error: SerializedError | null;
  /** Tokens of all turns, as the endpoint counted them; null if it counted none. */
  readonly usage: TokenUsage | null;
  /** Set it in `envResponse` to end the rollout with a last reply and no further call. */
  final_env_response: Messages | string | null;
}

/** The environment's own fields: JSON, with no name of a library field. */
export type OwnState<S> = {
  readonly [K in keyof S]: K extends keyof RolloutFields<unknown> | "live" ? never : Json;
};
export type State<Task, S = object> = RolloutFields<Task> & S;
export type LiveState<Task, S = object, Live = undefined> = State<Task, S> & {
  readonly live: Live;
};

/** SQL on a database of the rollout's own, separate from the platform's. */
export interface Sql {
  exec(query: string, ...params: readonly (string | number | null)[]): Promise<readonly Record<string, Json>[]>;
}

export interface FetchOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Milliseconds until the call is aborted, even while its reply is read. Default: only the hook's own deadline. */
  timeoutMs?: number;
  /**
   * Signs the request by Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature) with a secret in `needs`.
   * Use the same `id` when the request is repeated: the receiver detects repeats by it. It must not contain ".".
   */
  sign?: { readonly secret: string; readonly id: string };
  /**
   * For a reply that may stay open after the wanted part. Called with "" when the status is there, then with each piece
   * of the body. After it returns true the connection is closed, and `text()` returns what came so far.
   */
  until?: (piece: string, head: Pick<FetchReply, "status" | "headers">) => boolean;
}

/** The part of a standard `Response` that needs no stream. */
export interface FetchReply {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** The capabilities of an environment; only those in its `needs` are available. */
export interface Capabilities {
  readonly sql: Sql;
  readonly fetch: (url: string, init?: FetchOptions) => Promise<FetchReply>;
  readonly secret: (name: string) => string;
  /** Seeded by the run and the rollout: the same after a restart. In [0, 1). */
  readonly random: () => number;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** `fetch:https://…`: only that address. */
export type Need = "sql" | "fetch" | `fetch:${string}` | `secret:${string}`;

/** The tool call that a tool answers. */
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
  /** Names of arguments that the model neither sees nor sets. */
  readonly hidden: readonly string[];
  /** False: after a kill between its run and the commit, the rollout fails instead of running the tool twice. */
  readonly idempotent: boolean;
  /** The tool passes its arguments on as JSON: a number that a double cannot hold is raw instead of a bigint. */
  readonly takesRawNumbers?: boolean;
  readonly run: (args: never, call: Call) => Awaitable<unknown>;
}

/** The capabilities of scoring; only those in the environment's `needs` are available. */
export type ScoringCapabilities = Pick<Capabilities, "fetch" | "secret" | "now">;

export interface ScoringArgs<Task, S> extends Budgeted {
  readonly prompt: Messages;
  readonly completion: Messages;
  readonly answer: string;
  readonly info: Json;
  readonly task: Task;
  readonly state: Readonly<State<Task, S>> & { readonly trajectory: readonly CreditedTurn[] };
  readonly parser: { parseAnswer(completion: Messages | string): string | null };
  readonly rollout_id: string;
  readonly can: ScoringCapabilities;
  /** Asks one of the run's judges. */
  readonly judge: Judge;
}
/** Columns of the row by name. A library field or a class object of the same name has precedence. */
type Columns<Task> = string extends keyof Task
  ? object
  : { readonly [Name in Exclude<keyof Task, keyof ScoringArgs<unknown, unknown>>]: Task[Name] };
/** The arguments of a reward function, without the class and score objects of its rubric. */
export type RewardArgs<Task, S> = ScoringArgs<Task, S> & Columns<Task>;
/** `Objects`: the class and score objects of the rubric, by name. */
export type Reward<Task, S, Objects = object> = (
  args: RewardArgs<Task, S> & Objects,
) => Awaitable<number | boolean | null>;
/** The arguments of a group function in addition to the members. */
export interface GroupArgs {
  readonly parser: ScoringArgs<unknown, unknown>["parser"];
  readonly can: ScoringCapabilities;
  readonly judge: Judge;
}
export type GroupReward<Task, S, Objects = object> = (
  group: readonly (RewardArgs<Task, S> & Objects)[],
  shared: GroupArgs & Objects,
) => Awaitable<readonly (number | boolean | null)[]>;
export type Weighted<F> = F | { readonly fn: F; readonly weight: number };

export type Stop<St> =
  | ((state: St) => Awaitable<boolean>)
  | { readonly when: (state: St) => Awaitable<boolean>; readonly priority: number };
/** Cleanup and teardown have one form; teardown gets no argument, because it belongs to no rollout. */
export type Cleanup<St> =
  | ((state: St) => Awaitable<void>)
  | { readonly run: (state: St) => Awaitable<void>; readonly priority: number };

/** The arguments a model sent for one tool, decoded. */
export type ToolArgs = { readonly [name: string]: Json };

/** A frozen task row of a rollout. */
export type TaskRow = JsonObject;

/** The parts of a row that select its environment: in a group of environments, `info.env_id`. */
export interface RoutedRow {
  readonly task: TaskRow;
  readonly info: Json;
}
