/**
 * What a run tells the books of its organisation, and what it may count on: what its ended rollouts and its trainer's
 * batches are charged, in the order they came, and how much is to be reserved for what comes next. One call does both, at
 * most one a second, and it is repeated until it was heard. A run that nobody charges settles its usage alone.
 *
 * Invariants. An end is in the run's rows, with its charge, before the books hear of it; the cursor moves when they have
 * said that they took it, and to where they say. Nothing is dispatched beyond what is reserved, nor while that is asked
 * for. A run is not freed before everything is settled and nothing is reserved for it.
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
  type BooksRpc,
  booksObject,
  type RunFacts,
  type SettledItem,
  type SettleOrder,
  type SettleReply,
} from "./rpc.ts";

const EVERY_MS = 1000;
/** Where nothing is charged: then nothing waits for it, and the run's end is told at once. */
const UNCHARGED_EVERY_MS = 10_000;
/** Of both streams, in one call. */
const MOST_ITEMS = 1000;
/** What is reserved is asked for again so long before it would end. */
const RENEW_EARLY_MS = 60_000;
/**
 * A run that cannot go on for want of money asks again after this, then after twice as long each time: the books tell it
 * when there is more, and this is for what is lost on the way.
 */
const AFTER_SHORT_MS = 5000;
const LONGEST_SHORT_MS = 5 * 60_000;
/** Rollouts that may end until the next call are reserved for too: so many times as many as in the last one, */
const AHEAD = 2;
/** and as many at least, whatever the run's window is. */
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
  #told = false;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
    this.#calls = new SingleFlight("settling", now);
    this.#lastAt = now();
  }

  /** Rollouts that may be dispatched for what is reserved. */
  room(spec: RunSpec): number {
    const head = this.#store.head();
    const estimate = estimateOf(spec, head);
    if (estimate === 0) return Number.POSITIVE_INFINITY;
    const { hold, charged, settled } = head.books;
    if (this.#asking || hold === null || hold.until <= this.#now()) return 0;
    const left = hold.micros - (charged - settled);
    return Math.max(0, Math.floor(left / estimate) - head.in_flight);
  }

  /** Why nothing more is dispatched; null where more can be. */
  flow(spec: RunSpec): RunView["flow"] {
    const short = this.#store.head().books.hold?.short ?? null;
    if (short === null || this.#asking || this.room(spec) > 0) return null;
    return { state: "over_budget", reason: short.reason };
  }

  /** There may be more money than there was. */
  changed(): void {
    this.#told = true;
    this.#shorts = 0;
    this.#notBefore = Math.min(this.#notBefore, this.#now() + EVERY_MS);
  }

  /** True once the books have heard of everything, and nothing is reserved. */
  isSettled(spec: RunSpec): boolean {
    if (spec.money === undefined) return true;
    const { books, finished } = this.#store.head();
    return books.ends === finished && books.pushes === books.pushed && !this.#isReserved();
  }

  /** Epoch milliseconds of the next call; null while there is nothing to say. */
  nextAt(spec: RunSpec): number | null {
    const due = this.#dueAt(spec);
    return due === null ? null : this.#calls.after(Math.max(due, this.#notBefore));
  }

  /** Makes the call that is due; null when none is. Never throws. */
  advance(spec: RunSpec): Promise<void> | null {
    const due = this.#dueAt(spec);
    if (due === null || Math.max(due, this.#notBefore) > this.#now()) return null;
    return this.#calls.run(idsOf(spec), () => this.#settle(spec));
  }

  #dueAt(spec: RunSpec): number | null {
    if (spec.money === undefined) return null;
    const now = this.#now();
    const { books, finished } = this.#store.head();
    const owes = books.ends < finished || books.pushes < books.pushed;
    if (spec.money.prices === null) return owes ? this.#uncharged(now) : null;
    if (owes) return now;
    const wanted = this.#rolloutsWanted(spec);
    if (wanted === 0) return this.#isReserved() ? now : null;
    const renewAt = (books.hold?.until ?? 0) - RENEW_EARLY_MS;
    if (this.#told) return now;
    const { running, in_flight } = this.#store.head();
    const wants = wanted > in_flight && running < this.#window(spec);
    return wants && this.room(spec) === 0 ? now : renewAt;
  }

  #uncharged(now: number): number {
    return this.#store.head().settled_at === null ? Math.max(now, this.#lastAt + UNCHARGED_EVERY_MS) : now;
  }

  #isReserved(): boolean {
    const { hold } = this.#store.head().books;
    return hold !== null && hold.micros > 0 && hold.until > this.#now();
  }

  #window(spec: RunSpec): number {
    return maxConcurrentOf(spec, this.#store.head());
  }

  /** Those in flight, and those that may begin before the next call. */
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
    this.#asking = order.hold !== null;
    try {
      const subrequests = new Subrequests();
      const reply = await subrequests.object(() => this.#books(spec).settle(order));
      this.#take(spec, order, reply, ends);
    } finally {
      this.#asking = false;
    }
  }

  #books({ scope }: RunSpec): BooksRpc {
    return booksObject(this.#env, scope.orgId);
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
    this.#told = false;
    this.#lastAt = this.#now();
    return { run: factsOf(spec), items, ...this.#holdWanted(spec, ends) };
  }

  /**
   * What is left to settle after this call is reserved for, too. Null where nothing is charged. What does not pay for one
   * rollout is left to other runs, as soon as nothing of this one is under way.
   */
  #holdWanted(spec: RunSpec, ends: readonly SettledItem[]): Pick<SettleOrder, "hold" | "least"> {
    if ((spec.money?.prices ?? null) === null) return { hold: null };
    const head = this.#store.head();
    const { charged, settled } = head.books;
    const later = charged - settled - sumOf(ends);
    const estimate = estimateOf(spec, head);
    const least = head.in_flight === 0 && later === 0 ? estimate : 0;
    const wanted = later + estimate * this.#rolloutsWanted(spec);
    return { hold: Math.min(wanted, Number.MAX_SAFE_INTEGER), least: Math.min(least, Number.MAX_SAFE_INTEGER) };
  }

  /** What they say counts, whether they took more than was known here or less. */
  #take(spec: RunSpec, order: SettleOrder, { settled, hold }: SettleReply, ends: readonly SettledItem[]): void {
    const now = this.#now();
    this.#store.transaction(() => {
      const head = this.#store.head();
      const { books, finished } = head;
      const upTo = Math.min(settled.ends, finished);
      const pushes = Math.min(settled.pushes, books.pushed);
      const within = upTo >= books.ends && upTo <= books.ends + ends.length;
      const taken = ends.filter(({ n }) => n <= upTo);
      const micros = within ? books.settled + sumOf(taken) : books.charged - this.#chargedAfter(upTo);
      this.#store.saveHead({ ...head, books: { ...books, ends: upTo, pushes, settled: micros, hold } });
    });
    const short = (hold?.short ?? null) !== null && this.room(spec) === 0;
    this.#shorts = short ? this.#shorts + 1 : 0;
    const wait = short ? Math.min(LONGEST_SHORT_MS, AFTER_SHORT_MS * 2 ** (this.#shorts - 1)) : EVERY_MS;
    this.#notBefore = now + wait;
    const { books } = this.#store.head();
    const [firstEnd] = order.items.ends ?? [];
    const [firstPush] = order.items.pushes ?? [];
    const sent = firstEnd !== undefined || firstPush !== undefined;
    const took = books.ends >= (firstEnd?.n ?? Infinity) || books.pushes >= (firstPush?.n ?? Infinity);
    // Asked again after a while, not at once.
    if (sent && !took)
      throw new Error(`the books accepted nothing: they are at end ${books.ends}, batch ${books.pushes}`);
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

/** Whose work it is. */
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
