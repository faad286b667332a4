/**
 * The base class of environments: a taskset, how prompts are made of its rows, and how rollouts are sampled and scored.
 *
 * Invariants. Options are closed: a misspelt one is an error at construction, and is never ignored silently. The rubric
 * is always a group, because every class of environment adds metrics of its own.
 */

import { EnvError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import { asMessages, type Messages, type ToolDefinition } from "../../contract/messages.ts";
import { Sampling } from "../../contract/sampling.ts";
import { addUsage, historyOf } from "../../contract/trajectory.ts";
import { refuseUnknownOptions } from "../field-path.ts";
import { Parser } from "../parsers/parser.ts";
import { type AnyRubric, asRubric, Rubric, type RubricGroup, type RubricLike } from "../rubrics/rubric.ts";
import type { Route } from "./any-environment.ts";
import type {
  Awaitable,
  Capabilities,
  LiveState,
  Need,
  OwnState,
  RolloutFields,
  RoutedRow,
  State,
} from "./contract.ts";
import type { Dataset } from "./dataset.ts";
import {
  type CleanupHandler,
  type CleanupOptions,
  cleanupHandlers,
  type StopCondition,
  type StopOptions,
  stopConditions,
} from "./stops.ts";

export interface EnvironmentOptions<Task, S> {
  readonly dataset: Dataset<Task>;
  readonly evalDataset?: Dataset<Task>;
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  /** Makes the prompt of a task instead of its `prompt` or `question`; the system prompt still goes before it. */
  readonly prompt?: (task: NoInfer<Task>) => Messages | string;
  readonly parser?: Parser;
  /** Default sampling arguments. The run's are merged over them member by member; a null removes a default. */
  readonly sampling?: Sampling;
  /** Tokens of prompt and completion that a turn keeps; tokens beyond are cut off, and the turn is truncated. */
  readonly maxSeqLen?: number;
  /** False: nothing is scored, every reward is 0. For rollouts that are scored elsewhere. */
  readonly scoreRollouts?: boolean;
  /**
   * The best possible reward, for readers of results: tables and charts show it beside the mean. Rewards are not limited
   * to it; `rollcall env validate` reports one above it. Absent: nothing is said.
   */
  readonly maxReward?: number;
  readonly rubric: RubricLike<NoInfer<Task>, NoInfer<S>>;
}

const ENVIRONMENT_OPTIONS = [
  "dataset",
  "evalDataset",
  "systemPrompt",
  "fewShot",
  "prompt",
  "parser",
  "sampling",
  "maxSeqLen",
  "scoreRollouts",
  "maxReward",
  "rubric",
] as const;

/** The additions of an environment class for all its instances. */
export interface EnvironmentKind {
  readonly options: readonly string[];
  /** Metrics of the class itself, computed after the author's rubrics. */
  readonly monitors: readonly AnyRubric[];
}

export abstract class Environment<Task, S> {
  /** Exists only as a type, for inference. */
  declare readonly types: readonly [Task, S];
  readonly dataset: Dataset<Task>;
  readonly evalDataset: Dataset<Task> | null;
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  readonly parser: Parser;
  readonly sampling: Sampling;
  readonly maxSeqLen: number | null;
  readonly scoreRollouts: boolean;
  readonly maxReward: number | null;
  readonly rubric: RubricGroup;
  /** The capabilities it needs; set by `defineEnvironment`. */
  needs: readonly Need[] = [];
  /** Whether a rollout can be forked; set by `defineEnvironment`. */
  forkable = true;
  readonly #prompt: EnvironmentOptions<Task, S>["prompt"];

  /** Throws TypeError for an unknown option, ZodError for invalid sampling arguments. */
  constructor(options: EnvironmentOptions<Task, S>, kind: EnvironmentKind) {
    refuseUnknownOptions(new.target.name, options, kind.options);
    this.dataset = options.dataset;
    this.evalDataset = options.evalDataset ?? null;
    if (options.systemPrompt !== undefined) this.systemPrompt = options.systemPrompt;
    if (options.fewShot !== undefined) this.fewShot = options.fewShot;
    this.#prompt = options.prompt;
    this.parser = options.parser ?? new Parser();
    this.sampling = Sampling.parse(options.sampling ?? {});
    this.maxSeqLen = options.maxSeqLen ?? null;
    this.scoreRollouts = options.scoreRollouts ?? true;
    this.maxReward = maxRewardOf(options);
    this.rubric = kind.monitors.reduce<RubricGroup>(
      (group, monitor) => group.with(monitor),
      asRubric(options.rubric, this.parser),
    );
  }

  /** The prompt of a task by the environment's own `prompt` option; null if the row determines it. */
  makePrompt(task: Task): Messages | string | null {
    return this.#prompt?.(task) ?? null;
  }
}

function maxRewardOf({ maxReward }: { readonly maxReward?: number }): number | null {
  if (maxReward === undefined || Number.isFinite(maxReward)) return maxReward ?? null;
  throw new RangeError(`maxReward is ${maxReward}: must be a finite number`);
}

// An environment of several turns: hooks, called by a loop outside of it.  Invariants. There is no loop to override:
// the state machine of a rollout decides what happens next, and the code that runs it calls these hooks. Each hook is
// an option first; the method of the same name calls the option, so a subclass may override it. A hook may run again
// after a restart: what it must remember belongs in the state.

/** A hook's state in options: its types come from `setupState` and `openLive`, and are not inferred again. */
type HookArgument<Task, S, Live> = LiveState<NoInfer<Task>, NoInfer<S>, NoInfer<Live>>;

export interface RolloutHooks<Task, S, Live> {
  /** Returns the environment's own fields: JSON, with no name of a library field. */
  readonly setupState?: (state: RolloutFields<NoInfer<Task>>, can: Capabilities) => Awaitable<S>;
  /** Returns handles. Called again after every restart; changes of the state are not kept. */
  readonly openLive?: (state: State<NoInfer<Task>, NoInfer<S>>, can: Capabilities) => Awaitable<Live>;
  /** Closes only the handles: it also runs when a rollout moves to another process. */
  readonly closeLive?: (state: HookArgument<Task, S, Live>) => Awaitable<void>;
  /** Writes what scoring needs into the state; also runs for truncated, timed-out and failed rollouts. */
  readonly postRollout?: (state: HookArgument<Task, S, Live>) => Awaitable<void>;
  readonly stops?: StopOptions<HookArgument<Task, S, Live>>;
  readonly cleanup?: CleanupOptions<HookArgument<Task, S, Live>>;
  /** Run when this instance is retired, to free what it holds for all its rollouts. */
  readonly teardown?: CleanupOptions<void>;
  /** Maximal number of model calls; 0 or less = no limit (the default of MultiTurnEnv). */
  readonly maxTurns?: number;
  /**
   * Maximal number of completion tokens of all turns, as the endpoint counts them: once it is reached, no further call
   * is made. 0 or less = no limit, the default. Without counts of the endpoint there is no limit.
   */
  readonly maxTotalCompletionTokens?: number;
  readonly timeoutMs?: number;
}

export interface MultiTurnOptions<Task, S, Live> extends EnvironmentOptions<Task, S>, RolloutHooks<Task, S, Live> {
  /** Returns the environment's reply to the last completion; `messages` is the whole history. */
  readonly envResponse?: (messages: Messages, state: HookArgument<Task, S, Live>) => Awaitable<Messages | string>;
}

export const HOOK_OPTIONS = [
  ...ENVIRONMENT_OPTIONS,
  "setupState",
  "openLive",
  "closeLive",
  "postRollout",
  "stops",
  "cleanup",
  "teardown",
  "maxTurns",
  "maxTotalCompletionTokens",
  "timeoutMs",
] as const;

/** The additions of a library subclass: further options and metrics, another default. */
export interface MultiTurnKind extends EnvironmentKind {
  readonly maxTurns: number;
}

const MULTI_TURN: MultiTurnKind = {
  options: [...HOOK_OPTIONS, "envResponse"],
  monitors: [],
  maxTurns: -1,
};

export class MultiTurnEnv<Task, S extends OwnState<S> = object, Live = undefined> extends Environment<Task, S> {
  readonly maxTurns: number;
  readonly maxTotalCompletionTokens: number;
  readonly timeoutMs: number | null;
  readonly stopConditions: readonly StopCondition<LiveState<Task, S, Live>>[];
  readonly cleanupHandlers: readonly CleanupHandler<LiveState<Task, S, Live>>[];
  readonly teardownHandlers: readonly CleanupHandler<void>[];
  readonly #hooks: MultiTurnOptions<Task, S, Live>;

  /** Throws TypeError naming an unknown option. `kind` is for subclasses with options of their own. */
  constructor(options: MultiTurnOptions<Task, S, Live>, kind: MultiTurnKind = MULTI_TURN) {
    const turns = new Rubric({ metrics: { num_turns: countTurns } });
    super(options, { options: kind.options, monitors: [turns, ...kind.monitors] });
    this.#hooks = options;
    this.maxTurns = options.maxTurns ?? kind.maxTurns;
    this.maxTotalCompletionTokens = options.maxTotalCompletionTokens ?? -1;
    this.timeoutMs = options.timeoutMs ?? null;
    const { stops = {}, cleanup = {}, teardown = {} } = options;
    this.stopConditions = stopConditions(this.stopEntries(), stops);
    this.cleanupHandlers = cleanupHandlers(this.cleanupEntries(), cleanup);
    this.teardownHandlers = cleanupHandlers(this.teardownEntries(), teardown, "teardown");
  }

  /** The environment itself plays all its rows. */
  get players(): readonly this[] {
    return [this];
  }

  get members(): readonly string[] {
    return [];
  }

  route(row: RoutedRow): Route {
    return { environment: this, member: null, ...row };
  }

  get toolDefinitions(): readonly ToolDefinition[] {
    return [];
  }

  toolDefinitionsOf(_state: JsonObject): readonly ToolDefinition[] {
    return this.toolDefinitions;
  }

  /**
   * The stop conditions of the class. A subclass overrides this, spreads `super.stopEntries()` and adds its own; `null`
   * removes one. Called once, in the constructor: a condition must read fields of `this` only when it is called.
   */
  protected stopEntries(): StopOptions<LiveState<Task, S, Live>> {
    return {
      has_final_env_response: ({ final_env_response }) => final_env_response !== null,
      max_total_completion_tokens_reached: ({ trajectory }) => this.#isSpent(trajectory),
      max_turns_reached: ({ turn }) => this.maxTurns > 0 && turn >= this.maxTurns,
    };
  }

  /** The cleanup handlers of the class, overridden in the same way. */
  protected cleanupEntries(): CleanupOptions<LiveState<Task, S, Live>> {
    return {};
  }

  /** The teardown handlers of the class, overridden in the same way. */
  protected teardownEntries(): CleanupOptions<void> {
    return {};
  }

  setupState(state: RolloutFields<Task>, can: Capabilities): Awaitable<S> {
    // Without the hook there are no fields, and S is its default.
    return this.#hooks.setupState?.(state, can) ?? ({} as S);
  }

  openLive(state: State<Task, S>, can: Capabilities): Awaitable<Live> {
    return this.#hooks.openLive?.(state, can) ?? (undefined as Live);
  }

  closeLive(state: LiveState<Task, S, Live>): Awaitable<void> {
    return this.#hooks.closeLive?.(state);
  }

  postRollout(state: LiveState<Task, S, Live>): Awaitable<void> {
    return this.#hooks.postRollout?.(state);
  }

  envResponse(messages: Messages, state: LiveState<Task, S, Live>): Awaitable<Messages | string> {
    if (this.#hooks.envResponse === undefined) {
      throw new EnvError(`${this.constructor.name} has no envResponse: pass the option or override the method`);
    }
    return this.#hooks.envResponse(messages, state);
  }

  /** The whole prompt of the next call: the task's prompt, all messages since, then the environment's reply. */
  async getPromptMessages(state: LiveState<Task, S, Live>): Promise<Messages | string> {
    if (state.turn === 0) return state.prompt;
    const history = historyOf(state.trajectory);
    return [...history, ...asMessages(await this.envResponse(history, state))];
  }

  #isSpent(trajectory: RolloutFields<Task>["trajectory"]): boolean {
    const budget = this.maxTotalCompletionTokens;
    return budget > 0 && addUsage(trajectory).completion_tokens >= budget;
  }
}

function countTurns({ state }: { readonly state: { readonly turn: number } }): number {
  return state.turn;
}

/** One question, one answer: the environment never replies. */
export class SingleTurnEnv<Task> extends MultiTurnEnv<Task> {
  constructor(options: EnvironmentOptions<Task, object>) {
    super(options, { options: ENVIRONMENT_OPTIONS, monitors: [], maxTurns: 1 });
  }

  override envResponse(): Messages {
    throw new EnvError("a SingleTurnEnv has no reply");
  }
}
