/**
 * Drives one rollout from its stored state to its end, inside the alarm of the object, concurrently with other
 * rollouts.
 *
 * Invariants. The intent of a call is on disk before the call is sent (the output gate holds the request until the
 * write is safe); in a run with a cap, so is the reservation for the call. The answer, the environment's reply, the new
 * state and the next intent are one write if the hook does no I/O; else the answer is written before the hook's first
 * call is sent. What a kill lost is done again from the last write: environment code is deterministic given its state,
 * and the call carries the same idempotency key. `drive` returns when the rollout is done, or must wait, or the alarm
 * hands over.
 */
import {
  type CancelReason,
  EnvError,
  type FailureClass,
  InfraError,
  type SerializedError,
  serializeError,
} from "../../contract/errors.ts";
import { type CallSize, type CostPrices, wantedFor } from "../../core/costs/call-budget.ts";
import type { Player } from "../../core/protocol/environment-code.ts";
import { advance, type Effect, type HookEffect, nextEffect, type Rollout } from "../../core/rollout/rollout.ts";
import { settlesAtOnce } from "../../core/step-timer.ts";
import type { HoldCall } from "../endpoint/call.ts";
import { noteOffered } from "../environment/offered-tools.ts";
import { GIVEN_UP, outsideQuarantine, type Quarantine, stoppedPlatform } from "../environment/quarantine.ts";
import type { StageClock } from "../environment/stage-clock.ts";
import { idsOf, logError } from "../kit/log.ts";
import type { AgentRefusal } from "../messages/agent-wire.ts";
import type { TurnOutcome, Unasked } from "../messages/endpoint-wire.ts";
import type { BudgetReply, RolloutSpec } from "../messages/wire.ts";
import { EventLoopYield } from "../run/event-loop-yield.ts";
import { afterAsk, afterOutcome, asking, type BudgetAsk, mayCall, withCall } from "./call-budget.ts";
import { afterCall } from "./call-outcome.ts";
import type { CallModel, Departure } from "./model-call.ts";
import type { RolloutStore } from "./store.ts";

export interface DriverParts {
  readonly spec: RolloutSpec;
  readonly store: RolloutStore;
  readonly player: Player;
  readonly callModel: CallModel;
  /** Called before a failed call is retried. */
  readonly hold: HoldCall;
  /** Null unless the rollout's run has a cap. */
  readonly callBudgeting: CallBudgeting | null;
  readonly now: () => number;
  readonly clock: StageClock;
  /** When the rollout is stopped, in epoch milliseconds; infinity without a deadline. */
  readonly deadline: number;
  /** True if a step of at most this many milliseconds may begin: false once the alarm hands over to its next one. */
  readonly mayBegin: (longestMs: number) => boolean;
  /** True if there is memory for the rollout at its present size; else it waits, out of memory. */
  readonly fits: (rollout: Rollout) => boolean;
  /** Resolves when all writes are on disk. */
  readonly onDisk: () => Promise<void>;
  /** Set if the next step may have killed the process before. */
  readonly quarantine: Quarantine | null;
  /** Null unless an agent plays the rollout. */
  readonly agent: AgentSeat | null;
}

/** What an agent does between two calls, as the driver needs it. */
export interface AgentSeat {
  /** When the rollout must continue although the agent does nothing (epoch milliseconds); null: it has done something. */
  readonly idleUntil: (rollout: Rollout) => Promise<number | null>;
  /** The rollout after what the agent did. */
  readonly advance: (rollout: Rollout) => Rollout;
  /** How its agent ended the rollout, if the rollout's end is not written yet: then no further call is made. */
  readonly ending: () => "finished" | "lost" | null;
  /** Resolves the agent's call with the last turn, or with a refusal. */
  readonly settle: (rollout: Rollout, refusal: AgentRefusal | null) => void;
}

/** How calls are paid for in a run with a cap. */
export interface CallBudgeting {
  readonly prices: CostPrices;
  /** Size of the outstanding call; null if no call will be sent. */
  readonly sizeOf: (rollout: Rollout) => Promise<CallSize | null>;
  /** Requests a higher ceiling from the run. */
  readonly ask: (ask: BudgetAsk) => Promise<BudgetReply>;
}

/** After a cancel with this reason no environment code runs any more. */
const SHED: CancelReason = "overload";

/** Spreads the ends of cancelled rollouts in this process. */
const ENDS = new EventLoopYield();

/** How long the run may take to answer a request for money before reconciliation asks about the rollout. */
const ASK_MS = 5000;

const DOING = {
  setup: "its environment was setting it up",
  reply: "its environment was replying",
  close: "its environment was closing it",
} as const;

const PROMPT_TOO_LONG: AgentRefusal = {
  status: 400,
  code: "context_length_exceeded",
  message: "the prompt is longer than the context of the model: shorten it",
};

const ENDED_MEANWHILE: AgentRefusal = {
  status: 409,
  code: "rollout_ended",
  message: "the rollout was ended before the call was answered",
};

type Drive = { readonly done: Rollout } | { readonly wakeAt: number };

export class RolloutDriver {
  readonly #parts: DriverParts;
  #cancel: CancelReason | null;
  #quarantine: Quarantine | null;
  /** Aborts the model call in flight. */
  #calling = new AbortController();
  #hookRan = false;
  #hadItsTurn = false;
  /** The latest time of its next event: reconciliation need not ask before. */
  nextEventAt = 0;
  /** True while it makes a call, or waits for a connection to make it: the stored state may not say so. */
  isCalling = false;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.#cancel = parts.store.cancelRequest();
    this.#quarantine = parts.quarantine;
  }

  /** Ends the rollout at its next step. Aborts the call in flight, and waits for no hook except closing ones. */
  cancel(reason: CancelReason): void {
    this.#cancel = reason;
    this.#parts.clock.interrupt();
    this.#calling.abort();
  }

  async drive(from: Rollout): Promise<Drive> {
    const { store, now, deadline } = this.#parts;
    let rollout = this.#resume(from);
    for (let first = true; ; first = false) {
      await this.#endsInTurn();
      rollout = this.#withoutCall(this.#interrupt(rollout));
      const effect = nextEffect(rollout);
      if (effect.kind === "done") {
        store.save(rollout);
        return { done: rollout };
      }
      const at = now();
      const notBefore = effect.kind === "sample" ? Math.max(effect.not_before, store.callBudget().again_at) : 0;
      // However short its time is, an alarm makes one step; else a rollout might never make any.
      if (notBefore > at || !(first || this.#mayBegin(effect)) || !this.#fits(effect, rollout)) {
        store.save(rollout);
        await this.#letGo();
        // A wait beyond the deadline ends at the deadline.
        return { wakeAt: Math.min(deadline, Math.max(notBefore, at)) };
      }
      this.isCalling = effect.kind === "sample";
      const after = effect.kind === "sample" ? await this.#trySample(rollout) : await this.#step(effect, rollout);
      if ("wakeAt" in after) return after;
      rollout = after;
    }
  }

  /** Between two calls an agent takes the place of the environment's reply. */
  async #step(effect: HookEffect, rollout: Rollout): Promise<Rollout | { readonly wakeAt: number }> {
    const { agent, store, now, deadline } = this.#parts;
    if (agent === null || effect.kind !== "reply") return await this.#perform(effect, rollout);
    const idleUntil = await agent.idleUntil(rollout);
    // It may have been cancelled meanwhile.
    const current = this.#interrupt(rollout);
    if (current.phase !== "reply") return current;
    if (idleUntil === null) return agent.advance(current);
    store.rest(current);
    await this.#letGo();
    return { wakeAt: Math.max(now(), Math.min(deadline, idleUntil)) };
  }

  /** A cancelled rollout may always continue. */
  #mayBegin(effect: Effect): boolean {
    const { spec, clock, mayBegin } = this.#parts;
    if (this.#cancel !== null) return true;
    return mayBegin(effect.kind === "sample" ? spec.limits.call_timeout_s * 1000 : clock.longestOf(effect.kind));
  }

  /** Checked before each model call: memory that it needs since the last one is counted now. */
  #fits(effect: Effect, rollout: Rollout): boolean {
    return effect.kind !== "sample" || this.#parts.fits(rollout);
  }

  /** Closes open handles before a wait; they are opened again when the rollout continues. */
  async #letGo(): Promise<void> {
    const fault = await this.#parts.player.dispose();
    if (fault === null) return;
    logError("closeLive", idsOf(this.#parts.spec), new EnvError(fault.error_chain_str));
  }

  /** Resumes in a reply after a tool began that must not run twice: its outcome is unknown, so the rollout fails. */
  #resume(rollout: Rollout): Rollout {
    const begun = this.#parts.store.unrepeatable();
    if (rollout.phase !== "reply" || begun?.turn !== rollout.turns.length) return rollout;
    const message = `interrupted while running ${begun.tool}, which must not run twice`;
    const error = serializeError(new InfraError(message));
    return advance(rollout, { type: "failed", failure: "tool_outcome_unknown", error });
  }

  /** A cancelled rollout has aborted its call; its end waits until the process has time for it. */
  async #endsInTurn(): Promise<void> {
    if (this.#cancel === null || this.#hadItsTurn) return;
    this.#hadItsTurn = true;
    this.#parts.store.keepAnswer();
    await ENDS.turn();
  }

  #interrupt(rollout: Rollout): Rollout {
    if (rollout.phase === "close" || rollout.phase === "done") return rollout;
    const after = this.#interrupted(rollout);
    // From this write on, the end that its agent reports comes too late.
    if (after !== rollout && this.#parts.agent !== null) this.#parts.store.save(after);
    return after;
  }

  #interrupted(rollout: Rollout): Rollout {
    // What its agent reported in time counts.
    if (this.#parts.agent?.ending() === "finished" && this.#cancel !== SHED) return rollout;
    if (this.#cancel !== null) return advance(rollout, { type: "cancelled", reason: this.#cancel });
    if (this.#parts.now() < this.#parts.deadline) return rollout;
    return advance(rollout, { type: "timed_out" });
  }

  /** Drops a call that waits for its next try, or for money, once the agent has ended the rollout. */
  #withoutCall(rollout: Rollout): Rollout {
    const { agent } = this.#parts;
    if (rollout.phase !== "sample" || agent === null || agent.ending() === null) return rollout;
    const after = advance(rollout, { type: "refused" });
    agent.settle(after, ENDED_MEANWHILE);
    return after;
  }

  /** Makes the call. A rollout that must wait for its endpoint is tried again when it is due. */
  async #trySample(rollout: Rollout): Promise<Rollout> {
    const began = this.#parts.now();
    const held = await this.#parts.hold(rollout);
    // It was cancelled meanwhile: the call is not sent.
    if (this.#cancel !== null) return held;
    if (held !== rollout) return held;
    const bound = await this.#boundOf(rollout);
    return bound === null ? rollout : await this.#sample(rollout, bound, began);
  }

  /** The maximum cost of the call, once it is paid for; null if it is not: the rollout waits, or was cancelled. */
  async #boundOf(rollout: Rollout): Promise<number | null> {
    const { store, now, callBudgeting } = this.#parts;
    const size = (await callBudgeting?.sizeOf(rollout)) ?? null;
    // Without a cap nothing is paid for; a call that cannot be sent reports that itself.
    if (callBudgeting === null || size === null) return 0;
    const { need, wish } = wantedFor(callBudgeting.prices, size);
    if (mayCall(store.callBudget(), need)) return need;
    const asked = asking(store.callBudget());
    store.setCallBudget(asked);
    store.save(rollout);
    this.nextEventAt = now() + ASK_MS;
    const reply = await callBudgeting.ask({ asks: asked.asks, spent: asked.spent, need, wish });
    if (reply.over === true) this.#cancel ??= "budget";
    if (this.#cancel !== null) return null;
    store.setCallBudget(afterAsk(asked, reply, now()));
    return mayCall(store.callBudget(), need) ? need : null;
  }

  async #sample(before: Rollout, bound: number, began: number): Promise<Rollout> {
    const { spec, store, now, deadline, mayBegin } = this.#parts;
    const waitMs = Math.min(spec.limits.call_timeout_s * 1000, deadline - now());
    this.nextEventAt = now() + waitMs;
    let rollout = before;
    let decided = before;
    const left = Promise.withResolvers<void>();
    const departure: Departure = {
      from: before,
      waitMs,
      decide: (token_prompt) => {
        decided = advance(before, { type: "prompt_decided", token_prompt });
        return decided;
      },
      leave: () => {
        // In a training run the send time decides which weights the call met.
        const at = spec.policy_version === undefined ? {} : { at: now() };
        rollout = advance(decided, { type: "sent", ...at });
        store.setCallBudget(withCall(store.callBudget(), bound));
        store.save(rollout);
        left.resolve();
      },
      latestMs: () => deadline - now(),
      mayLeave: () => now() < deadline && mayBegin(waitMs),
    };
    const outcome = await this.#depart(departure, () => rollout, left.promise);
    if (outcome.kind === "later") return rollout;
    if (outcome.kind === "held") return afterCall(rollout, outcome, { spec, at: now(), began });
    store.setCallBudget(afterOutcome(store.callBudget(), outcome, spec.budget));
    const at = now();
    // Aborted because of a cancel or the deadline: the next step handles that.
    if (outcome.kind === "aborted" && (this.#cancel !== null || at >= deadline)) return rollout;
    const { agent } = this.#parts;
    const refusal = outcome.kind === "answered" ? null : this.#refusalOf(outcome.kind);
    const after = afterCall(rollout, outcome, { spec, at, began, isRefused: refusal !== null });
    store.saveOutcome(after);
    if (after.phase !== "sample") agent?.settle(after, refusal);
    return after;
  }

  /** Why the agent gets no answer to its call, although the call's failure does not end the rollout; null if it does. */
  #refusalOf(outcome: Exclude<TurnOutcome | Unasked, { kind: "answered" }>["kind"]): AgentRefusal | null {
    const { agent } = this.#parts;
    if (agent === null) return null;
    // What its agent reported in time counts.
    if (agent.ending() !== null) return ENDED_MEANWHILE;
    // An agent may shorten its prompt and call again.
    return outcome === "prompt_too_long" ? PROMPT_TOO_LONG : null;
  }

  /** If a call cannot be sent because a store is unavailable, the hook before it must not run again. */
  async #depart(departure: Departure, current: () => Rollout, left: Promise<void>): ReturnType<CallModel> {
    const { callModel, store, agent } = this.#parts;
    const before = current();
    this.#calling = new AbortController();
    const calling = callModel(departure, this.#calling);
    // It waits for a connection, or for its endpoint to be opened: meanwhile the state before it is written. The call of
    // an agent needs no such write: if the process is killed, the agent repeats it.
    const atOnce = agent !== null || (await settlesAtOnce(Promise.race([calling, left])));
    if (!atOnce && current() === before) await this.#keep(before, calling);
    try {
      return await calling;
    } catch (thrown) {
      if (current() === before) store.save(before);
      throw thrown;
    }
  }

  /** If this write fails, the waiting call must not be sent. */
  async #keep(before: Rollout, calling: Promise<unknown>): Promise<void> {
    try {
      this.#parts.store.save(before);
    } catch (thrown) {
      this.#calling.abort();
      await calling.catch(() => undefined);
      throw thrown;
    }
  }

  async #perform(effect: HookEffect, rollout: Rollout): Promise<Rollout> {
    const { player, now, store, clock, deadline } = this.#parts;
    if (this.#cancel === SHED) return endedWithoutHooks(rollout, null, now());
    const left = effect.kind === "close" ? Number.POSITIVE_INFINITY : deadline - now();
    this.nextEventAt = now() + Math.min(clock.longestMs, left);
    const performed = await this.#runAndAnswer(() => player.perform(effect, rollout));
    if (performed === GIVEN_UP) {
      return givenUp(rollout, DOING[effect.kind], now());
    }
    noteOffered(performed);
    const { event } = performed;
    const cut = event.type === "timed_out" && this.#cancel !== null;
    const after = cut ? this.#interrupt(rollout) : advance(rollout, event);
    // Else the same effect would be performed again and again, without a wait.
    if (after === rollout) throw new TypeError(`${effect.kind} came to ${event.type}`);
    if (store.isUnderWay()) store.save(after);
    return after;
  }

  /**
   * The quarantine for the next hook: for the first hook in this process (also if an answer precedes it, which was lost
   * with the process), and for those that follow until something is written: else the next process would do the same
   * again.
   */
  async #quarantined(): Promise<Quarantine | null> {
    const { store } = this.#parts;
    if (this.#quarantine === null || !(this.#hookRan && store.ranHere())) return this.#quarantine;
    // Write first: else the next hook could lose what earlier ones left, and the next process would run them alone.
    await this.#parts.onDisk();
    await this.#quarantine.end();
    this.#quarantine = null;
    return null;
  }

  /** The result of a hook. Only work that this process did not begin can be quarantined. */
  async #runAndAnswer<T>(work: () => Promise<T>): Promise<T | typeof GIVEN_UP> {
    const { store, spec } = this.#parts;
    // Other work in the process may kill it meanwhile.
    if (this.#quarantine !== null) store.keepAnswer();
    const quarantine = await this.#quarantined();
    this.#hookRan = true;
    if (quarantine !== null) return await quarantine.run(work);
    return await keptMeanwhile(store, () => outsideQuarantine(spec.scope.orgId, work));
  }
}

/** The result of a hook. If the hook waits for anything, the answer before it is written meanwhile. */
async function keptMeanwhile<T>(store: RolloutStore, work: () => Promise<T>): Promise<T> {
  const working = work();
  if (!(await settlesAtOnce(working))) store.keepAnswer();
  return await working;
}

/** Ends a quarantined rollout that must not be tried again. `during`: a sentence about what killed the process. */
export function givenUp(rollout: Rollout, during: string, at: number): Rollout {
  const message = stoppedPlatform(`${during}, after ${rollout.turns.length} turns`);
  const error = serializeError(new EnvError(message));
  return endedWithoutHooks(rollout, { failure: "environment", error }, at);
}

/** Ends the rollout in its present state, without hooks. `failed` null: it was cancelled. */
export function endedWithoutHooks(
  rollout: Rollout,
  failed: { readonly failure: FailureClass; readonly error: SerializedError } | null,
  at: number,
): Rollout {
  const stopped = failed === null ? rollout : advance(rollout, { type: "failed", ...failed });
  const { state } = stopped;
  const error = failed?.error ?? null;
  return advance(stopped, { type: "closed", state, error, cleanup_errors: [], at });
}
