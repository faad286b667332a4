/**
 * What a run does between calls: it dispatches rollouts, sends collected messages, reconciles, and sets its alarm.
 *
 * Invariants. What is sent was on disk before; reconciliation sends again what a kill lost. A burst of calls is
 * debounced into one tick. No tick and no reconciliation throws.
 */

import { isArmed } from "../kit/alarms.ts";
import { idsOf, logError } from "../kit/log.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";
import { nextRunAlarm } from "./alarm.ts";
import { clockOf, needsOf, type RunParts } from "./clock.ts";
import { passDeadline } from "./control.ts";
import { Debounce } from "./debounce.ts";
import type { JudgementOrder } from "./outbox.ts";
import type { RunStore } from "./store.ts";

interface TickParts extends RunParts {
  readonly judging: RunParts["judging"] & {
    renew(spec: RunSpec): Promise<void>;
    passCap(spec: RunSpec, idle: number): void;
    dispatch(spec: RunSpec): readonly JudgementOrder[];
    reconcile(spec: RunSpec): readonly JudgementOrder[];
  };
  readonly training: RunParts["training"] & { advance(spec: RunSpec): Promise<void> | null };
  /** Called when what was dispatched is on disk and is about to be sent. */
  readonly onDispatched: (spec: RunSpec) => void;
}

export class RunTicks {
  readonly #ctx: DurableObjectState;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #parts: TickParts;
  readonly #debounce = new Debounce();
  #armedAt: number | null = null;

  constructor(ctx: DurableObjectState, store: RunStore, now: () => number, parts: TickParts) {
    this.#ctx = ctx;
    this.#store = store;
    this.#now = now;
    this.#parts = parts;
  }

  /** Schedules a tick in a few milliseconds, for all calls until then. */
  soon(spec: RunSpec): void {
    // A run with nothing in flight gets no calls: if the process dies before the next lines, an alarm must exist.
    if (this.#store.head().in_flight === 0) this.#ctx.waitUntil(this.arm(spec));
    this.#debounce.soon(() => this.#ctx.waitUntil(this.play(spec)));
  }

  /** One tick: dispatches what fits, sends collected messages, wakes readers, sets the alarm. */
  play(spec: RunSpec): Promise<void> {
    return this.#parts.closing.during(() => this.#goOn(spec));
  }

  /** The work of an alarm, before its tick. */
  reconcile(spec: RunSpec): Promise<void> {
    this.#armedAt = null;
    return this.#parts.closing.during(() => this.#lookAfter(spec));
  }

  async arm(spec: RunSpec): Promise<void> {
    const at = nextRunAlarm(clockOf(this.#parts, spec));
    if (at === null || isArmed(this.#armedAt, at, this.#now())) return;
    this.#armedAt = at;
    await this.#ctx.storage.setAlarm(at);
  }

  async #lookAfter(spec: RunSpec): Promise<void> {
    const { dispatcher, judging, housekeeping } = this.#parts;
    try {
      const subrequests = new Subrequests();
      passDeadline(this.#store, spec, this.#now());
      await dispatcher.tell(spec, subrequests);
      // While rollouts must be notified to stop nothing else is done: each of them may be about to call its model.
      if (dispatcher.unnotified()) return;
      await dispatcher.reconcile(spec, subrequests);
      for (const order of judging.reconcile(spec)) dispatcher.toJudge(order);
      await housekeeping.writeRow(spec, subrequests);
      await housekeeping.tell(spec, subrequests);
      await housekeeping.free(spec, subrequests);
    } catch (thrown) {
      logError("run alarm", idsOf(spec), thrown);
    }
  }

  async #goOn(spec: RunSpec): Promise<void> {
    const { dispatcher, judging, leases, closing, training, reclaims, onDispatched } = this.#parts;
    dispatcher.cutSegments();
    await leases.renew(spec, () => needsOf(this.#parts, spec));
    await judging.renew(spec);
    dispatcher.dispatch(spec);
    await reclaims.ask(spec);
    judging.passCap(spec, reclaims.idle());
    await dispatcher.wakeNeedy(spec);
    for (const order of judging.dispatch(spec)) dispatcher.toJudge(order);
    dispatcher.cutSegments();
    onDispatched(spec);
    try {
      await dispatcher.send(spec);
    } catch (thrown) {
      // Rollouts and scoring groups whose message is lost are silent: reconciliation sends them again.
      logError("queue send", idsOf(spec), thrown);
    }
    const trained = closing.isClosed ? null : training.advance(spec);
    if (trained !== null) {
      // Set before it is done: if the process dies meanwhile, an alarm must exist.
      await this.arm(spec);
      await trained;
    }
    dispatcher.noteRunning(spec);
    await this.arm(spec);
  }
}
