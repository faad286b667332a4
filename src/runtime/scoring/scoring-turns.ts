/**
 * Who computes scores next. All consumers of a process share one thread: while one computes, nobody is answered.
 *
 * Invariants. One unit computes at a time. After `PASS_STEPS` of counted work (core/rubrics/work.ts) the process looks at
 * its sockets and timers before anything more is computed; only a single score may take longer, `WORK_LIMITS.scoreSteps` at
 * most. Among units that wait, organisations take turns, and within one the unit that waited longest is first. A unit that
 * waits for something outside holds up nobody, and what it computes behind that wait is counted with its next pass.
 */
import type { Work } from "../../core/rubrics/work.ts";
import { settlesAtOnce } from "../environment/stage-clock.ts";

/** About 50 ms of one core. */
export const PASS_STEPS = 1_000_000;
/** One that holds the turn and was not heard of for so long is gone: its invocation was ended. */
const HELD_AT_MOST_MS = 60_000;
/** One that waits looks again after this at the latest. One that has not looked for longer than `GONE_MS` is gone. */
const LONGEST_LOOK_MS = 100;
const GONE_MS = 5000;
/** Organisations of which it is known when they last had a turn. */
const ORGANISATIONS = 10_000;

interface Waiting {
  readonly org: string;
  seen: number;
}

/** The process's clock and its timer: a wait lets it do all else. */
interface Waits {
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<void>;
}
const REAL: Waits = { now: () => Date.now(), wait: (ms) => scheduler.wait(ms) };

/** Called by a pass after each function that it has begun. `doing`: what the function gives. */
export type Pause = (doing: Promise<unknown>) => Promise<void>;

export interface Begun<T> {
  /** Resolves once the unit computes no more: it has ended, or waits for something outside. */
  readonly idle: Promise<void>;
  readonly result: Promise<T>;
}

export class ScoringTurns {
  readonly #waits: Waits;
  readonly #waiting: Waiting[] = [];
  /** By organisation, the number of its last turn; those that had theirs longest ago come first. */
  readonly #served = new Map<string, number>();
  #turns = 0;
  #heldUntil = 0;
  /** Steps since the process last looked at its sockets. */
  #computed = 0;

  constructor(waits: Waits = REAL) {
    this.#waits = waits;
  }

  /**
   * Resolves when the unit has its first turn, and has begun. `work`: what its scores are counted by. `pass` may ask how
   * many milliseconds it has waited for further turns.
   */
  async begin<T>(org: string, work: Work, pass: (pause: Pause, waited: () => number) => Promise<T>): Promise<Begun<T>> {
    const unit = new UnitTurn(work, () => this.#take(org), this.#waits);
    await unit.take();
    const result = pass(
      (doing) => unit.pause(doing),
      () => unit.waited,
    );
    return { idle: unit.idle(result), result };
  }

  /** Resolves to what gives the turn back. By looking again and again: see takeTurn in environment/suspects.ts. */
  async #take(org: string): Promise<(steps: number) => void> {
    const { now, wait } = this.#waits;
    if (this.#waiting.length > 0 || this.#computed >= PASS_STEPS || now() < this.#heldUntil) {
      const me = { org, seen: now() };
      this.#waiting.push(me);
      try {
        do {
          await wait(Math.min(LONGEST_LOOK_MS, this.#waiting.length));
          this.#computed = 0;
          me.seen = now();
        } while (!this.#isNext(me, me.seen));
      } finally {
        this.#waiting.splice(this.#waiting.indexOf(me), 1);
      }
    }
    const until = now() + HELD_AT_MOST_MS;
    this.#heldUntil = until;
    this.#note(org);
    return (steps) => {
      this.#computed += steps;
      if (this.#heldUntil === until) this.#heldUntil = 0;
    };
  }

  #note(org: string): void {
    this.#turns += 1;
    this.#served.delete(org);
    this.#served.set(org, this.#turns);
    const [oldest] = this.#served.keys();
    if (this.#served.size > ORGANISATIONS && oldest !== undefined) this.#served.delete(oldest);
  }

  #isNext(me: Waiting, at: number): boolean {
    if (at < this.#heldUntil) return false;
    const there = this.#waiting.filter(({ seen }) => at - seen <= GONE_MS);
    const first = there.reduce((one, other) => (this.#lastOf(other) < this.#lastOf(one) ? other : one), me);
    return there.find(({ org }) => org === first.org) === me;
  }

  #lastOf({ org }: Waiting): number {
    return this.#served.get(org) ?? 0;
  }
}

type GiveBack = (steps: number) => void;

/** One unit, and whether it has the turn. */
class UnitTurn {
  readonly #work: Work;
  readonly #take: () => Promise<GiveBack>;
  readonly #waits: Waits;
  #giveBack: GiveBack | null = null;
  /** Steps when its turn began. */
  #from = 0;
  #waitedMs = 0;
  #waitsSince: number | null = null;

  constructor(work: Work, take: () => Promise<GiveBack>, waits: Waits) {
    this.#work = work;
    this.#take = take;
    this.#waits = waits;
  }

  /** Milliseconds. */
  get waited(): number {
    return this.#waitedMs + (this.#waitsSince === null ? 0 : this.#waits.now() - this.#waitsSince);
  }

  async take(): Promise<void> {
    this.#giveBack = await this.#take();
    this.#from = this.#work.steps;
  }

  async pause(doing: Promise<unknown>): Promise<void> {
    if (!(await this.#settlesSoon(doing))) return this.#leave();
    if (this.#work.steps - this.#from < PASS_STEPS) return;
    this.#leave();
    this.#waitsSince = this.#waits.now();
    await this.take();
    this.#waitedMs = this.waited;
    this.#waitsSince = null;
  }

  async idle(result: Promise<unknown>): Promise<void> {
    const waitsOutside = async () => !(await this.#settlesSoon(result)) && this.#waitsSince === null;
    if (!(await waitsOutside())) await result.catch(() => undefined);
    this.#leave();
  }

  /** Without anything from outside: a timer fires once all that could go on has. */
  async #settlesSoon(promise: Promise<unknown>): Promise<boolean> {
    if (await settlesAtOnce(promise)) return true;
    const still = Symbol("still open");
    return (await Promise.race([promise.catch(() => null), this.#waits.wait(0).then(() => still)])) !== still;
  }

  #leave(): void {
    this.#giveBack?.(this.#work.steps - this.#from);
    this.#giveBack = null;
  }
}
