/**
 * Settles a run with its organisation's ledger: sends the charges of ended rollouts and of the trainer's batches, in
 * order, and reserves money for the next rollouts. One call does both, at most once a second, and is repeated until it
 * is answered. A run that is not charged only settles its usage.
 *
 * Invariants. An end is in the run's rows, with its charge, before it is sent to the ledger. The cursor moves only when
 * the ledger has replied, and to the position in the reply. No rollout is dispatched beyond the reservation, nor while
 * a reservation is being requested. A run is not freed before everything is settled and nothing is reserved for it.
 */
import type { RunView } from "../contract/run.ts";
import { idsOf } from "../kernel/kit/log.ts";
import { SingleFlight } from "../kernel/kit/single-flight.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import type { RunSpec } from "../kernel/messages/wire.ts";
import { chargedBy } from "../kernel/run/charged.ts";
import type { RunAccount } from "../kernel/run/charges.ts";
import { maxConcurrentOf } from "../kernel/run/control.ts";
import { pendingOf } from "../kernel/run/standing.ts";
import type { RunStore } from "../kernel/run/store.ts";
import { estimateOf, settledEnd, settledPush } from "./charging.ts";
import {
  type LedgerRpc,
  ledgerObject,
  type RunFacts,
  type SettledItem,
  type SettleOrder,
  type SettleReply,
} from "./rpc.ts";

const EVERY_MS = 1000;
/** The interval if nothing is charged: then nothing waits for the call, and the end of the run is sent immediately. */
export const UNCHARGED_EVERY_MS = 10_000;
/** Items of both streams in one call. */
const MOST_ITEMS = 1000;
/** How long before its end a reservation is renewed. */
const RENEW_EARLY_MS = 60_000;
/**
 * A run that lacks money asks again after this time, then after twice as long each time. The ledger notifies the run
 * when there is more money; this covers lost notifications.
 */
const AFTER_SHORT_MS = 5000;
const LONGEST_SHORT_MS = 5 * 60_000;
/** Reserve also for rollouts that may end until the next call: this many times the number of the last call, */
const AHEAD = 2;
/** and at least this many, whatever the run's window is. */
const LEAST_AHEAD = 16;

export class RunSettling implements RunAccount {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #calls: SingleFlight;
  #asking = false;
  #notBefore = 0;
  #lastAt: number;
  #lastEnds = 0;
  #shorts = 0;
  #notified = false;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
    this.#calls = new SingleFlight("settling", now);
    this.#lastAt = now();
  }

  /** How many more rollouts may be dispatched with the current reservation. */
  remaining(spec: RunSpec): number {
    const head = this.#store.head();
    const estimate = estimateOf(spec, head);
    if (estimate === 0) return Number.POSITIVE_INFINITY;
    const { hold: reservation, charged, settled } = head.books;
    if (this.#asking || reservation === null || reservation.until <= this.#now()) return 0;
    const left = reservation.micros - (charged - settled);
    return Math.max(0, Math.floor(left / estimate) - head.in_flight);
  }

  /** Why nothing more is dispatched; null if more can be dispatched. */
  statusReason(spec: RunSpec): RunView["status_reason"] {
    const short = this.#store.head().books.hold?.short ?? null;
    if (short === null || this.#asking || this.remaining(spec) > 0) return null;
    return { state: "over_budget", reason: short.reason };
  }

  /** There may be more money now. */
  changed(): void {
    this.#notified = true;
    this.#shorts = 0;
    this.#notBefore = Math.min(this.#notBefore, this.#now() + EVERY_MS);
  }

  /** True when the ledger has everything and nothing is reserved. */
  isSettled(spec: RunSpec): boolean {
    if (spec.money === undefined) return true;
    const { books: accounting, finished } = this.#store.head();
    return accounting.ends === finished && accounting.pushes === accounting.pushed && !this.#isReserved();
  }

  /** Epoch milliseconds of the next call; null if there is nothing to send. */
  nextAt(spec: RunSpec): number | null {
    const due = this.#dueAt(spec);
    return due === null ? null : this.#calls.after(Math.max(due, this.#notBefore));
  }

  /** Makes the call that is due; null if none is. Never throws. */
  advance(spec: RunSpec): Promise<void> | null {
    const due = this.#dueAt(spec);
    if (due === null || Math.max(due, this.#notBefore) > this.#now()) return null;
    return this.#calls.run(idsOf(spec), () => this.#settle(spec));
  }

  #dueAt(spec: RunSpec): number | null {
    if (spec.money === undefined) return null;
    const now = this.#now();
    const { books: accounting, finished } = this.#store.head();
    const owes = accounting.ends < finished || accounting.pushes < accounting.pushed;
    if (spec.money.prices === null) return owes ? this.#uncharged(now) : null;
    if (owes) return now;
    const wanted = this.#rolloutsWanted(spec);
    if (wanted === 0) return this.#isReserved() ? now : null;
    const renewAt = (accounting.hold?.until ?? 0) - RENEW_EARLY_MS;
    if (this.#notified) return now;
    const { running, in_flight } = this.#store.head();
    const wants = wanted > in_flight && running < this.#window(spec);
    return wants && this.remaining(spec) === 0 ? now : renewAt;
  }

  #uncharged(now: number): number {
    return this.#store.head().settled_at === null ? Math.max(now, this.#lastAt + UNCHARGED_EVERY_MS) : now;
  }

  #isReserved(): boolean {
    const { hold: reservation } = this.#store.head().books;
    return reservation !== null && reservation.micros > 0 && reservation.until > this.#now();
  }

  #window(spec: RunSpec): number {
    return maxConcurrentOf(spec, this.#store.head());
  }

  /** The rollouts in flight and those that may start before the next call. */
  #rolloutsWanted(spec: RunSpec): number {
    const head = this.#store.head();
    const { in_flight, stop, settled_at, paused } = head;
    if (stop !== null || settled_at !== null || paused) return in_flight;
    const window = this.#window(spec);
    const more = spec.training === undefined ? pendingOf(spec, head) : window;
    return in_flight + Math.min(more, Math.max(window, LEAST_AHEAD) + AHEAD * this.#lastEnds);
  }

  async #settle(spec: RunSpec): Promise<void> {
    const ends = this.#ends(spec);
    const order = this.#orderOf(spec, ends);
    this.#asking = order.reservation !== null;
    try {
      const subrequests = new Subrequests();
      const reply = await subrequests.object(() => this.#ledger(spec).settle(order));
      this.#take(spec, order, reply, ends);
    } finally {
      this.#asking = false;
    }
  }

  #ledger({ scope }: RunSpec): LedgerRpc {
    return ledgerObject(this.#env, scope.orgId);
  }

  #ends(spec: RunSpec): SettledItem[] {
    const now = this.#now();
    const rows = this.#store.ended.settled(this.#store.head().books.ends, MOST_ITEMS);
    return rows.map((row) => settledEnd(spec, row, now));
  }

  #orderOf(spec: RunSpec, ends: readonly SettledItem[]): SettleOrder {
    const head = this.#store.head();
    const most = MOST_ITEMS - ends.length;
    const batches = head.training === null ? [] : this.#store.training.pushedAfter(head.books.pushes, most);
    const pushes = batches.map((batch) => settledPush(spec, batch, this.#now()));
    const items = { ...(ends.length > 0 && { ends }), ...(pushes.length > 0 && { pushes }) };
    this.#lastEnds = ends.length;
    this.#notified = false;
    this.#lastAt = this.#now();
    return { run: factsOf(spec), items, ...this.#reservationWanted(spec, ends) };
  }

  /**
   * The reservation also covers what is left to settle after this call. Null if nothing is charged. If the money does
   * not pay for one rollout, it is left to other runs, unless work of this run is in flight or not settled.
   */
  #reservationWanted(spec: RunSpec, ends: readonly SettledItem[]): Pick<SettleOrder, "reservation" | "least"> {
    if ((spec.money?.prices ?? null) === null) return { reservation: null };
    const head = this.#store.head();
    const { charged, settled } = head.books;
    const later = charged - settled - sumOf(ends);
    const estimate = estimateOf(spec, head);
    const least = head.in_flight === 0 && later === 0 ? estimate : 0;
    const wanted = later + estimate * this.#rolloutsWanted(spec);
    return { reservation: Math.min(wanted, Number.MAX_SAFE_INTEGER), least: Math.min(least, Number.MAX_SAFE_INTEGER) };
  }

  /** The ledger's reply is authoritative, whether it took more or fewer items than this run sent. */
  #take(spec: RunSpec, order: SettleOrder, { settled, reservation }: SettleReply, ends: readonly SettledItem[]): void {
    const now = this.#now();
    this.#store.transaction(() => {
      const head = this.#store.head();
      const { books: accounting, finished } = head;
      const upTo = Math.min(settled.ends, finished);
      const pushes = Math.min(settled.pushes, accounting.pushed);
      const within = upTo >= accounting.ends && upTo <= accounting.ends + ends.length;
      const taken = ends.filter(({ n }) => n <= upTo);
      const micros = within ? accounting.settled + sumOf(taken) : accounting.charged - this.#chargedAfter(upTo);
      this.#store.saveHead({
        ...head,
        books: { ...accounting, ends: upTo, pushes, settled: micros, hold: reservation },
      });
    });
    const short = (reservation?.short ?? null) !== null && this.remaining(spec) === 0;
    this.#shorts = short ? this.#shorts + 1 : 0;
    const wait = short ? Math.min(LONGEST_SHORT_MS, AFTER_SHORT_MS * 2 ** (this.#shorts - 1)) : EVERY_MS;
    this.#notBefore = now + wait;
    const { books: accounting } = this.#store.head();
    const [firstEnd] = order.items.ends ?? [];
    const [firstPush] = order.items.pushes ?? [];
    const sent = firstEnd !== undefined || firstPush !== undefined;
    const took = accounting.ends >= (firstEnd?.n ?? Infinity) || accounting.pushes >= (firstPush?.n ?? Infinity);
    // Thrown so that the next attempt comes later, not immediately.
    if (sent && !took)
      throw new Error(`the ledger accepted nothing: it is at end ${accounting.ends}, batch ${accounting.pushes}`);
  }

  #chargedAfter(finishSeq: number): number {
    let charged = 0;
    for (const row of this.#store.reportRowsAfter(finishSeq)) charged += chargedBy(row);
    return charged;
  }
}

function sumOf(items: readonly SettledItem[]): number {
  return items.reduce((sum, { lines }) => sum + Object.values(lines).reduce((all, micros) => all + micros, 0), 0);
}

/** The facts that identify the run's work. */
export function factsOf(spec: RunSpec): RunFacts {
  const { scope, run_id, environment, model, money } = spec;
  return {
    ...{ scope, run_id, model },
    payer: money?.payer ?? run_id,
    environment: environment.id,
    kind: spec.training === undefined ? "eval" : "training",
    price_version: money?.prices?.version ?? null,
  };
}
