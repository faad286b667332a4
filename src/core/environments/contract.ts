/**
 * What an author of an environment sees: the types of hooks, state, tools and capabilities.
 *
 * Invariants. Hooks are options first and overridable methods second; the base method calls the option. State is data
 * (JSON, checked after every hook); handles live on `state.live` and are reopened after a restart. Scoring sees no
 * `live`. Every inferred type flows from `dataset`, `setupState` and `openLive`, in that order.
 */
import type * as z from "zod";
import type { SerializedError } from "../../contract/errors.ts";
import type { Json, JsonObject } from "../../contract/json.ts";
import type { Messages } from "../../contract/messages.ts";
import type { CreditedTurn, TokenUsage, Turn } from "../../contract/trajectory.ts";
import type { Judge } from "../rubrics/judges.ts";
import type { Budgeted } from "../rubrics/work.ts";

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
  /** Whether the prompt grew too long, or a turn was cut at its token limit; settled when the rollout stops. */
  readonly is_truncated: boolean;
  /** Null until it has stopped: `postRollout`, cleanup and scoring know it. */
  readonly stop_condition: string | null;
  /** What failed it; likewise. A rollout that failed is not scored. */
  readonly error: SerializedError | null;
  /** Tokens of all turns, as the endpoint counted them; null where it counted none. */
  readonly usage: TokenUsage | null;
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
  exec(query: string, ...params: readonly (string | number | null)[]): Promise<readonly Record<string, Json>[]>;
}

export interface FetchOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Milliseconds until the call is given up, its reply read or not. Default: no deadline but the hook's own. */
  timeoutMs?: number;
  /**
   * Signs the request by Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature) with a secret that
   * `needs` names. The same `id` for every repeat of a request: its receiver knows it again by that. No "." in it.
   */
  sign?: { readonly secret: string; readonly id: string };
  /**
   * For a reply that may stay open behind what is wanted of it. Called with "" once its status is there, then with
   * each piece of its body. After true the connection is closed, and `text()` gives what came so far.
   */
  until?: (piece: string, head: Pick<FetchReply, "status" | "headers">) => boolean;
}

/** The part of a standard `Response` that needs no stream. */
export interface FetchReply {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** What an environment may use of the outside world; only what its `needs` name is there. */
export interface Capabilities {
  readonly sql: Sql;
  readonly fetch: (url: string, init?: FetchOptions) => Promise<FetchReply>;
  readonly secret: (name: string) => string;
  /** Seeded by the run and the rollout: the same after a restart. In [0, 1). */
  readonly random: () => number;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** `fetch:https://…`: that one address and no other. */
export type Need = "sql" | "fetch" | `fetch:${string}` | `secret:${string}`;

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
  /** It passes its arguments on as JSON: a number that no double keeps comes as a raw one, not as a bigint. */
  readonly takesRawNumbers?: boolean;
  readonly run: (args: never, call: Call) => Awaitable<unknown>;
}

/** What scoring may use of the outside world; only what the environment's `needs` name. */
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
/** Columns of the row, by their names; a field of ours, or a class object, of the same name goes before. */
type Columns<Task> = string extends keyof Task
  ? object
  : { readonly [Name in Exclude<keyof Task, keyof ScoringArgs<unknown, unknown>>]: Task[Name] };
/** What a reward function is called with, but for the class and score objects of its rubric. */
export type RewardArgs<Task, S> = ScoringArgs<Task, S> & Columns<Task>;
/** `Objects`: the class and score objects of the rubric, by name. */
export type Reward<Task, S, Objects = object> = (
  args: RewardArgs<Task, S> & Objects,
) => Awaitable<number | boolean | null>;
/** What a group function gets beside the members. */
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
/** Cleanup and teardown have one form; teardown is given nothing, because it belongs to no rollout. */
export type Cleanup<St> =
  | ((state: St) => Awaitable<void>)
  | { readonly run: (state: St) => Awaitable<void>; readonly priority: number };

/** The arguments a model sent for one tool, decoded. */
export type ToolArgs = { readonly [name: string]: Json };

/** A frozen task row, as a rollout carries it. */
export type TaskRow = JsonObject;

/** What says whose a row is: in a group of environments, `info.env_id` does. */
export interface RoutedRow {
  readonly task: TaskRow;
  readonly info: Json;
}
