/**
 * The cost cap of a run (`max_cost_micros`): reserves money for rollouts and for scoring groups whose judges are
 * called, takes back what is not spent, and ends the run if nothing more fits. Each change is part of the transaction
 * that causes it. The rules are in core/costs/call-budget.ts.
 *
 * Invariants. Σ spent + Σ reserved ≤ cap after every function, as long as no call costs more than its bound. A
 * rollout's ceiling is written before the rollout gets it, and is lowered only to the amount that a later request
 * reports as spent. A rollout or claim that can no longer report counts as having spent its whole reservation. What
 * waits for money reserves none, so something always continues or the run ends.
 */
import { LIMITS } from "../../contract/limits.ts";
import {
  capRemaining,
  closeBudget,
  letOut,
  quotaFor,
  replaceReservation,
  type Spending,
} from "../../core/costs/call-budget.ts";
import { baseCost, capOf, policyCosts } from "../../core/costs/run-costs.ts";
import { idsOf, logError } from "../kit/log.ts";
import { rolloutShard } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { BudgetReply, RolloutBudgetAsk, RunSpec } from "../messages/wire.ts";
import { nameOfRollout } from "./lost-reservations.ts";
import type { NeedyRollouts } from "./needy-rollouts.ts";
import type { RunHead } from "./schema.ts";
import { pendingOf, settle, trainsOn } from "./standing.ts";
import type { RunStore } from "./store.ts";

/** Why a run waits if the rest of its cap is reserved by others. */
const SHORT = "the rest of max_cost_micros is reserved for rollouts and judges in flight";
/** Why nothing more begins after a call did not fit. */
const CLOSED = "what is left of max_cost_micros was not enough for the last call that was asked for";

/** `onWait`: called if one of them has to wait. */
export function takeAsks(
  store: RunStore,
  spec: RunSpec | null,
  asks: readonly RolloutBudgetAsk[],
  onWait: (spec: RunSpec) => void = () => undefined,
): BudgetReply[] {
  if (spec === null || capOf(spec) === null) return asks.map(() => ({ ceiling: null, over: true }));
  const replies = store.transaction(() => asks.map((ask) => takeAsk(store, spec, ask)));
  if (replies.some(({ ceiling: quota }) => quota === null)) onWait(spec);
  return replies;
}

function takeAsk(store: RunStore, spec: RunSpec, ask: RolloutBudgetAsk): BudgetReply {
  const row = store.rollout(ask);
  if (row?.status !== "running") return { ceiling: null, over: true };
  // The rollout has sent a later request: this answer is not read.
  if (ask.asks < row.asked) return { ceiling: null };
  const head = store.head();
  const remaining = remainingForRollouts(store, spec);
  const { ceiling: quota, granted } = quotaFor(remaining, row.ceiling, ask, head.running);
  const first = ask.asks === 1 ? { need: ask.need, wish: ask.wish } : head.cap.first;
  store.saveHead({ ...head, cap: { ...head.cap, ...letOut(head.cap, quota - row.ceiling), first } });
  store.setRollout(row.seq, { ceiling: quota, asked: ask.asks, needs: granted ? 0 : Math.max(1, ask.need) });
  return { ceiling: granted ? quota : null };
}

/**
 * What each of `count` rollouts may spend before its first request: as much as earlier rollouts requested first, if
 * there is enough. A rollout that takes over a trajectory may spend only what its scoring costs.
 */
export function quotaAtStart(store: RunStore, spec: RunSpec, carried: boolean, count: number): number {
  if (capOf(spec) === null) return 0;
  const base = baseCost(spec, carried);
  if (carried) return base;
  const each = Math.floor(remainingForRollouts(store, spec) / count) - base;
  return base + Math.max(0, Math.min(store.head().cap.first?.wish ?? 0, each));
}

/**
 * How many of these rollouts may begin: none while others wait for money. Each should get enough for several turns, so
 * that started work ends. A few begin with less while the cost of a rollout is unknown or little money is left.
 */
export function startableWithin(store: RunStore, spec: RunSpec, count: number): number {
  if (capOf(spec) === null || count === 0) return count;
  const { running, cap } = store.head();
  if (cap.closed === true || store.needy.sum().count > 0 || remainingOf(store, spec) < 0) return 0;
  const { input, output, call } = policyCosts(spec);
  // If its calls cost nothing, no rollout ever requests money.
  const first = input + output + call === 0 ? { need: 0, wish: 0 } : cap.first;
  const carried = spec.rescore !== undefined;
  const base = baseCost(spec, carried);
  const remaining = Math.max(0, remainingForRollouts(store, spec));
  const fitting = (more: number) => (base + more === 0 ? count : Math.floor(remaining / (base + more)));
  if (carried) return Math.min(count, fitting(0));
  const few = Math.max(0, Math.min(LIMITS.rolloutsTried - running, fitting(first?.need ?? 0)));
  // The needs of earlier rollouts say little about the next one: if none is running, one is tried.
  const tried = running === 0 && remaining >= base ? 1 : 0;
  return Math.min(count, Math.max(first === null ? 0 : fitting(first.wish), few, tried));
}

/** The columns of a rollout that has stopped. `spent` undefined: unknown, so the whole reservation counts as spent. */
export function closeRollout(
  store: RunStore,
  spec: RunSpec,
  { seq, ceiling: quota }: RolloutEntry,
  spent: Spending | undefined,
): Partial<RolloutEntry> {
  if (capOf(spec) === null) return { lost_calls: spent?.lost.calls ?? 0 };
  const taken = spent ?? reserveAll(store, nameOfRollout(seq), quota);
  const { micros, lost } = taken;
  const head = store.head();
  store.saveHead({ ...head, cap: { ...head.cap, ...closeBudget(head.cap, quota, taken) } });
  return { ceiling: 0, needs: 0, spent_micros: micros, lost_calls: lost.calls, lost_micros: lost.micros };
}

/** Reserves all that was granted under this name, if its spending is unknown, until a late report arrives. */
export function reserveAll(store: RunStore, name: string, micros: number): Spending {
  const lost = { calls: micros > 0 ? 1 : 0, micros };
  if (micros > 0) store.lostReservations.add(name, lost);
  return { micros, lost };
}

/** Handles a late report of spending: it replaces the reservation. A second report changes nothing. */
export function takeLate(store: RunStore, name: string, spent: Spending | undefined): void {
  const reservation = spent === undefined ? null : store.lostReservations.take(name);
  if (spent === undefined || reservation === null) return;
  const head = store.head();
  store.saveHead({
    ...head,
    cap: { ...head.cap, ...replaceReservation(head.cap, reservation, spent) },
    row_current: false,
  });
}

/** What is left to reserve; infinity in a run without a cap. */
export function remainingOf(store: RunStore, spec: RunSpec): number {
  const cap = capOf(spec);
  return cap === null ? Number.POSITIVE_INFINITY : capRemaining(cap, store.head().cap);
}

/** What is left after the needs of all scoring groups that wait for judges: finished rollouts are scored first. */
function remainingForRollouts(store: RunStore, spec: RunSpec): number {
  return remainingOf(store, spec) - store.judging.neededByUnclaimed();
}

/**
 * Wakes rollouts that wait for money, once for each of their requests, as many as the rest may be enough for. If more
 * is reserved than the cap allows, the other rollouts are notified to ask before their next call.
 */
export class Wakes {
  readonly #env: Env;
  readonly #store: RunStore;
  /** The request after which a rollout was woken, by `seq`. */
  readonly #takeCancelAnswer = new Map<number, number>();

  constructor(env: Env, store: RunStore) {
    this.#env = env;
    this.#store = store;
  }

  /** A rollout that cannot be reached asks again by itself. Never throws. */
  async send(spec: RunSpec): Promise<void> {
    if (capOf(spec) === null || this.#store.head().settled_at !== null) return;
    const over = remainingOf(this.#store, spec) < 0;
    const rows = over ? this.#holding() : this.#due(remainingForRollouts(this.#store, spec));
    await new Subrequests().objectAll([...Map.groupBy(rows, ({ host: shard }) => shard ?? 0)], async ([shard, of]) => {
      try {
        await rolloutShard(this.#env, spec.scope, spec.run_id, shard).askAgain(
          of.map(({ id }) => id),
          over,
        );
      } catch (thrown) {
        logError("rollouts that wait were not notified", idsOf(spec), thrown);
      }
    });
  }

  #holding(): ReturnType<NeedyRollouts["holding"]> {
    const rows = this.#store.needy
      .holding(LIMITS.sliceObjects)
      .filter(({ seq, asked }) => this.#takeCancelAnswer.get(seq) !== asked);
    for (const { seq, asked } of rows) this.#takeCancelAnswer.set(seq, asked);
    return rows;
  }

  #due(remaining: number): ReturnType<NeedyRollouts["first"]> {
    let left = remaining;
    return this.#store.needy.first(LIMITS.sliceObjects).filter(({ seq, asked, needs }) => {
      if (needs > left) return false;
      left -= needs;
      if (this.#takeCancelAnswer.get(seq) === asked) return false;
      this.#takeCancelAnswer.set(seq, asked);
      return true;
    });
  }
}

/** Why rollouts wait for money, or do not begin; null if the cap is not the reason. */
export function capStatusReason(
  store: RunStore,
  spec: RunSpec,
): { readonly state: "over_budget"; readonly reason: string } | null {
  if (capOf(spec) === null) return null;
  if (store.needy.sum().count > 0) return { state: "over_budget", reason: SHORT };
  const head = store.head();
  const isHeld = head.cap.closed === true && head.settled_at === null && pendingOf(spec, head) > 0;
  return isHeld ? { state: "over_budget", reason: CLOSED } : null;
}

/** True if something waits for money that is not there: scoring groups come first, since rollouts leave them theirs. */
export function isShort(store: RunStore, spec: RunSpec): boolean {
  const { settled_at, stop } = store.head();
  if (settled_at !== null || stop?.kind === "cancel") return false;
  const least = store.judging.waitingForMoney().least ?? store.needy.sum().least;
  return least !== null && least > remainingOf(store, spec);
}

/**
 * Ends what can never continue: nothing under way could return money, and no next step fits into the rest. `idle`: how
 * many running rollouts wait for their agents and hold no money (reclaims.ts). They continue, and nothing else begins;
 * without any the run ends. Returns true if scoring groups wait for judges in vain: the caller must end them.
 */
export function passCap(store: RunStore, spec: RunSpec, now: number, idle: number): boolean {
  const cap = capOf(spec);
  const head = store.head();
  if (cap === null || head.settled_at !== null || isCancelled(head)) return false;
  const remaining = capRemaining(cap, head.cap);
  const rollouts = store.needy.sum();
  const scoringGroups = store.judging.waitingForMoney();
  // Something under way may still return money.
  if (head.running > rollouts.count + idle || scoringGroups.under_way > 0) return false;
  // Or the next step fits into the rest: scoring groups first, since rollouts leave them what they need.
  const least = scoringGroups.least ?? rollouts.least;
  if (least !== null && least <= remaining) return false;
  if (idle > 0) {
    if (least !== null) store.transaction(() => closeCap(store, scoringGroups.least === null));
    return scoringGroups.least !== null;
  }
  const more = pendingOf(spec, head) > 0 || trainsOn(spec, head);
  const begins = head.stop === null && !head.paused && more;
  if (least === null && !(begins && startableWithin(store, spec, 1) === 0)) return false;
  store.transaction(() => {
    if (head.stop === null) {
      const cap = { ...head.cap, reopens: false };
      store.saveHead({ ...head, cap, stop: { kind: "cancel", reason: "budget", at: now }, row_current: false });
    } else if (head.stop.kind === "fail") {
      // Rollouts of a failing run continue until then: nothing else has stopped them.
      store.cancelWaiting("budget");
    }
    settle(store, spec, now);
  });
  return scoringGroups.least !== null;
}

/** Nothing more begins. `stops`: rollouts that wait for money end. */
function closeCap(store: RunStore, stops: boolean): void {
  const head = store.head();
  if (head.cap.closed !== true)
    store.saveHead({ ...head, cap: { ...head.cap, closed: true, reopens: false }, row_current: false });
  if (stops) store.cancelWaiting("budget");
}

function isCancelled({ stop }: RunHead): boolean {
  return stop?.kind === "cancel" && stop.reason !== "budget";
}
