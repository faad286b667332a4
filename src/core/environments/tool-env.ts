/**
 * An environment that replies with the results of its tools, and ends when the model calls none.
 *
 * Invariants. The calls of one turn run one after the other, in order, each answered by one tool message. A call that
 * fails is answered with the error's text and the next one runs, unless `stopErrors` lists its class, it is an
 * InfraError or its time is over: then the rollout ends with that error and the results of the turn are lost. A turn
 * may run again after a restart, so tools count as repeatable unless declared otherwise, and each call has a key that
 * stays the same. One instance serves many rollouts: tools are added and removed while it is built, not by hooks.
 */
import {
  InfraError,
  isError,
  KeyError,
  nameOf,
  StageTimeoutError,
  ToolCallError,
  ToolError,
  ToolParseError,
  thrownMessage,
  ValueError,
} from "../../contract/errors.ts";
import type { Json } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Content, Message, Messages, ToolCall, ToolDefinition } from "../../contract/messages.ts";
import { shortText } from "../../contract/shown-text.ts";
import { Rubric, type ScoreFunction } from "../rubrics/rubric.ts";
import type {
  AnyTool,
  Awaitable,
  Call,
  Capabilities,
  LiveState,
  OwnState,
  RolloutFields,
  ScoringArgs,
  ToolArgs,
} from "./contract.ts";
import { type EnvironmentOptions, HOOK_OPTIONS, MultiTurnEnv, type RolloutHooks } from "./environment.ts";
import { contextOf } from "./hook-state.ts";
import type { StopOptions } from "./stops.ts";
import { toolDefinition } from "./tool.ts";
import {
  badArguments,
  decodeArguments,
  isObject,
  keysOf,
  noObject,
  requireHidden,
  runTool,
  withExactNumbers,
} from "./tool-call.ts";

export interface ToolOptions<Task, S, Live> extends EnvironmentOptions<Task, S>, RolloutHooks<Task, S, Live> {
  readonly tools: readonly AnyTool[];
  /**
   * Errors of these classes end the rollout, as ToolParseError or ToolCallError with the original as cause: `KeyError`
   * for a tool that does not exist, `TypeError` for bad arguments, `ValueError` for arguments that cannot be decoded.
   */
  readonly stopErrors?: readonly ErrorClass[];
  /** The text of a failed call for the model; by default the error's message. */
  readonly formatError?: (error: Error) => string;
}

type ErrorClass = new (...args: never[]) => Error;

export const TOOL_OPTIONS = [...HOOK_OPTIONS, "tools", "stopErrors", "formatError"] as const;
const DEFAULT_MAX_TURNS = 10;

/** The additions of a library subclass: further options, and whether it provides hidden arguments. */
export interface ToolKind {
  readonly options: readonly string[];
  readonly providesHidden: boolean;
}
const STATELESS: ToolKind = { options: TOOL_OPTIONS, providesHidden: false };

interface OfferedTool {
  readonly tool: AnyTool;
  readonly definition: ToolDefinition;
}

/** A call's content for the model, and whether the call failed. */
interface Answer {
  readonly content: Content;
  readonly failed: boolean;
}

export class ToolEnv<Task, S extends OwnState<S> = object, Live = undefined> extends MultiTurnEnv<Task, S, Live> {
  readonly #tools: Map<string, OfferedTool>;
  readonly #providesHidden: boolean;
  readonly #stopErrors: NonNullable<ToolOptions<Task, S, Live>["stopErrors"]>;
  readonly #formatError: (error: Error) => string;

  /** Throws TypeError for an unknown option, for two tools of one name, and for hidden arguments without a provider. */
  constructor(options: ToolOptions<Task, S, Live>, kind: ToolKind = STATELESS) {
    const tools = byName(options.tools);
    super(options, {
      options: kind.options,
      monitors: [new ToolMonitor(() => tools.keys())],
      maxTurns: DEFAULT_MAX_TURNS,
    });
    this.#tools = tools;
    this.#providesHidden = kind.providesHidden;
    for (const tool of options.tools) this.#refuseHidden(tool);
    this.#stopErrors = options.stopErrors ?? [];
    this.#formatError = options.formatError ?? ((error) => error.message || nameOf(error));
  }

  override get toolDefinitions(): readonly ToolDefinition[] {
    return [...this.#tools.values()].map(({ definition }) => definition);
  }

  /** A tool of the same name is replaced. Throws TypeError for hidden arguments without a provider. */
  addTool(tool: AnyTool): void {
    this.#refuseHidden(tool);
    this.#tools.set(tool.name, offerTool(tool));
  }

  /** Also removes its definition and its metric. Throws TypeError if there is no tool of this name. */
  removeTool(name: string): void {
    if (!this.#tools.delete(name)) throw new TypeError(`there is no tool named ${name} to remove`);
  }

  protected override stopEntries(): StopOptions<LiveState<Task, S, Live>> {
    return { ...super.stopEntries(), no_tools_called: callsNoTool };
  }

  override async envResponse(messages: Messages, state: LiveState<Task, S, Live>): Promise<Messages> {
    const calls = messages.at(-1)?.tool_calls ?? [];
    const keys = keysOf(calls.map(({ id }) => id));
    const replies: Message[] = [];
    for (const [index, call] of calls.entries()) {
      const key = keys[index] ?? call.id;
      const { content, failed } = await this.#answer(call, callOf(state, call, key), messages, state);
      contextOf(state).toolAnswered(key, failed);
      replies.push({ role: "tool", tool_call_id: call.id, content });
    }
    return replies;
  }

  /** Makes a tool's arguments from those the model sent. An error here ends the rollout. */
  protected prepareArguments(
    _name: string,
    args: ToolArgs,
    _messages: Messages,
    _state: LiveState<Task, S, Live>,
  ): Readonly<Record<string, unknown>> {
    return args;
  }

  /** The tool of this name, if this rollout was offered one. */
  protected toolNamed(name: string, _state: LiveState<Task, S, Live>): AnyTool | undefined {
    return this.#tools.get(name)?.tool;
  }

  #refuseHidden(tool: AnyTool): void {
    if (this.#providesHidden || tool.hidden.length === 0) return;
    throw new TypeError(`tool ${tool.name} has hidden arguments: use a StatefulToolEnv`);
  }

  async #answer(toolCall: ToolCall, call: Call, messages: Messages, state: LiveState<Task, S, Live>): Promise<Answer> {
    const { name } = toolCall.function;
    let sent: Json;
    try {
      sent = decodeArguments(toolCall);
      if (this.#providesHidden && !isObject(sent)) throw undecodable(noObject(name, sent));
    } catch (thrown) {
      return this.#describe(name, thrown, ToolParseError);
    }
    const tool = this.toolNamed(name, state);
    let exact: ToolArgs | null;
    try {
      exact = isObject(sent) ? withExactNumbers(tool, sent) : null;
    } catch (thrown) {
      return this.#describe(name, thrown, ToolCallError);
    }
    const args = exact === null ? null : this.prepareArguments(name, exact, messages, state);
    if (tool !== undefined && args !== null) requireHidden(tool, args);
    try {
      if (tool === undefined) throw unknownTool(name);
      if (args === null) throw badArguments(noObject(name, sent));
      return { content: await runTool(tool, args, call, contextOf(state)), failed: false };
    } catch (thrown) {
      return this.#describe(name, thrown, ToolCallError);
    }
  }

  /** The text of an error for the model. Throws instead if the error ends the rollout. */
  #describe(name: string, thrown: unknown, stage: typeof ToolParseError | typeof ToolCallError): Answer {
    if (isError(thrown, InfraError) || isError(thrown, StageTimeoutError)) throw thrown;
    const error = readable(name, thrown);
    const original = isError(thrown, Error) ? thrown : error;
    if (this.#stopErrors.some((stopError) => isOf(original, stopError))) {
      throw error instanceof stage ? error : new stage(error.message, { cause: error });
    }
    return { content: shortText(this.#formatError(error), LIMITS.toolResultBytes), failed: true };
  }
}

/** The thrown value as an error whose message is a text. */
function readable(name: string, thrown: unknown): Error {
  const said = thrownMessage(thrown);
  if (said === null) return new Error(`the tool ${name} threw an error without a readable message`);
  return isError(thrown, Error) ? thrown : new Error(said);
}

function unknownTool(name: string): ToolCallError {
  const message = name === "" ? "the call names no tool" : `there is no tool named ${name}`;
  return new ToolCallError(message, { cause: new KeyError(message) });
}

/**
 * With hidden arguments, arguments that are not an object cannot be decoded at all; otherwise they are bad arguments.
 */
function undecodable(message: string): ToolParseError {
  return new ToolParseError(message, { cause: new ValueError(message) });
}

/** Whether an error or its cause is of this class. */
function isOf(error: Error, kind: ErrorClass): boolean {
  const cause = error instanceof ToolError ? error.cause : null;
  const kinds: readonly ErrorClass[] = kind === ValueError ? [kind, SyntaxError] : [kind];
  return [error, cause].some((link) => kinds.some((one) => isError(link, one)));
}

/** True after the first turn if the model's last message calls no tool. */
function callsNoTool({ trajectory }: RolloutFields<unknown>): boolean {
  const last = trajectory.at(-1);
  return last !== undefined && (last.completion.tool_calls ?? []).length === 0;
}

function byName(tools: readonly AnyTool[]): Map<string, OfferedTool> {
  const map = new Map<string, OfferedTool>();
  for (const tool of tools) {
    if (map.has(tool.name)) throw new TypeError(`two tools are named ${tool.name}`);
    map.set(tool.name, offerTool(tool));
  }
  return map;
}

/** Throws zod's error for parameters that have no JSON Schema. */
function offerTool(tool: AnyTool): OfferedTool {
  return { tool, definition: toolDefinition(tool) };
}

function callOf(state: RolloutFields<unknown>, { id }: ToolCall, key: string): Call {
  const { rolloutId, signal } = contextOf(state);
  return { id, idempotencyKey: `${rolloutId}:${state.turn - 1}:${key}`, signal };
}

/**
 * `total_tool_calls`, and `<tool>_calls` for each tool that exists when a rollout is scored. Attempts count, including
 * failed ones; a call of an unknown tool counts only in the total.
 */
class ToolMonitor extends Rubric {
  readonly #names: () => Iterable<string>;

  constructor(names: () => Iterable<string>) {
    super();
    this.#names = names;
  }

  override get functions(): readonly ScoreFunction[] {
    const each = [...this.#names()].map((name) => metric(`${name}_calls`, (call) => call.function.name === name));
    return [metric("total_tool_calls", () => true), ...each, ...super.functions];
  }
}

function metric(name: string, counts: (call: ToolCall) => boolean): ScoreFunction {
  return { name, weight: 0, group: false, score: (args) => callsIn(args).filter(counts).length };
}

function callsIn({ completion }: Pick<ScoringArgs<unknown, unknown>, "completion">): ToolCall[] {
  return completion.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
}

/**
 * Tools with arguments that the model neither sees nor sets: each call's arguments pass through `updateToolArgs`, which
 * adds those of this rollout. Values that the model sends under a hidden name are dropped first.
 */
export interface StatefulToolOptions<Task, S, Live> extends ToolOptions<Task, S, Live> {
  readonly setupState: (state: RolloutFields<NoInfer<Task>>, can: Capabilities) => Awaitable<S>;
  /** Runs for every call that could be decoded, unknown tools included. An error in it ends the rollout. */
  readonly updateToolArgs: (
    name: string,
    args: Record<string, Json>,
    messages: Messages,
    state: LiveState<NoInfer<Task>, NoInfer<S>, NoInfer<Live>>,
  ) => Readonly<Record<string, unknown>>;
}

export class StatefulToolEnv<Task, S extends OwnState<S> = object, Live = undefined> extends ToolEnv<Task, S, Live> {
  readonly #updateToolArgs: StatefulToolOptions<Task, S, Live>["updateToolArgs"];

  constructor(options: StatefulToolOptions<Task, S, Live>) {
    super(options, { options: [...TOOL_OPTIONS, "updateToolArgs"], providesHidden: true });
    this.#updateToolArgs = options.updateToolArgs;
  }

  updateToolArgs(
    name: string,
    args: Record<string, Json>,
    messages: Messages,
    state: LiveState<Task, S, Live>,
  ): Readonly<Record<string, unknown>> {
    return this.#updateToolArgs(name, args, messages, state);
  }

  protected override prepareArguments(
    name: string,
    args: ToolArgs,
    messages: Messages,
    state: LiveState<Task, S, Live>,
  ): Readonly<Record<string, unknown>> {
    const hidden = this.toolNamed(name, state)?.hidden ?? [];
    const sent = Object.entries(args).filter(([key]) => !hidden.includes(key));
    return this.updateToolArgs(name, Object.fromEntries(sent), messages, state);
  }
}
