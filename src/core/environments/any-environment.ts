/** An environment as whoever runs it sees it: hooks and limits, without the types only its author knows. */

import { asEnvError, type SerializedError, serializeError } from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { Messages, ToolDefinition } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";
import type { Parser } from "../parsers/parser.ts";
import type { RubricGroup } from "../rubrics/rubric.ts";
import type { Awaitable, Capabilities, LiveState, Need, RolloutFields, RoutedRow } from "./contract.ts";
import type { Dataset } from "./dataset.ts";
import type { HookState } from "./hook-state.ts";
import { type CleanupHandler, inOrder, type StopCondition } from "./stops.ts";

/** What a run is of: one environment, or several behind one dataset (`EnvGroup`). */
export interface AnyEnvironment {
  readonly types: readonly [unknown, unknown];
  readonly dataset: Dataset<unknown>;
  readonly evalDataset: Dataset<unknown> | null;
  readonly rubric: RubricGroup;
  /** Set by `defineEnvironment`. */
  needs: readonly Need[];
  forkable: boolean;
  /** The environments that play rollouts: itself, or the members of a group and of the groups in it. */
  readonly players: readonly PlayedEnvironment[];
  /** Names of the members of a group that play, as its report and its training series name them; none of any other. */
  readonly members: readonly string[];
  /** Who plays a row, and the row as that environment knows it. Throws RangeError for a row that is nobody's. */
  route(row: RoutedRow): Route;
}

export interface Route extends RoutedRow {
  readonly environment: PlayedEnvironment;
  /** Its name as one of `members`; null where no group is on the way. */
  readonly member: string | null;
}

// Methods, not function properties: their parameters are compared both ways, so that an environment with a task and a
// state of its own fits. The harness hands every hook a state made from the very rollout its environment set up.
export interface PlayedEnvironment extends AnyEnvironment {
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  readonly parser: Parser;
  /** The run's own arguments are merged over these. */
  readonly sampling: Sampling;
  readonly scoreRollouts: boolean;
  readonly maxTurns: number;
  readonly maxSeqLen: number | null;
  readonly timeoutMs: number | null;
  readonly stopConditions: readonly StopCondition<HookState>[];
  readonly cleanupHandlers: readonly CleanupHandler<HookState>[];
  readonly teardownHandlers: readonly CleanupHandler<void>[];
  readonly toolDefinitions: readonly ToolDefinition[];
  /** What one rollout is offered, by its own stored state: `toolDefinitions`, unless tools come to light at set-up. */
  toolDefinitionsOf(state: JsonObject): readonly ToolDefinition[];
  makePrompt(task: unknown): Messages | string | null;
  setupState(state: RolloutFields<unknown>, can: Capabilities): Awaitable<object>;
  openLive(state: RolloutFields<unknown>, can: Capabilities): Awaitable<unknown>;
  closeLive(state: LiveState<unknown, object, unknown>): Awaitable<void>;
  getPromptMessages(state: LiveState<unknown, object, unknown>): Awaitable<Messages | string>;
  postRollout(state: LiveState<unknown, object, unknown>): Awaitable<void>;
}

/**
 * Retires an instance: its teardown handlers run, those of its rubrics included, whatever fails. Returns what did.
 * Nothing is built or played with it any more.
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

/** Whether anything is to be done for it when it is retired. */
export function holdsSomething({ players }: AnyEnvironment): boolean {
  return players.some((player) => handlersOf(player).length > 0);
}

function handlersOf({ teardownHandlers, rubric }: PlayedEnvironment): CleanupHandler<void>[] {
  return [...teardownHandlers, ...rubric.teardownHandlers].sort(inOrder);
}
