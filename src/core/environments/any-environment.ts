/** An environment as whoever runs it sees it: hooks and limits, without the types only its author knows. */
import type { Messages, ToolDefinition } from "../messages.ts";
import type { Parser } from "../parsers/parser.ts";
import type { RubricGroup } from "../rubrics/rubric-group.ts";
import type { Dataset } from "../task.ts";
import type { Awaitable, Capabilities, LiveState, Need, RolloutFields } from "./contract.ts";
import type { HookState } from "./hook-state.ts";
import type { CleanupHandler, StopCondition } from "./stops.ts";

// Methods, not function properties: their parameters are compared both ways, so that an environment with a task and a
// state of its own fits. The harness hands every hook a state made from the very rollout its environment set up.
export interface AnyEnvironment {
  readonly types: readonly [unknown, unknown];
  readonly dataset: Dataset<unknown>;
  readonly evalDataset: Dataset<unknown> | null;
  readonly systemPrompt?: string;
  readonly fewShot?: Messages;
  readonly parser: Parser;
  readonly rubric: RubricGroup;
  readonly maxTurns: number;
  readonly timeoutMs: number | null;
  readonly stopConditions: readonly StopCondition<HookState>[];
  readonly cleanupHandlers: readonly CleanupHandler<HookState>[];
  readonly toolDefinitions: readonly ToolDefinition[];
  /** Set by `defineEnvironment`. */
  needs: readonly Need[];
  forkable: boolean;
  setupState(state: RolloutFields<unknown>, can: Capabilities): Awaitable<object>;
  openLive(state: RolloutFields<unknown>, can: Capabilities): Awaitable<unknown>;
  closeLive(state: LiveState<unknown, object, unknown>): Awaitable<void>;
  getPromptMessages(state: LiveState<unknown, object, unknown>): Awaitable<Messages | string>;
  postRollout(state: LiveState<unknown, object, unknown>): Awaitable<void>;
}
