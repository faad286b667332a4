import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CallBudget,
  callBound,
  callCost,
  capRemaining,
  closeBudget,
  covers,
  type LostReservation,
  letOut,
  loseCall,
  loseOpen,
  NEW_CAP,
  newCallBudget,
  quotaFor,
  releaseReservations,
  replaceReservation,
  reserveCall,
  settleCall,
} from "../../../src/core/costs/call-budget.ts";

const PRICES = { input: 150_000, output: 600_000, call: 12 };

test("the cost of a call is rounded up, and exact even where a double is not", () => {
  expect(callCost(PRICES, { prompt_tokens: 1, completion_tokens: 0 })).toBe(1 + 12);
  expect(callCost(PRICES, { prompt_tokens: 20, completion_tokens: 5 })).toBe(6 + 12);
  const dear = { input: 1_000_000_000, output: 0, call: 0 };
  expect(callCost(dear, { prompt_tokens: 9_007_199_254_741, completion_tokens: 0 })).toBe(9_007_199_254_741_000);
});

test("a call's bound covers all tokens that it may send and get, and exceeds every budget if there is no limit", () => {
  const size = { prompt_tokens: 1000, most_tokens: 100 };
  expect(callBound(PRICES, size)).toBe(150 + 60 + 12);
  const unbounded = callBound(PRICES, { ...size, most_tokens: null });
  expect(covers(newCallBudget(1_000_000_000_000), unbounded)).toBe(false);
});

test("a repeated request for a grant gets the same reply, and one whose call does not fit returns what it has", () => {
  const ask = { spent: 40, need: 30, wish: 200 };
  expect(quotaFor(500, 40, ask, 1)).toEqual({ ceiling: 240, granted: true });
  expect(quotaFor(300, 240, ask, 1)).toEqual({ ceiling: 240, granted: true });
  expect(quotaFor(500, 40, ask, 10)).toEqual({ ceiling: 90, granted: true });
  expect(quotaFor(10, 50, ask, 1)).toEqual({ ceiling: 40, granted: false });
});

/** A run of rollouts that request grants, call, lose calls, are killed and end, in a random order. */
class Played {
  readonly cap: number;
  accounting = NEW_CAP;
  /** The real cost of every call so far, including lost ones. */
  taken = 0;
  readonly rollouts: { callBudget: CallBudget; ceiling: number; turns: number; waits: number; over: boolean }[];
  /** Rollouts that have not reported their spending, and the reservation for each. */
  unheard: { callBudget: CallBudget; reservation: LostReservation }[] = [];

  constructor(cap: number, rollouts: number, turns: number) {
    this.cap = cap;
    this.rollouts = Array.from({ length: rollouts }, () => {
      return { callBudget: newCallBudget(0), ceiling: 0, turns, waits: 0, over: false };
    });
  }

  holds(): void {
    const outstanding = this.rollouts.reduce((sum, { ceiling: quota, over }) => sum + (over ? 0 : quota), 0);
    expect(this.accounting.out).toBe(outstanding);
    const { spent, out, released } = this.accounting;
    if (released.micros === 0) expect(capRemaining(this.cap, this.accounting)).toBeGreaterThanOrEqual(0);
    expect(this.taken).toBeLessThanOrEqual(spent + out + released.micros);
    expect(this.accounting.lost.micros).toBeLessThanOrEqual(this.accounting.spent);
  }

  /**
   * One step of one rollout. `lucky` and `share` decide the outcome of its call, `killed` whether the answer is lost.
   */
  step(at: number, bound: number, share: number, what: "answered" | "lost" | "refused" | "killed" | "unheard"): void {
    const live = this.rollouts.filter(({ over }) => !over);
    const rollout = live[at % Math.max(1, live.length)];
    if (rollout === undefined) return;
    if (!covers(rollout.callBudget, bound)) this.ask(rollout, bound, what === "unheard");
    else this.call(rollout, bound, share, what);
    if (rollout.turns === 0) this.end(rollout, what === "unheard");
    this.holds();
  }

  ask(rollout: Played["rollouts"][number], need: number, unheard: boolean): void {
    const spent = loseOpen(rollout.callBudget).spent;
    rollout.callBudget = { ...loseOpen(rollout.callBudget), ceiling: spent };
    const remaining = capRemaining(this.cap, this.accounting);
    const running = this.rollouts.filter(({ over }) => !over).length;
    const answer = quotaFor(remaining, rollout.ceiling, { spent, need, wish: 4 * need }, running);
    this.accounting = letOut(this.accounting, answer.ceiling - rollout.ceiling);
    // If more is granted than the cap has left, nothing more is granted.
    expect(capRemaining(this.cap, this.accounting)).toBeGreaterThanOrEqual(Math.min(0, remaining));
    if (answer.granted) expect(capRemaining(this.cap, this.accounting)).toBeGreaterThanOrEqual(0);
    rollout.ceiling = answer.ceiling;
    rollout.waits = answer.granted ? 0 : need;
    // The reply was lost: the rollout does not have the grant, and requests it again.
    if (!unheard && answer.granted) rollout.callBudget = { ...rollout.callBudget, ceiling: answer.ceiling };
  }

  call(rollout: Played["rollouts"][number], bound: number, share: number, what: string): void {
    rollout.callBudget = reserveCall(loseOpen(rollout.callBudget), bound);
    const cost = what === "refused" ? 0 : Math.floor(bound * share);
    this.taken += cost;
    if (what === "killed") return;
    if (what === "lost") rollout.callBudget = loseCall(rollout.callBudget, bound);
    else rollout.callBudget = settleCall(rollout.callBudget, bound, cost);
    if (what === "answered") rollout.turns -= 1;
  }

  end(rollout: Played["rollouts"][number], unheard: boolean): void {
    const { spent, lost } = loseOpen(rollout.callBudget);
    const reservation = { calls: 1, micros: rollout.ceiling, released: false };
    const taken = unheard
      ? { micros: reservation.micros, lost: { calls: 1, micros: reservation.micros } }
      : { micros: spent, lost };
    this.accounting = closeBudget(this.accounting, rollout.ceiling, taken);
    if (unheard) this.unheard.push({ callBudget: rollout.callBudget, reservation });
    rollout.over = true;
  }

  release(): void {
    const { out, spent, lost } = this.accounting;
    this.accounting = releaseReservations(this.accounting);
    this.unheard = this.unheard.map(({ callBudget, reservation }) => ({
      callBudget,
      reservation: { ...reservation, released: true },
    }));
    expect(this.accounting).toMatchObject({ out, spent: spent - lost.micros });
    this.holds();
  }

  /** The first rollout without a report reports after all. */
  report(): void {
    const late = this.unheard.shift();
    if (late === undefined) return;
    const { spent, lost } = loseOpen(late.callBudget);
    this.accounting = replaceReservation(this.accounting, late.reservation, { micros: spent, lost });
    this.holds();
  }

  /** All rollouts continue in turn: the run ends, because they are done or because nothing fits. */
  finish(bound: number): void {
    for (let rounds = 0; rounds < 10_000; rounds += 1) {
      const live = this.rollouts.filter(({ over }) => !over);
      const waiting = live.filter(({ waits }) => waits > 0);
      const least = Math.min(...waiting.map(({ waits }) => waits));
      if (live.length === 0) return;
      if (waiting.length === live.length && least > capRemaining(this.cap, this.accounting)) return;
      for (const [index] of live.entries()) this.step(index, bound, 0.5, "answered");
    }
    throw new Error("the run never ended");
  }
}

const step = fc.record({
  at: fc.nat(20),
  bound: fc.integer({ min: 1, max: 400 }),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
  what: fc.constantFrom("answered", "answered", "answered", "lost", "refused", "killed", "unheard" as const),
});

test("in any order of requests, spending, losses, kills, releases and ends: spent and granted stay within the cap except for what was released, and the run ends", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 20_000 }),
      fc.integer({ min: 1, max: 12 }),
      fc.array(step, { maxLength: 200 }),
      fc.boolean(),
      (cap, rollouts, steps, releases) => {
        const run = new Played(cap, rollouts, 6);
        for (const { at, bound, share, what } of steps) {
          run.step(at, bound, share, what);
          if (at % 5 === 0) run.report();
          if (releases && at % 7 === 6) run.release();
        }
        run.finish(100);
        run.holds();
      },
    ),
    { numRuns: 500, seed: 17 },
  );
});
