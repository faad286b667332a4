/**
 * What a run does between the calls that others make: it dispatches, sends what has gathered, looks after what is silent,
 * and arms its alarm.
 *
 * Invariants. What is sent was on disk before; whatever a kill swallows the sweep sends again. Dispatch and sends are
 * gathered: a burst is one round. No round and no sweep throws.
 */

import { idsOf, logError } from "../kit/log.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { RunSpec } from "../messages/wire.ts";
import { nextRunAlarm } from "./alarm.ts";
import { clockOf, needsOf, type RunParts } from "./clock.ts";
import { passDeadline } from "./control.ts";
import { Gathering } from "./gathering.ts";
import type { JudgementOrder } from "./outbox.ts";
import type { RunStore } from "./store.ts";

interface RoundParts extends RunParts {
  readonly judging: RunParts["judging"] & {
    renew(spec: RunSpec): Promise<void>;
    passCap(spec: RunSpec): void;
    dispatch(spec: RunSpec): readonly JudgementOrder[];
    sweep(spec: RunSpec): readonly JudgementOrder[];
  };
  readonly training: RunParts["training"] & { advance(spec: RunSpec): Promise<void> | null };
  /** What was dispatched is on disk, and is about to be sent. */
  readonly onDispatched: (spec: RunSpec) => void;
}

export class RunRounds {
  readonly #ctx: DurableObjectState;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #parts: RoundParts;
  readonly #gathering = new Gathering();
  #armedAt: number | null = null;

  constructor(ctx: DurableObjectState, store: RunStore, now: () => number, parts: RoundParts) {
    this.#ctx = ctx;
    this.#store = store;
    this.#now = now;
    this.#parts = parts;
  }

  /** A round a few milliseconds from now, for all that comes until then. */
  soon(spec: RunSpec): void {
    // Nobody calls a run of which nothing is in flight: a kill before the next lines must find an alarm.
    if (this.#store.head().in_flight === 0) this.#ctx.waitUntil(this.arm(spec));
    this.#gathering.soon(() => this.#ctx.waitUntil(this.play(spec)));
  }

  /** Dispatches what fits, sends what has gathered, wakes readers, arms the alarm. */
  play(spec: RunSpec): Promise<void> {
    return this.#parts.closing.during(() => this.#goOn(spec));
  }

  /** What an alarm is for, before its round. */
  sweep(spec: RunSpec): Promise<void> {
    this.#armedAt = null;
    return this.#parts.closing.during(() => this.#lookAfter(spec));
  }

  async arm(spec: RunSpec): Promise<void> {
    const at = nextRunAlarm(clockOf(this.#parts, spec));
    if (at === null || (this.#armedAt !== null && this.#armedAt <= at)) return;
    this.#armedAt = at;
    await this.#ctx.storage.setAlarm(at);
  }

  async #lookAfter(spec: RunSpec): Promise<void> {
    const { dispatcher, judging, chores } = this.#parts;
    try {
      const subrequests = new Subrequests();
      passDeadline(this.#store, spec, this.#now());
      await dispatcher.tell(spec, subrequests);
      // While some are still to be told nothing else is done: each of them may be about to call its model.
      if (dispatcher.untold()) return;
      await dispatcher.sweep(spec, subrequests);
      for (const order of judging.sweep(spec)) dispatcher.toJudge(order);
      await chores.writeRow(spec, subrequests);
      await chores.tell(spec, subrequests);
      await chores.free(spec, subrequests);
    } catch (thrown) {
      logError("run alarm", idsOf(spec), thrown);
    }
  }

  async #goOn(spec: RunSpec): Promise<void> {
    const { dispatcher, judging, leases, closing, training, onDispatched } = this.#parts;
    dispatcher.cutSegments();
    await leases.renew(spec, () => needsOf(this.#parts, spec));
    await judging.renew(spec);
    dispatcher.dispatch(spec);
    judging.passCap(spec);
    await dispatcher.wakeNeedy(spec);
    for (const order of judging.dispatch(spec)) dispatcher.toJudge(order);
    dispatcher.cutSegments();
    onDispatched(spec);
    try {
      await dispatcher.send(spec);
    } catch (thrown) {
      // Lost sends are silent rollouts and units: the sweep sends them again.
      logError("queue send", idsOf(spec), thrown);
    }
    const trained = closing.isClosed ? null : training.advance(spec);
    if (trained !== null) {
      // Before it is done: a kill meanwhile must find an alarm.
      await this.arm(spec);
      await trained;
    }
    dispatcher.noteRunning(spec);
    await this.arm(spec);
  }
}
