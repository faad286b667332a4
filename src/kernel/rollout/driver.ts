/**
 * Drives one rollout from where its storage left it to its end, inside the alarm of the object, beside other rollouts.
 *
 * Invariants. The intent of a call is on disk before the call leaves (the output gate holds the request until the
 * write is safe), and so is what the call may take, in a run with a cap. Its answer, the environment's reply, the new state and the next intent are one write if the hook does
 * no I/O; else the answer is written before the hook's first call leaves. Whatever is lost by a kill is done again from
 * the last write: environment code is deterministic given its state, and the call carries the same idempotency key.
 * `drive` returns when the rollout is done or must wait, or the alarm hands over to the next one.
 */
import {
  type CancelReason,
  EnvError,
  type FailureClass,
  InfraError,
  type SerializedError,
  serializeError,
} from "../../contract/errors.ts";
import { type CallSize, type CostPrices, wantedFor } from "../../core/costs/allowance.ts";
import type { Harness } from "../../core/rollout/harness.ts";
import { advance, type Effect, nextEffect, type Rollout } from "../../core/rollout/rollout.ts";
import type { HoldCall } from "../endpoint/call.ts";
import { type StageClock, settlesAtOnce } from "../environment/stage-clock.ts";
import { besideSuspects, GIVEN_UP, type Suspect, stoppedPlatform } from "../environment/suspects.ts";
import { idsOf, logError } from "../kit/log.ts";
import type { AllowanceReply, RolloutSpec } from "../messages/wire.ts";
import { Apart } from "../run/apart.ts";
import { afterCall } from "./call-outcome.ts";
import type { CallModel, Departure } from "./model-call.ts";
import { afterAsk, afterOutcome, asking, mayCall, type PurseAsk, withCall } from "./purse.ts";
import type { RolloutStore } from "./store.ts";

export interface DriverParts {
  readonly spec: RolloutSpec;
  readonly store: RolloutStore;
  readonly harness: Harness;
  readonly callModel: CallModel;
  /** Asked before a failed call is tried again. */
  readonly hold: HoldCall;
  /** Of a rollout whose run has a cap; null for any other. */
  readonly allowance: Allowance | null;
  readonly now: () => number;
  readonly clock: StageClock;
  /** Epoch milliseconds at which the rollout is stopped; infinity when it may go on. */
  readonly deadline: number;
  /** Whether a step that may take so many milliseconds may begin: not once the object's alarm hands over to its next one. */
  readonly mayBegin: (longestMs: number) => boolean;
  /** Whether there is memory for it as large as it is now; else it waits, and is held by none. */
  readonly fits: (rollout: Rollout) => boolean;
  /** Resolves when everything that was written is on disk. */
  readonly onDisk: () => Promise<void>;
  /** Set where what comes next may have ended the process before. */
  readonly suspect: Suspect | null;
}

/** How calls are paid for. */
export interface Allowance {
  readonly prices: CostPrices;
  /** Of the outstanding call; null where none will leave. */
  readonly sizeOf: (rollout: Rollout) => CallSize | null;
  /** Asks the run for more. */
  readonly ask: (ask: PurseAsk) => Promise<AllowanceReply>;
}

/** The reason of a cancel after which nothing of the environment runs any more. */
const SHED: CancelReason = "overload";

/** Of all rollouts that are told to stop, in this process. */
const ENDS = new Apart();

/** How long a run is given to say what may be spent, before it is asked how its rollout stands. */
const ASK_MS = 5000;

const DOING = {
  setup: "its environment was setting it up",
  reply: "its environment was replying",
  close: "its environment was closing it",
} as const;

type Drive = { readonly done: Rollout } | { readonly wakeAt: number };

export class RolloutDriver {
  readonly #parts: DriverParts;
  #cancel: CancelReason | null;
  #suspect: Suspect | null;
  /** Of the model call in flight. */
  #calling = new AbortController();
  #hookRan = false;
  #hadItsTurn = false;
  /** When the rollout has something to say again at the latest; a sweep need not ask before. */
  nextEventAt = 0;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.#cancel = parts.store.cancelRequest();
    this.#suspect = parts.suspect;
  }

  /** Ends the rollout at its next step; aborts the call in flight, and waits for no hook but those that close. */
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
      rollout = this.#interrupt(rollout);
      const effect = nextEffect(rollout);
      if (effect.kind === "done") {
        store.save(rollout);
        return { done: rollout };
      }
      const at = now();
      const notBefore = effect.kind === "sample" ? Math.max(effect.not_before, store.purse().again_at) : 0;
      // However short its time, an alarm takes one step: else none would ever be taken.
      if (notBefore > at || !(first || this.#mayBegin(effect)) || !this.#fits(effect, rollout)) {
        store.save(rollout);
        await this.#letGo();
        // A back-off longer than the rollout has left ends with the rollout.
        return { wakeAt: Math.min(deadline, Math.max(notBefore, at)) };
      }
      rollout = effect.kind === "sample" ? await this.#trySample(rollout) : await this.#perform(effect, rollout);
    }
  }

  /** One that was told to stop is kept waiting by none. */
  #mayBegin(effect: Effect): boolean {
    const { spec, clock, mayBegin } = this.#parts;
    if (this.#cancel !== null) return true;
    return mayBegin(effect.kind === "sample" ? spec.limits.call_timeout_s * 1000 : clock.longestOf(effect.kind));
  }

  /** Asked before each call: what it grew by since the last one is counted now. */
  #fits(effect: Effect, rollout: Rollout): boolean {
    return effect.kind !== "sample" || this.#parts.fits(rollout);
  }

  /** Handles are not held through a wait: whoever goes on opens them again. */
  async #letGo(): Promise<void> {
    const fault = await this.#parts.harness.dispose();
    if (fault === null) return;
    logError("closeLive", idsOf(this.#parts.spec), new EnvError(fault.error_chain_str));
  }

  /** Cut off in a reply, after a tool began that must not run twice: whether it ran to its end nobody knows. */
  #resume(rollout: Rollout): Rollout {
    const begun = this.#parts.store.unrepeatable();
    if (rollout.phase !== "reply" || begun?.turn !== rollout.turns.length) return rollout;
    const message = `interrupted while running ${begun.tool}, which must not run twice`;
    const error = serializeError(new InfraError(message));
    return advance(rollout, { type: "failed", failure: "tool_outcome_unknown", error });
  }

  /** One that is told to stop has hung up; its end waits for its turn. */
  async #endsInTurn(): Promise<void> {
    if (this.#cancel === null || this.#hadItsTurn) return;
    this.#hadItsTurn = true;
    this.#parts.store.keepAnswer();
    await ENDS.turn();
  }

  #interrupt(rollout: Rollout): Rollout {
    if (rollout.phase === "close" || rollout.phase === "done") return rollout;
    if (this.#cancel !== null) return advance(rollout, { type: "cancelled", reason: this.#cancel });
    if (this.#parts.now() < this.#parts.deadline) return rollout;
    return advance(rollout, { type: "timed_out" });
  }

  /** One that is to wait for its endpoint comes back here when it is due. */
  async #trySample(rollout: Rollout): Promise<Rollout> {
    const began = this.#parts.now();
    const held = await this.#parts.hold(rollout);
    // Told to stop meanwhile: the call does not leave.
    if (this.#cancel !== null) return held;
    if (held !== rollout) return held;
    const bound = await this.#boundOf(rollout);
    return bound === null ? rollout : await this.#sample(rollout, bound, began);
  }

  /** What the call can take at most, once it is paid for; null while it is not: it waits, or was told to stop. */
  async #boundOf(rollout: Rollout): Promise<number | null> {
    const { store, now, allowance } = this.#parts;
    const size = allowance?.sizeOf(rollout) ?? null;
    // In a run without a cap nothing is paid for, and a call that will not leave says so itself.
    if (allowance === null || size === null) return 0;
    const { need, wish } = wantedFor(allowance.prices, size);
    if (mayCall(store.purse(), need)) return need;
    const asked = asking(store.purse());
    store.setPurse(asked);
    store.save(rollout);
    this.nextEventAt = now() + ASK_MS;
    const reply = await allowance.ask({ asks: asked.asks, spent: asked.spent, need, wish });
    if (reply.over === true) this.#cancel ??= "budget";
    if (this.#cancel !== null) return null;
    store.setPurse(afterAsk(asked, reply, now()));
    return mayCall(store.purse(), need) ? need : null;
  }

  async #sample(before: Rollout, bound: number, began: number): Promise<Rollout> {
    const { spec, store, now, deadline, mayBegin } = this.#parts;
    const waitMs = Math.min(spec.limits.call_timeout_s * 1000, deadline - now());
    this.nextEventAt = now() + waitMs;
    let rollout = before;
    const left = Promise.withResolvers<void>();
    const departure: Departure = {
      from: before,
      waitMs,
      leave: () => {
        // Of a training run: which weights the call met is told by when it was under way.
        const at = spec.policy_version === undefined ? {} : { at: now() };
        rollout = advance(before, { type: "sent", ...at });
        store.setPurse(withCall(store.purse(), bound));
        store.save(rollout);
        left.resolve();
      },
      latestMs: () => deadline - now(),
      mayLeave: () => now() < deadline && mayBegin(waitMs),
    };
    const outcome = await this.#depart(departure, () => rollout, left.promise);
    if (outcome.kind === "later") return rollout;
    if (outcome.kind === "held") return afterCall(rollout, outcome, { spec, at: now(), began });
    store.setPurse(afterOutcome(store.purse(), outcome, spec.budget));
    const at = now();
    // Cut short by what the next step handles.
    if (outcome.kind === "aborted" && (this.#cancel !== null || at >= deadline)) return rollout;
    const after = afterCall(rollout, outcome, { spec, at, began });
    store.saveOutcome(after);
    return after;
  }

  /** A call that could not leave, because a store is away, must not make the hook before it run again. */
  async #depart(departure: Departure, current: () => Rollout, left: Promise<void>): ReturnType<CallModel> {
    const { callModel, store } = this.#parts;
    const before = current();
    this.#calling = new AbortController();
    const calling = callModel(departure, this.#calling);
    // It waits for a connection, or for its endpoint to be opened: what came before is on disk meanwhile.
    const atOnce = await settlesAtOnce(Promise.race([calling, left]));
    if (!atOnce && current() === before) await this.#keep(before, calling);
    try {
      return await calling;
    } catch (thrown) {
      if (current() === before) store.save(before);
      throw thrown;
    }
  }

  /** A call that waits must not leave once this could not be written. */
  async #keep(before: Rollout, calling: Promise<unknown>): Promise<void> {
    try {
      this.#parts.store.save(before);
    } catch (thrown) {
      this.#calling.abort();
      await calling.catch(() => undefined);
      throw thrown;
    }
  }

  async #perform(effect: Exclude<Effect, { kind: "sample" | "done" }>, rollout: Rollout): Promise<Rollout> {
    const { harness, now, store, clock, deadline } = this.#parts;
    if (this.#cancel === SHED) return endedWithoutHooks(rollout, null, now());
    const left = effect.kind === "close" ? Number.POSITIVE_INFINITY : deadline - now();
    this.nextEventAt = now() + Math.min(clock.longestMs, left);
    const event = await this.#heard(() => harness.perform(effect, rollout));
    if (event === GIVEN_UP) {
      return givenUp(rollout, DOING[effect.kind], now());
    }
    const cut = event.type === "timed_out" && this.#cancel !== null;
    const after = cut ? this.#interrupt(rollout) : advance(rollout, event);
    // Else the same effect would be performed again and again, without a wait.
    if (after === rollout) throw new TypeError(`${effect.kind} came to ${event.type}`);
    if (store.isUnderWay()) store.save(after);
    return after;
  }

  /**
   * Its first hook in this process, also behind a model's answer (which the hook that ended the process took with it), and
   * those that follow until something is written: without that the next process would do the same again.
   */
  async #suspected(): Promise<Suspect | null> {
    const { store } = this.#parts;
    if (this.#suspect === null || !(this.#hookRan && store.ranHere())) return this.#suspect;
    // Else the hook to come takes with it what those before it left, and the next process meets them alone.
    await this.#parts.onDisk();
    await this.#suspect.end();
    this.#suspect = null;
    return null;
  }

  /** The result of a hook. Only what this process did not begin can be a suspect. */
  async #heard<T>(work: () => Promise<T>): Promise<T | typeof GIVEN_UP> {
    const { store } = this.#parts;
    // Whatever else computes, and may end the process meanwhile.
    if (this.#suspect !== null) store.keepAnswer();
    const suspect = await this.#suspected();
    this.#hookRan = true;
    return suspect === null ? await keptMeanwhile(store, () => besideSuspects(work)) : await suspect.run(work);
  }
}

/** The result of a hook. One that waits for anything has the answer before it on disk meanwhile. */
async function keptMeanwhile<T>(store: RolloutStore, work: () => Promise<T>): Promise<T> {
  const working = work();
  if (!(await settlesAtOnce(working))) store.keepAnswer();
  return await working;
}

/** Ends a suspect that is not to be tried again; `during`: what ended the process, as a sentence. */
export function givenUp(rollout: Rollout, during: string, at: number): Rollout {
  const message = stoppedPlatform(`${during}, after ${rollout.turns.length} turns`);
  const error = serializeError(new EnvError(message));
  return endedWithoutHooks(rollout, { failure: "environment", error }, at);
}

/** Ends it as it stands. `failed` null: it was stopped. */
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
