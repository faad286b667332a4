/**
 * An environment of several turns: hooks around a loop that is not its own.
 *
 * Invariants. There is no loop to override: the state machine of a rollout decides what happens next, and whoever runs
 * it calls these hooks. Each hook is an option first; the method of the same name calls the option, so a subclass may
 * override it. A hook may run again after a restart: what it must remember stands in the state it returns or writes.
 */
import { EnvError } from "../errors.ts";
import { asMessages, type Messages, type ToolDefinition } from "../messages.ts";
import { historyOf } from "../trajectory.ts";
import type {
  Awaitable,
  Capabilities,
  LiveState,
  OwnState,
  RolloutFields,
  State,
} from "./contract.ts";
import {
  ENVIRONMENT_OPTIONS,
  Environment,
  type EnvironmentKind,
  type EnvironmentOptions,
} from "./environment.ts";
import {
  type CleanupHandler,
  type CleanupOptions,
  cleanupHandlers,
  type StopCondition,
  type StopOptions,
  stopConditions,
} from "./stops.ts";

/** A hook's state as options see it: what `setupState` and `openLive` gave is known, not inferred again. */
type HookArgument<Task, S, Live> = LiveState<NoInfer<Task>, NoInfer<S>, NoInfer<Live>>;

export interface RolloutHooks<Task, S, Live> {
  /** Returns the environment's own fields: JSON, and no name of ours. */
  readonly setupState?: (state: RolloutFields<NoInfer<Task>>, can: Capabilities) => Awaitable<S>;
  /** Returns handles. Called again after every restart; what it writes on the state is not kept. */
  readonly openLive?: (
    state: State<NoInfer<Task>, NoInfer<S>>,
    can: Capabilities,
  ) => Awaitable<Live>;
  /** Closes the handles, and only those: it also runs when a rollout merely moves to another process. */
  readonly closeLive?: (state: HookArgument<Task, S, Live>) => Awaitable<void>;
  /** Puts what scoring needs into the state; runs for truncated, timed-out and failed rollouts too. */
  readonly postRollout?: (state: HookArgument<Task, S, Live>) => Awaitable<void>;
  readonly stops?: StopOptions<HookArgument<Task, S, Live>>;
  readonly cleanup?: CleanupOptions<HookArgument<Task, S, Live>>;
  /** Model calls at most; 0 or less = no limit (the default of MultiTurnEnv). */
  readonly maxTurns?: number;
  readonly timeoutMs?: number;
}

export interface MultiTurnOptions<Task, S, Live>
  extends EnvironmentOptions<Task, S>,
    RolloutHooks<Task, S, Live> {
  /** What the environment says to the last completion; `messages` is the whole history. */
  readonly envResponse?: (
    messages: Messages,
    state: HookArgument<Task, S, Live>,
  ) => Awaitable<Messages | string>;
}

export const HOOK_OPTIONS = [
  ...ENVIRONMENT_OPTIONS,
  "setupState",
  "openLive",
  "closeLive",
  "postRollout",
  "stops",
  "cleanup",
  "maxTurns",
  "timeoutMs",
] as const;

/** What a subclass of the library adds: further options, metrics and stop conditions, another default. */
export interface MultiTurnKind<St> extends EnvironmentKind {
  readonly stops: readonly StopCondition<St>[];
  readonly maxTurns: number;
}

const MULTI_TURN: MultiTurnKind<object> = {
  options: [...HOOK_OPTIONS, "envResponse"],
  monitors: [],
  stops: [],
  maxTurns: -1,
};

export class MultiTurnEnv<
  Task,
  S extends OwnState<S> = object,
  Live = undefined,
> extends Environment<Task, S> {
  readonly maxTurns: number;
  readonly timeoutMs: number | null;
  readonly stopConditions: readonly StopCondition<LiveState<Task, S, Live>>[];
  readonly cleanupHandlers: readonly CleanupHandler<LiveState<Task, S, Live>>[];
  readonly toolDefinitions: readonly ToolDefinition[] = [];
  readonly #hooks: MultiTurnOptions<Task, S, Live>;

  /** Throws TypeError naming an unknown option. `kind` is for subclasses that bring options of their own. */
  constructor(
    options: MultiTurnOptions<Task, S, Live>,
    kind: MultiTurnKind<LiveState<Task, S, Live>> = MULTI_TURN,
  ) {
    const turns = { metrics: { num_turns: countTurns } };
    super(options, { options: kind.options, monitors: [turns, ...kind.monitors] });
    this.#hooks = options;
    this.maxTurns = options.maxTurns ?? kind.maxTurns;
    this.timeoutMs = options.timeoutMs ?? null;
    this.stopConditions = stopConditions(
      [...this.#builtInStops(), ...kind.stops],
      options.stops ?? {},
    );
    this.cleanupHandlers = cleanupHandlers(options.cleanup ?? {});
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
      throw new EnvError(
        `${this.constructor.name} has no envResponse: give the option or override it`,
      );
    }
    return this.#hooks.envResponse(messages, state);
  }

  /** The whole prompt of the next call: the task's, then everything said, then the environment's reply. */
  async getPromptMessages(state: LiveState<Task, S, Live>): Promise<Messages | string> {
    if (state.turn === 0) return state.prompt;
    const history = historyOf(state.trajectory);
    return [...history, ...asMessages(await this.envResponse(history, state))];
  }

  #builtInStops(): StopCondition<RolloutFields<Task>>[] {
    return [
      {
        name: "has_final_env_response",
        priority: 0,
        when: (state) => state.final_env_response !== null,
      },
      {
        name: "max_turns_reached",
        priority: 0,
        when: (state) => this.maxTurns > 0 && state.turn >= this.maxTurns,
      },
    ];
  }
}

function countTurns({ state }: { readonly state: { readonly turn: number } }): number {
  return state.turn;
}
