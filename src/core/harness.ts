/**
 * Runs one rollout's environment hooks, one effect of the state machine at a time.
 *
 * Invariants. `perform` never throws: what environment code throws comes back as a `failed` event, or, while closing,
 * among the errors of `closed`. Between effects a harness holds nothing but open handles, so it may be dropped at any
 * time and a fresh one goes on from the stored rollout. Randomness is drawn from a stream seeded by the rollout and the
 * effect, so an effect that runs again after a restart draws the same numbers.
 */
import type { AnyEnvironment } from "./environments/any-environment.ts";
import { gateCapabilities, type OfferedCapabilities } from "./environments/capabilities.ts";
import type { Awaitable, Capabilities } from "./environments/contract.ts";
import {
  addOwn,
  type HookContext,
  type HookState,
  openState,
  ownState,
} from "./environments/hook-state.ts";
import {
  asEnvError,
  EnvError,
  OverlongPromptError,
  type SerializedError,
  serializeError,
} from "./errors.ts";
import { asMessages, commonPrefix, Messages, type ToolDefinition } from "./messages.ts";
import { seededRandom } from "./random.ts";
import { redact } from "./redact.ts";
import type { Effect, Event, Rollout } from "./rollout.ts";
import { historyOf } from "./trajectory.ts";

/** The effects an environment answers; the model answers `sample`. */
export type HookEffect = Extract<Effect, { kind: "setup" | "reply" | "close" }>;

export interface HarnessOptions {
  readonly rolloutId: string;
  /** What the platform has to offer; the environment gets what it declared. `now` is epoch milliseconds. */
  readonly capabilities: Omit<OfferedCapabilities, "random">;
  /** Of this rollout: the run's seed and the rollout's place in it, so that the same run asked for again draws the same. */
  readonly seed: number | string;
  readonly signal?: { readonly aborted: boolean };
  /** Values of the secrets among the capabilities: they come back out of no hook. */
  readonly secrets?: readonly string[];
}

/** What goes to the model with every call; empty = send none. */
export function toolDefinitions(environment: AnyEnvironment): readonly ToolDefinition[] {
  return environment.toolDefinitions;
}

export class Harness {
  readonly #environment: AnyEnvironment;
  readonly #context: HookContext;
  readonly #seed: number | string;
  readonly #now: () => number;
  readonly #can: Capabilities;
  readonly #secrets: readonly string[];
  #random: () => number;
  #live: { readonly value: unknown; readonly rollout: Rollout } | null = null;

  constructor(environment: AnyEnvironment, options: HarnessOptions) {
    const { rolloutId, capabilities, seed, signal = { aborted: false }, secrets = [] } = options;
    this.#environment = environment;
    this.#context = { rolloutId, signal };
    this.#seed = seed;
    this.#secrets = secrets;
    this.#now = capabilities.now;
    this.#random = seededRandom(seed);
    this.#can = gateCapabilities(environment.needs, {
      ...capabilities,
      random: () => this.#random(),
    });
  }

  /** One effect, one event. Never throws. */
  async perform(effect: HookEffect, rollout: Rollout): Promise<Event> {
    return redact(await this.#performed(effect, rollout), this.#secrets);
  }

  async #performed(effect: HookEffect, rollout: Rollout): Promise<Event> {
    this.#seedFor(effect.kind, rollout);
    try {
      switch (effect.kind) {
        case "setup":
          return await this.#setup(rollout);
        case "reply":
          return await this.#reply(rollout);
        case "close":
          return await this.#close(rollout);
      }
    } catch (thrown) {
      return failure(asEnvError(thrown, effect.kind));
    }
  }

  /** Closes what is open, without ending the rollout. Returns what went wrong instead of throwing. */
  async dispose(): Promise<SerializedError | null> {
    const live = this.#live;
    if (live === null) return null;
    this.#live = null;
    const state = openState(live.rollout, live.value, this.#context);
    return faultOf("closeLive", () => this.#environment.closeLive(state));
  }

  async #setup(rollout: Rollout): Promise<Event> {
    const state = openState(rollout, undefined, this.#context);
    addOwn(state, await within("setupState", () => this.#environment.setupState(state, this.#can)));
    return { type: "set_up", state: ownState(state) };
  }

  async #reply(rollout: Rollout): Promise<Event> {
    const state = await this.#openLive(rollout);
    for (const stop of this.#environment.stopConditions) {
      if (await within(`stop condition ${stop.name}`, () => stop.when(state))) {
        return { type: "stopped", condition: stop.name, state: ownState(state) };
      }
    }
    if (rollout.final_env_response !== null) {
      throw new EnvError(
        "the environment made its final reply, but no stop condition ends the rollout",
      );
    }
    try {
      return await this.#nextPrompt(rollout, state);
    } catch (thrown) {
      if (thrown instanceof OverlongPromptError) return { type: "prompt_too_long" };
      throw thrown;
    }
  }

  async #nextPrompt(rollout: Rollout, state: HookState): Promise<Event> {
    const given = await within("envResponse", () => this.#environment.getPromptMessages(state));
    const final = state.final_env_response;
    return {
      type: "replied",
      prompt: checkedPrompt(asMessages(given), rollout),
      state: ownState(state),
      final_env_response: final === null ? null : Messages.parse(asMessages(final)),
    };
  }

  /** Whatever fails, the rest still runs: a failed hook must not leak what another would have released. */
  async #close(rollout: Rollout): Promise<Event> {
    const environment = this.#environment;
    const unopened = await faultOf("openLive", () => this.#openLive(rollout));
    const state = openState(rollout, this.#live?.value, this.#context);
    const unfinished =
      unopened ?? (await faultOf("postRollout", () => environment.postRollout(state)));
    const cleanups: (SerializedError | null)[] = [];
    for (const handler of environment.cleanupHandlers) {
      cleanups.push(await faultOf(`cleanup ${handler.name}`, () => handler.run(state)));
    }
    if (this.#live !== null) {
      cleanups.push(await faultOf("closeLive", () => environment.closeLive(state)));
      this.#live = null;
    }
    const stored = await outcomeOf("state", () => ownState(state));
    return {
      type: "closed",
      state: "value" in stored ? stored.value : rollout.state,
      error: unfinished ?? ("fault" in stored ? stored.fault : null),
      cleanup_errors: cleanups.filter((fault) => fault !== null),
      at: this.#now(),
    };
  }

  /** A state for hooks that may use handles; opens them when this harness has not yet. */
  async #openLive(rollout: Rollout): Promise<HookState> {
    if (this.#live === null) {
      const effectRandom = this.#random;
      // A stream of its own: whether handles are reopened here must not shift what the effect itself draws.
      this.#seedFor("live", rollout);
      const before = Object.freeze(openState(rollout, undefined, this.#context));
      const value = await within("openLive", () => this.#environment.openLive(before, this.#can));
      this.#random = effectRandom;
      this.#live = { value, rollout };
    }
    this.#live = { value: this.#live.value, rollout };
    return openState(rollout, this.#live.value, this.#context);
  }

  #seedFor(purpose: string, rollout: Rollout): void {
    this.#random = seededRandom(this.#seed, purpose, rollout.turns.length);
  }
}

/** What the environment adds to the history is checked like anything else from outside. */
function checkedPrompt(prompt: Messages, rollout: Rollout): Messages {
  const kept = commonPrefix(historyOf(rollout.turns), prompt);
  return [...prompt.slice(0, kept), ...Messages.parse(prompt.slice(kept))];
}

function failure(error: Error): Event {
  return { type: "failed", failure: "environment", error: serializeError(error) };
}

async function within<T>(where: string, run: () => Awaitable<T>): Promise<T> {
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

async function faultOf(
  where: string,
  run: () => Awaitable<unknown>,
): Promise<SerializedError | null> {
  const outcome = await outcomeOf(where, run);
  return "fault" in outcome ? outcome.fault : null;
}
