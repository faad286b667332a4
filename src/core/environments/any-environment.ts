/** The interface of an environment for the code that runs it: hooks and limits, without the types of its author. */

import { asEnvError, type SerializedError, serializeError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { MemberRows } from "../../contract/member-rows.ts";
import type { Messages, ToolDefinition } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";
import type { Parser } from "../parsers/parser.ts";
import type { RubricGroup } from "../rubrics/rubric.ts";
import type { Awaitable, Capabilities, LiveState, Need, RolloutFields, RoutedRow } from "./contract.ts";
import type { Dataset } from "./dataset.ts";
import type { HookState } from "./hook-state.ts";
import { type CleanupHandler, inOrder, type StopCondition } from "./stops.ts";

/** The environment of a run: a single one, or several with one dataset (`EnvGroup`). */
export interface AnyEnvironment {
  readonly types: readonly [unknown, unknown];
  readonly dataset: Dataset<unknown>;
  readonly evalDataset: Dataset<unknown> | null;
  readonly rubric: RubricGroup;
  /** The best possible reward of every row; null if it is not declared. */
  readonly maxReward: number | null;
  /** Set by `defineEnvironment`. */
  needs: readonly Need[];
  forkable: boolean;
  /** The environments that play rollouts: itself, or the members of a group, including those of nested groups. */
  readonly players: readonly PlayedEnvironment[];
  /** Names of the playing members of a group, as reports and training series use them; empty for other environments. */
  readonly members: readonly string[];
  /** In a group: the rows of each of `members` in its dataset; null if they come with the run. */
  memberRows?(): readonly MemberRows[] | null;
  /** The environment that plays a row, and the row as it sees it. Throws RangeError if there is none. */
  route(row: RoutedRow): Route;
}

export interface Route extends RoutedRow {
  readonly environment: PlayedEnvironment;
  /** Its name in `members`; null if it is not in a group. */
  readonly member: string | null;
}

// Methods, not function properties: their parameters are compared bivariantly, so that an environment with its own task
// and state types is assignable. The harness gives every hook a state made from the rollout that its environment set
// up.
export interface PlayedEnvironment extends AnyEnvironment {
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  readonly parser: Parser;
  /** Defaults, over which the run's own arguments are merged. */
  readonly sampling: Sampling;
  readonly scoreRollouts: boolean;
  readonly maxTurns: number;
  readonly maxSeqLen: number | null;
  readonly timeoutMs: number | null;
  readonly stopConditions: readonly StopCondition<HookState>[];
  readonly cleanupHandlers: readonly CleanupHandler<HookState>[];
  readonly teardownHandlers: readonly CleanupHandler<void>[];
  readonly toolDefinitions: readonly ToolDefinition[];
  /** The tools of one rollout, by its stored state: `toolDefinitions`, unless tools are found during set-up. */
  toolDefinitionsOf(state: JsonObject): readonly ToolDefinition[];
  makePrompt(task: unknown): Messages | string | null;
  setupState(state: RolloutFields<unknown>, can: Capabilities): Awaitable<object>;
  openLive(state: RolloutFields<unknown>, can: Capabilities): Awaitable<unknown>;
  closeLive(state: LiveState<unknown, object, unknown>): Awaitable<void>;
  getPromptMessages(state: LiveState<unknown, object, unknown>): Awaitable<Messages | string>;
  postRollout(state: LiveState<unknown, object, unknown>): Awaitable<void>;
}

/**
 * Retires an instance: runs all teardown handlers, including its rubrics', even if some fail. Returns the errors. The
 * instance must not be used afterwards.
 */
export async function tearDown(environment: AnyEnvironment): Promise<SerializedError[]> {
  const faults: SerializedError[] = [];
  for (const { name, run } of environment.players.flatMap(handlersOf)) {
    try {
      await run();
    } catch (thrown) {
      faults.push(serializeError(asEnvError(thrown, `teardown ${name}`)));
    }
  }
  return faults;
}

/** Whether the environment has teardown handlers. */
export function holdsSomething({ players }: AnyEnvironment): boolean {
  return players.some((player) => handlersOf(player).length > 0);
}

function handlersOf({ teardownHandlers, rubric }: PlayedEnvironment): CleanupHandler<void>[] {
  return [...teardownHandlers, ...rubric.teardownHandlers].sort(inOrder);
}
