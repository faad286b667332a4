/**
 * Drives one rollout from where its storage left it to its end, inside the object's alarm.
 *
 * Invariants. The intent of a call is on disk before the call leaves (the output gate holds the request until the
 * write is safe), its answer is written when it arrives, and the environment's reply, the new state and the next intent
 * follow in one write; when the hook does no I/O both reach the disk in the same sync. Whatever is lost by a kill is
 * done again from the last write: environment code is deterministic given its state, and the call carries the same
 * idempotency key. `drive` returns when the rollout is done or must wait.
 */
import { type CallOutcome, callModel } from "../clients/inference.ts";
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import {
  asEnvError,
  type CancelReason,
  EnvError,
  InfraError,
  ModelError,
  serializeError,
} from "../core/errors.ts";
import type { Harness } from "../core/harness.ts";
import type { ToolDefinition } from "../core/messages.ts";
import {
  advance,
  type Effect,
  type Event,
  nextEffect,
  outstandingPrompt,
  type Rollout,
} from "../core/rollout.ts";
import { backoffMs } from "./backoff.ts";
import { type EndpointAccess, EndpointUnusable } from "./endpoints.ts";
import { logError } from "./log.ts";
import type { RolloutStore } from "./rollout-store.ts";
import type { RolloutSpec } from "./wire.ts";

/** One alarm may last 15 minutes; a call may take 10. */
const ALARM_BUDGET_MS = 4 * 60_000;
/** An environment hook that settles no sooner is taken for one that never will. */
const HOOK_LIMIT_MS = 5 * 60_000;

export interface DriverParts {
  readonly spec: RolloutSpec;
  readonly store: RolloutStore;
  readonly environment: AnyEnvironment;
  readonly harness: Harness;
  readonly tools: readonly ToolDefinition[];
  readonly endpoint: () => Promise<EndpointAccess>;
  readonly now: () => number;
  /** Shown to tools as `call.signal`. */
  readonly signal: { aborted: boolean };
}

type Drive = { readonly done: Rollout } | { readonly wakeAt: number };

export class RolloutDriver {
  readonly #parts: DriverParts;
  readonly #deadline: (rollout: Rollout) => number;
  #cancel: CancelReason | null;
  #controller: AbortController | null = null;
  /** When the rollout has something to say again at the latest; a sweep need not ask before. */
  nextEventAt = 0;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.#cancel = parts.store.cancelRequest();
    const limits = [
      parts.environment.timeoutMs ?? Number.POSITIVE_INFINITY,
      (parts.spec.limits.rollout_timeout_s ?? Number.POSITIVE_INFINITY) * 1000,
    ];
    const limit = Math.min(...limits);
    this.#deadline = (rollout) => rollout.started_at + limit;
  }

  /** Ends the rollout at its next step and aborts the call in flight. */
  cancel(reason: CancelReason): void {
    this.#cancel = reason;
    this.#parts.signal.aborted = true;
    this.#controller?.abort();
  }

  async drive(from: Rollout): Promise<Drive> {
    const { store, now } = this.#parts;
    const until = now() + ALARM_BUDGET_MS;
    let rollout = this.#resume(from);
    for (;;) {
      rollout = this.#interrupt(rollout);
      const effect = nextEffect(rollout);
      if (effect.kind === "done") {
        store.save(rollout);
        return { done: rollout };
      }
      const at = now();
      const notBefore = effect.kind === "sample" ? effect.not_before : 0;
      if (notBefore > at || at > until) {
        store.save(rollout);
        await this.#letGo();
        // A back-off longer than the rollout has left ends with the rollout.
        return { wakeAt: Math.min(this.#deadline(rollout), Math.max(notBefore, at)) };
      }
      rollout =
        effect.kind === "sample"
          ? await this.#sample(rollout)
          : advance(rollout, await this.#perform(effect, rollout));
    }
  }

  /** Handles are not held through a wait: whoever goes on opens them again. */
  async #letGo(): Promise<void> {
    const fault = await this.#parts.harness.dispose();
    if (fault === null) return;
    logError("closeLive", this.#parts.spec.rollout_id, new EnvError(fault.error_chain_str));
  }

  /** A reply that was begun before a restart, with tools that must not run twice: whether they ran nobody knows. */
  #resume(rollout: Rollout): Rollout {
    const begun = this.#parts.store.unrepeatableTurn();
    if (rollout.phase !== "reply" || begun !== rollout.turns.length) return rollout;
    const names = this.#unrepeatable(rollout).join(", ");
    const error = serializeError(
      new InfraError(`cut off while running ${names}, which must not run twice`),
    );
    return advance(rollout, { type: "failed", failure: "tool_outcome_unknown", error });
  }

  #unrepeatable({ turns }: Rollout): readonly string[] {
    const last = turns.at(-1);
    return last === undefined ? [] : this.#parts.environment.unrepeatableCalls(last.completion);
  }

  #interrupt(rollout: Rollout): Rollout {
    if (rollout.phase === "close" || rollout.phase === "done") return rollout;
    if (this.#cancel !== null) return advance(rollout, { type: "cancelled", reason: this.#cancel });
    if (this.#parts.now() < this.#deadline(rollout)) return rollout;
    return advance(rollout, { type: "timed_out" });
  }

  async #sample(before: Rollout): Promise<Rollout> {
    const { store, now } = this.#parts;
    const endpoint = await this.#endpoint();
    if (endpoint instanceof EndpointUnusable) {
      return advance(before, {
        type: "failed",
        failure: "platform",
        error: serializeError(endpoint),
      });
    }
    const rollout = advance(before, { type: "sent" });
    store.save(rollout);
    const outcome = await this.#call(rollout, endpoint);
    const event = this.#read(outcome, rollout, now());
    if (event === null) return rollout;
    const after = advance(rollout, event);
    if (event.type === "answered") store.saveAnswer(after);
    else store.save(after);
    return after;
  }

  async #endpoint(): Promise<EndpointAccess | EndpointUnusable> {
    try {
      return await this.#parts.endpoint();
    } catch (thrown) {
      if (thrown instanceof EndpointUnusable) return thrown;
      throw thrown;
    }
  }

  async #call(rollout: Rollout, endpoint: EndpointAccess): Promise<CallOutcome> {
    const { spec, now, tools } = this.#parts;
    const controller = new AbortController();
    this.#controller = controller;
    const budget = spec.limits.call_timeout_s * 1000;
    const wait = Math.min(budget, this.#deadline(rollout) - now());
    this.nextEventAt = now() + wait;
    const timer = setTimeout(() => controller.abort(), wait);
    try {
      return await callModel({
        ...endpoint,
        model: spec.model,
        messages: outstandingPrompt(rollout),
        tools,
        sampling: spec.sampling,
        idempotency_key: `${spec.rollout_id}:${rollout.turns.length}`,
        signal: controller.signal,
      });
    } finally {
      clearTimeout(timer);
      this.#controller = null;
    }
  }

  /** Null: nothing came of the call and the interruption that caused it is handled at the next step. */
  #read(outcome: CallOutcome, rollout: Rollout, at: number): Event | null {
    switch (outcome.kind) {
      case "answered":
        return { type: "answered", response: outcome.response, at };
      case "prompt_too_long":
        return { type: "prompt_too_long" };
      case "aborted": {
        if (this.#cancel !== null || at >= this.#deadline(rollout)) return null;
        const limit = this.#parts.spec.limits.call_timeout_s;
        const error = new ModelError(`the model did not answer within ${limit} s`);
        return this.#retry(rollout, { failure: "timeout", error, retryAfterMs: null }, at);
      }
      case "failed": {
        const { error, retryable, retry_after_ms } = outcome;
        const failure = "provider" as const;
        if (!retryable) return { type: "failed", failure, error: serializeError(error) };
        return this.#retry(rollout, { failure, error, retryAfterMs: retry_after_ms }, at);
      }
    }
  }

  #retry(
    rollout: Rollout,
    failed: { failure: "provider" | "timeout"; error: Error; retryAfterMs: number | null },
    at: number,
  ): Event {
    const { spec } = this.#parts;
    const failures = rollout.intent?.failures ?? 0;
    if (failures >= spec.limits.max_retries) {
      return { type: "failed", failure: failed.failure, error: serializeError(failed.error) };
    }
    const seed = `${spec.rollout_id}:${rollout.turns.length}`;
    return { type: "call_failed", not_before: at + backoffMs(failures, failed.retryAfterMs, seed) };
  }

  /** Environment code under a limit: a hook whose promise never settles ends its rollout alone. */
  async #perform(effect: Exclude<Effect, { kind: "sample" | "done" }>, rollout: Rollout) {
    const { harness, now, store } = this.#parts;
    if (effect.kind === "reply" && this.#unrepeatable(rollout).length > 0) {
      store.beginUnrepeatable(rollout.turns.length);
    }
    const left = effect.kind === "close" ? HOOK_LIMIT_MS : this.#deadline(rollout) - now();
    const limit = Math.min(HOOK_LIMIT_MS, left);
    this.nextEventAt = now() + limit;
    const performed = harness.perform(effect, rollout);
    // Most hooks only compute: they have settled before a timer would be worth its making.
    if (await settlesAtOnce(performed)) return await performed;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<Event>((resolve) => {
      timer = setTimeout(() => resolve(this.#late(effect, rollout, limit)), limit);
    });
    try {
      return await Promise.race([performed, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #late(effect: { kind: "setup" | "reply" | "close" }, rollout: Rollout, limit: number): Event {
    this.#parts.signal.aborted = true;
    const message = `the environment's ${effect.kind} did not settle within ${limit / 1000} s`;
    const error = serializeError(asEnvError(new EnvError(message), effect.kind));
    if (effect.kind === "close") {
      const { state } = rollout;
      return { type: "closed", state, error, cleanup_errors: [], at: this.#parts.now() };
    }
    if (limit < HOOK_LIMIT_MS) return { type: "timed_out" };
    return { type: "failed", failure: "timeout", error };
  }
}

/** Microtasks a hook without I/O may take: each `await` in it costs a few. */
const PROMPT_TICKS = 200;

/** True when the promise settles without any I/O. Harness promises never reject. */
async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(() => {
    settled = true;
  });
  for (let tick = 0; tick < PROMPT_TICKS && !settled; tick += 1) await null;
  return settled;
}
