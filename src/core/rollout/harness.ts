/**
 * Runs the environment hooks of one rollout, one effect of the state machine at a time.
 *
 * Invariants. `perform` never throws: an error of environment code becomes a `failed` event, or, while closing, one of
 * the errors of `closed`. Between effects a harness holds only open handles, so it may be dropped at any time, and a
 * new one continues from the stored rollout. Randomness comes from a stream seeded by the rollout and the effect, and
 * sql calls are counted per effect, so an effect that runs again after a restart draws the same numbers and makes the
 * same calls.
 */

import {
  asEnvError,
  EnvError,
  endsTheWhole,
  environmentFailure,
  firstErrors,
  isError,
  messageOf,
  OverlongPromptError,
  type SerializedError,
  serializeError,
} from "../../contract/errors.ts";
import { cloneJson, type Json, type JsonObject } from "../../contract/json.ts";
import {
  asMessages,
  commonPrefix,
  type Messages,
  normalizeMessages,
  type ToolDefinition,
} from "../../contract/messages.ts";
import { seededRandom } from "../../contract/random.ts";
import { historyOf } from "../../contract/trajectory.ts";
import type { AnyEnvironment, PlayedEnvironment } from "../environments/any-environment.ts";
import { gateCapabilities, type OfferedCapabilities } from "../environments/capabilities.ts";
import type { Awaitable, Capabilities, Need, RoutedRow, Sql } from "../environments/contract.ts";
import {
  addOwn,
  type HookContext,
  type HookState,
  openState,
  ownState,
  type Stage,
  type StageLimit,
  unlimited,
} from "../environments/hook-state.ts";
import type { SqlRunner } from "../environments/rollout-sql.ts";
import { keysOf } from "../environments/tool-call.ts";
import { redact } from "../redact.ts";
import type { Event, HookEffect, Rollout } from "./rollout.ts";
import { rowTools } from "./task.ts";

export interface HarnessOptions {
  readonly rolloutId: string;
  /** The row as the environment sees it, if it differs from the rollout's row. */
  readonly row?: RoutedRow;
  /** What the environment may use; by default its own declaration. */
  readonly needs?: readonly Need[];
  /** The platform's capabilities; the environment gets those it declared. `now` is epoch milliseconds. */
  readonly capabilities: Omit<OfferedCapabilities, "random" | "sql">;
  /** The rollout's own database, if it has one. */
  readonly sql?: SqlRunner | undefined;
  /** Made of the run's seed and the rollout's place in the run, so that a repeated run draws the same numbers. */
  readonly seed: number | string;
  readonly signal?: { readonly aborted: boolean };
  /** Values of the secrets among the capabilities: they are removed from everything that hooks return. */
  readonly secrets?: readonly string[];
  /** Time limits of environment code; absent: no limits. */
  readonly limit?: StageLimit;
  /** Called right before a tool runs that must not run twice. */
  readonly unrepeatable?: (tool: string) => Awaitable<void>;
}

/** Per-effect resources. They start from the same point whenever the effect runs again. */
interface Draws {
  readonly random: () => number;
  readonly effect: string;
  sqlCalls: number;
}

type Tools = readonly ToolDefinition[] | SerializedError;

/** The tools sent with a rollout's next call; empty: none. Never throws: an error of the environment is returned. */
export function offeredTools(environment: AnyEnvironment, rollout: Rollout): Tools {
  const { environment: player, info } = environment.route(rollout);
  return askTools(player, info, rollout.state);
}

function askTools(player: PlayedEnvironment, info: Json, state: JsonObject): Tools {
  try {
    const given = rowTools(info) ?? cloneJson(player.toolDefinitionsOf(state));
    if (Array.isArray(given)) return given;
    throw new EnvError("toolDefinitionsOf must return a list of tools");
  } catch (thrown) {
    return serializeError(asEnvError(thrown, "toolDefinitionsOf"));
  }
}

/** A harness for the environment that plays a rollout of this row. Throws RangeError if none does. */
export function openHarness(
  environment: AnyEnvironment,
  rollout: RoutedRow,
  options: Omit<HarnessOptions, "row" | "needs">,
): Harness {
  const { environment: player, ...row } = environment.route(rollout);
  // The run's own environment declares the needs, also for the members of a group.
  return new Harness(player, { ...options, row, needs: environment.needs });
}

export class Harness {
  readonly #environment: PlayedEnvironment;
  readonly #context: HookContext;
  readonly #seed: number | string;
  readonly #now: () => number;
  readonly #can: Capabilities;
  readonly #secrets: readonly string[];
  #draws: Draws;
  /** The tool calls that the effect answered, and whether they failed. */
  readonly #answered = new Map<string, boolean>();
  #live: { readonly value: unknown; readonly rollout: Rollout } | null = null;
  #offered: Tools | null = null;

  constructor(environment: PlayedEnvironment, options: HarnessOptions) {
    const { rolloutId, capabilities, sql, seed, secrets = [], row } = options;
    const { signal = { aborted: false }, limit = unlimited, unrepeatable = () => undefined } = options;
    this.#environment = environment;
    const toolAnswered = (key: string, failed: boolean) => void this.#answered.set(key, failed);
    this.#context = { rolloutId, signal, limit, unrepeatable, toolAnswered, ...(row && { row }) };
    this.#seed = seed;
    this.#secrets = secrets;
    this.#now = capabilities.now;
    this.#draws = { random: seededRandom(seed), effect: "", sqlCalls: 0 };
    this.#can = gateCapabilities(options.needs ?? environment.needs, {
      ...capabilities,
      random: () => this.#draws.random(),
      ...(sql && { sql: this.#countCalls(sql) }),
    });
  }

  /** The tools for a call in the state that the last effect left; null if the environment was not asked. */
  get offered(): Tools | null {
    return this.#offered;
  }

  /** Performs one effect and returns one event. Never throws. */
  async perform(effect: HookEffect, rollout: Rollout): Promise<Event> {
    this.#offered = null;
    const event = redact(await this.#runEffect(effect, rollout), this.#secrets);
    if (event.type !== "replied" && event.type !== "closed") return event;
    // Asked right after the hook, about the state it left: no other environment code runs between two hooks.
    const tools = askTools(this.#environment, (this.#context.row ?? rollout).info, event.state);
    this.#offered = tools;
    if (event.type === "closed" || event.final_env_response !== null) return event;
    if (!("error" in tools)) return event;
    return redact({ type: "failed", failure: "environment", error: tools }, this.#secrets);
  }

  async #runEffect(effect: HookEffect, rollout: Rollout): Promise<Event> {
    this.#draws = this.#drawsFor(effect.kind, rollout);
    this.#answered.clear();
    try {
      switch (effect.kind) {
        case "setup":
          return await this.#setup(rollout);
        case "reply":
          return await this.#context.limit("turn", "the environment's reply", this.#reply(rollout));
        case "close":
          return await this.#close(rollout);
      }
    } catch (thrown) {
      const error = serializeError(asEnvError(thrown, effect.kind));
      if (effect.kind === "close") return this.#closedEvent(rollout.state, error, []);
      if (endsTheWhole(thrown)) return { type: "timed_out" };
      return { type: "failed", failure: environmentFailure(error), error };
    }
  }

  #closedEvent(state: JsonObject, error: SerializedError | null, cleanup_errors: readonly SerializedError[]): Event {
    return { type: "closed", state, error, cleanup_errors, at: this.#now() };
  }

  /** Closes the open handles, without ending the rollout. Returns an error instead of throwing it. */
  async dispose(): Promise<SerializedError | null> {
    const live = this.#live;
    if (live === null) return null;
    this.#live = null;
    const state = openState(live.rollout, live.value, this.#context);
    return await this.#faultOf("closeLive", () => this.#environment.closeLive(state));
  }

  async #setup(rollout: Rollout): Promise<Event> {
    const state = openState(rollout, undefined, this.#context);
    const fields = await wrapErrors("setupState", () =>
      this.#withinLimit("setup", "setupState", () => this.#environment.setupState(state, this.#can)),
    );
    addOwn(state, fields);
    return { type: "set_up", state: ownState(state) };
  }

  async #reply(rollout: Rollout): Promise<Event> {
    const state = await this.#openLive(rollout, "setup");
    for (const stop of this.#environment.stopConditions) {
      if (await wrapErrors(`stop condition ${stop.name}`, () => stop.when(state))) {
        return { type: "stopped", condition: stop.name, state: ownState(state) };
      }
    }
    if (rollout.final_env_response !== null) {
      throw new EnvError("the environment gave its final reply, but no stop condition ends the rollout");
    }
    try {
      return await this.#nextPrompt(rollout, state);
    } catch (thrown) {
      if (isError(thrown, OverlongPromptError)) return { type: "prompt_too_long" };
      throw thrown;
    }
  }

  async #nextPrompt(rollout: Rollout, state: HookState): Promise<Event> {
    const given = await wrapErrors("envResponse", () => this.#environment.getPromptMessages(state));
    const final = state.final_env_response;
    return {
      type: "replied",
      prompt: checkPrompt(asMessages(given), rollout),
      state: ownState(state),
      final_env_response: final === null ? null : finalMessages(final),
      ...this.#toolFailed(rollout),
    };
  }

  #toolFailed({ turns }: Rollout): Pick<Extract<Event, { type: "replied" }>, "tool_failed"> {
    const calls = turns.at(-1)?.completion.tool_calls ?? [];
    const tool_failed = keysOf(calls.map(({ id }) => id)).map((key) => this.#answered.get(key) ?? null);
    return tool_failed.every((failed) => failed === null) ? {} : { tool_failed };
  }

  /** Runs every step even if one fails: a failed hook must not leak what another step would release. */
  async #close(rollout: Rollout): Promise<Event> {
    const environment = this.#environment;
    const unopened = await faultOf("openLive", () => this.#openLive(rollout, "cleanup"));
    const state = openState(rollout, this.#live?.value, this.#context);
    const unfinished = unopened ?? (await this.#faultOf("postRollout", () => environment.postRollout(state)));
    const cleanups: (SerializedError | null)[] = [];
    for (const handler of environment.cleanupHandlers) {
      const name = `cleanup ${handler.name}`;
      cleanups.push(await this.#faultOf(name, () => handler.run(state)));
    }
    if (this.#live !== null) {
      const close = () => environment.closeLive(state);
      cleanups.push(await this.#faultOf("closeLive", close));
      this.#live = null;
    }
    const stored = await outcomeOf("state", () => ownState(state));
    return this.#closedEvent(
      "value" in stored ? stored.value : rollout.state,
      unfinished ?? ("fault" in stored ? stored.fault : null),
      firstErrors(
        cleanups.filter((fault) => fault !== null),
        (rest) => serializeError(new EnvError(`${rest} more handlers failed`)),
      ),
    );
  }

  /** A state for hooks that may use handles. Opens the handles if this harness has not done so. */
  async #openLive(rollout: Rollout, stage: Stage): Promise<HookState> {
    const value = this.#live === null ? await this.#openHandles(rollout, stage) : this.#live.value;
    this.#live = { value, rollout };
    return openState(rollout, value, this.#context);
  }

  async #openHandles(rollout: Rollout, stage: Stage): Promise<unknown> {
    const effect = this.#draws;
    // A separate stream: whether handles are reopened here must not change the effect's own numbers.
    this.#draws = this.#drawsFor("live", rollout);
    const before = Object.freeze(openState(rollout, undefined, this.#context));
    try {
      return await wrapErrors("openLive", () =>
        this.#withinLimit(stage, "openLive", () => this.#environment.openLive(before, this.#can)),
      );
    } finally {
      this.#draws = effect;
    }
  }

  #drawsFor(purpose: string, { turns }: Rollout): Draws {
    const random = seededRandom(this.#seed, purpose, turns.length);
    return { random, effect: `${purpose}:${turns.length}`, sqlCalls: 0 };
  }

  #countCalls(sql: SqlRunner): Sql {
    return {
      exec: async (query, ...params) => {
        const { effect, sqlCalls: call } = this.#draws;
        this.#draws.sqlCalls += 1;
        return await sql.exec({ effect, call }, query, params);
      },
    };
  }

  /** Runs environment code under the limit of its stage; `where` is its name in the error. */
  async #withinLimit<T>(stage: Stage, where: string, run: () => Awaitable<T>): Promise<T> {
    return await this.#context.limit(stage, where, run());
  }

  #faultOf(where: string, run: () => Awaitable<unknown>): Promise<SerializedError | null> {
    return faultOf(where, () => this.#withinLimit("cleanup", where, run));
  }
}

/** Checks the messages that the environment adds to the history, like any outside input. */
function checkPrompt(prompt: Messages, rollout: Rollout): Messages {
  const history = historyOf(rollout.turns);
  const kept = commonPrefix(history, prompt);
  // Unchanged messages are taken from our own copy: the environment's objects may return something else when read
  // again.
  return [...history.slice(0, kept), ...checkMessages(prompt.slice(kept))];
}

/** An empty text is not a message: the rollout ends without a final message. */
function finalMessages(final: Messages | string): Messages {
  return final === "" ? [] : checkMessages(final);
}

function checkMessages(messages: Messages | string): Messages {
  try {
    return normalizeMessages(messages);
  } catch (thrown) {
    throw new EnvError(`the environment's reply is ${messageOf(thrown)}`);
  }
}

async function wrapErrors<T>(where: string, run: () => Awaitable<T>): Promise<T> {
  try {
    return await run();
  } catch (thrown) {
    throw asEnvError(thrown, where);
  }
}

type Outcome<T> = { readonly value: T } | { readonly fault: SerializedError };

async function outcomeOf<T>(where: string, run: () => Awaitable<T>): Promise<Outcome<T>> {
  try {
    return { value: await run() };
  } catch (thrown) {
    return { fault: serializeError(asEnvError(thrown, where)) };
  }
}

async function faultOf(where: string, run: () => Awaitable<unknown>): Promise<SerializedError | null> {
  const outcome = await outcomeOf(where, run);
  return "fault" in outcome ? outcome.fault : null;
}
