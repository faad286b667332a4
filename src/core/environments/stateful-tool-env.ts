/**
 * Tools with arguments the model neither sees nor sets: each call's arguments pass through `updateToolArgs`, which adds
 * what belongs to this rollout. Values the model sends under a hidden name are dropped first.
 */
import type { Json } from "../../contract/json.ts";
import type { Messages } from "../../contract/messages.ts";
import type { Awaitable, Capabilities, LiveState, OwnState, RolloutFields, ToolArgs } from "./contract.ts";
import { TOOL_OPTIONS, ToolEnv, type ToolOptions } from "./tool-env.ts";

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
