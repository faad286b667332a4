/**
 * An environment that answers with what its tools return, and ends when the model calls none.
 *
 * Invariants. The calls of one turn run one after the other, in order, each answered by one tool message. A call that
 * fails is answered with the error's text and the next one goes on, unless `stopErrors` lists its class or it is an
 * InfraError, or its time is over: then the rollout ends with that error and the results of the turn are lost. A turn may run again after a
 * restart, so tools are repeatable unless they say otherwise, and each call carries a key that stays the same.
 */
import { InfraError, StageTimeoutError, ToolCallError, ToolParseError } from "../errors.ts";
import type { Message, Messages, ToolCall, ToolDefinition } from "../messages.ts";
import type { AnyTool, Call, LiveState, OwnState, RolloutFields, ToolArgs } from "./contract.ts";
import type { EnvironmentOptions } from "./environment.ts";
import { contextOf } from "./hook-state.ts";
import { HOOK_OPTIONS, MultiTurnEnv, type RolloutHooks } from "./multi-turn-env.ts";
import type { StopCondition } from "./stops.ts";
import { toolDefinition } from "./tool.ts";
import { decodeArguments, requireHidden, runTool } from "./tool-call.ts";
import { toolMetrics } from "./tool-metrics.ts";

export interface ToolOptions<Task, S, Live>
  extends EnvironmentOptions<Task, S>,
    RolloutHooks<Task, S, Live> {
  readonly tools: readonly AnyTool[];
  /** Errors of these classes end the rollout, as ToolParseError or ToolCallError with the original as cause. */
  readonly stopErrors?: readonly (new (
    ...args: never[]
  ) => Error)[];
  /** The text the model reads of a failed call; by default the error's message. */
  readonly formatError?: (error: Error) => string;
}

export const TOOL_OPTIONS = [...HOOK_OPTIONS, "tools", "stopErrors", "formatError"] as const;
const DEFAULT_MAX_TURNS = 10;

/** What a subclass of the library adds: further options, and whether it provides hidden arguments. */
export interface ToolKind {
  readonly options: readonly string[];
  readonly providesHidden: boolean;
}
const STATELESS: ToolKind = { options: TOOL_OPTIONS, providesHidden: false };

export class ToolEnv<Task, S extends OwnState<S> = object, Live = undefined> extends MultiTurnEnv<
  Task,
  S,
  Live
> {
  override readonly toolDefinitions: readonly ToolDefinition[];
  readonly #tools: ReadonlyMap<string, AnyTool>;
  readonly #stopErrors: NonNullable<ToolOptions<Task, S, Live>["stopErrors"]>;
  readonly #formatError: (error: Error) => string;

  /** Throws TypeError for an unknown option, for two tools of one name, and for hidden arguments nobody provides. */
  constructor(options: ToolOptions<Task, S, Live>, kind: ToolKind = STATELESS) {
    super(options, {
      options: kind.options,
      monitors: [toolMetrics(options.tools.map((tool) => tool.name))],
      stops: [NO_TOOLS_CALLED],
      maxTurns: DEFAULT_MAX_TURNS,
    });
    if (!kind.providesHidden) refuseHidden(options.tools);
    this.#tools = byName(options.tools);
    this.#stopErrors = options.stopErrors ?? [];
    this.#formatError = options.formatError ?? ((error) => error.message || error.name);
    this.toolDefinitions = options.tools.map(toolDefinition);
  }

  override async envResponse(
    messages: Messages,
    state: LiveState<Task, S, Live>,
  ): Promise<Messages> {
    const calls = messages.at(-1)?.tool_calls ?? [];
    const replies: Message[] = [];
    for (const [index, call] of calls.entries()) {
      const content = await this.#answer(call, callOf(state, calls, index), messages, state);
      replies.push({ role: "tool", tool_call_id: call.id, content });
    }
    return replies;
  }

  /** What a tool is given, made of what the model sent. An error here ends the rollout. */
  protected prepareArguments(
    _name: string,
    args: ToolArgs,
    _messages: Messages,
    _state: LiveState<Task, S, Live>,
  ): Readonly<Record<string, unknown>> {
    return args;
  }

  async #answer(
    toolCall: ToolCall,
    call: Call,
    messages: Messages,
    state: LiveState<Task, S, Live>,
  ): Promise<string> {
    const { name } = toolCall.function;
    let decoded: ToolArgs;
    try {
      decoded = decodeArguments(toolCall);
    } catch (thrown) {
      return this.#describe(thrown, ToolParseError);
    }
    const args = this.prepareArguments(name, decoded, messages, state);
    const tool = this.#tools.get(name);
    if (tool !== undefined) requireHidden(tool, args);
    try {
      if (tool === undefined) throw new ToolCallError(`there is no tool named ${name}`);
      return await runTool(tool, args, call, contextOf(state));
    } catch (thrown) {
      return this.#describe(thrown, ToolCallError);
    }
  }

  /** The text the model reads of an error, unless the error ends the rollout. */
  #describe(thrown: unknown, stage: typeof ToolParseError | typeof ToolCallError): string {
    if (thrown instanceof InfraError || thrown instanceof StageTimeoutError) throw thrown;
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    if (this.#stopErrors.some((stopError) => error instanceof stopError)) {
      throw error instanceof stage ? error : new stage(error.message, { cause: error });
    }
    return this.#formatError(error);
  }
}

const NO_TOOLS_CALLED: StopCondition<RolloutFields<unknown>> = {
  name: "no_tools_called",
  priority: 0,
  when: ({ trajectory }) => {
    const last = trajectory.at(-1);
    return last !== undefined && (last.completion.tool_calls ?? []).length === 0;
  },
};

function refuseHidden(tools: readonly AnyTool[]): void {
  const needy = tools.find((tool) => tool.hidden.length > 0);
  if (needy === undefined) return;
  throw new TypeError(`tool ${needy.name} has hidden arguments: use a StatefulToolEnv`);
}

function byName(tools: readonly AnyTool[]): ReadonlyMap<string, AnyTool> {
  const map = new Map<string, AnyTool>();
  for (const tool of tools) {
    if (map.has(tool.name)) throw new TypeError(`two tools are named ${tool.name}`);
    map.set(tool.name, tool);
  }
  return map;
}

function callOf(state: RolloutFields<unknown>, calls: readonly ToolCall[], index: number): Call {
  const { rolloutId, signal } = contextOf(state);
  const id = calls[index]?.id ?? "";
  // Some models give two calls of one turn the same id; their keys must differ all the same.
  const earlier = calls.slice(0, index).filter((call) => call.id === id).length;
  const suffix = earlier === 0 ? "" : `#${earlier + 1}`;
  return { id, idempotencyKey: `${rolloutId}:${state.turn - 1}:${id}${suffix}`, signal };
}
