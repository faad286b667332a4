/**
 * Schedules CPU work fairly between organisations (a scheduling turn). All objects, consumers and requests of a process
 * share one thread: while one computes, no other is answered. Work that is bounded for each item but not in total (rows
 * of an upload, lines of a page, scoring groups of a message) must be counted here.
 *
 * Invariants. Work is counted in steps, never timed. Work that is counted at once is not divided. After `PASS_STEPS`
 * the process rests from counted work for a fifth of the time they took: answering a request takes many polls of the
 * sockets, and each poll would wait for a whole pass. The organisation whose work exceeded a pass also rests for as
 * long as the excess took. An organisation that is present but does not wait for a turn needs the process for work that
 * is not counted. While there is one, each other organisation gets an equal share of the process, and one share stays
 * free. Among waiting organisations, the next is the one that has computed least since it arrived. So two organisations
 * that always wait get half each, however they divide their work.
 */
import { countJson } from "../../core/schema/json-counts.ts";

/** About 50 ms of one core: a step is about 50 ns. */
export const PASS_STEPS = 1_000_000;
/** Milliseconds that one step takes. */
const STEP_MS = 50e-6;
/** How long the process rests after a pass. */
const REST_MS = 10;
/** How far an organisation may compute ahead of its share: an idle organisation then does not slow down a small run. */
const AHEAD_MS = 10 * PASS_STEPS * STEP_MS;
/** An organisation counts as present for this long after its last turn or request. */
const PRESENT_MS = 60_000;
/**
 * Costs of reading a text as JSON and processing it: for each character, for each text, and for each token. Each member
 * name of an object is looked up many times: 2 µs if an object has 100,000 of them.
 */
const STEPS_PER_CHARACTER = 2;
const STEPS_PER_TEXT = 200;
const STEPS_PER_TOKEN = 10;
/** Cost of filling in a prompt: a short template may refer to megabytes of text. */
const PROMPT_CHARACTERS_PER_STEP = 32;
const STEPS_PER_NAME = 40;
/**
 * A holder that has not given the turn back after this time is treated as gone: its invocation was ended, and runs no
 * `finally`. Until then the whole process waits. A pass takes about 50 ms; the rest is for a slow machine. Work that
 * takes longer shares the process with others.
 */
const HELD_AT_MOST_MS = 2000;
/** A waiter polls at least this often. A waiter that has not polled for longer than `GONE_MS` is treated as gone. */
const LONGEST_LOOK_MS = 100;
const GONE_MS = 5000;
/** For how many organisations the computed work is remembered. */
const ORGANISATIONS = 10_000;

/** What an organisation has computed. */
interface Computed {
  /** Steps, on a scale that all organisations share. */
  readonly had: number;
  /** When its share of the process has paid for its work. */
  readonly paidAt: number;
  /** It rests until this time, because its work exceeded a pass. */
  readonly restUntil: number;
}
const NOTHING: Computed = { had: 0, paidAt: 0, restUntil: 0 };

interface Waiting {
  readonly org: string;
  /** Takes its turn before others of its organisation. */
  readonly first: boolean;
  seen: number;
}

/** The process's clock and timer. While a waiter waits, all other work can run. */
export interface Waits {
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<void>;
}
const REAL: Waits = { now: () => Date.now(), wait: (ms) => scheduler.wait(ms) };

/** Called with the number of steps that were computed since the turn was taken. */
export type GiveBack = (steps: number) => void;

/** Steps of work that is proportional to the length of a text. */
export function stepsOfText(characters: number): number {
  return STEPS_PER_TEXT + STEPS_PER_CHARACTER * characters;
}

/** The same for JSON text from a caller. `names`: how many members all its objects have. */
export function stepsOfJson(text: string, { names } = countJson(text)): number {
  return stepsOfText(text.length) + STEPS_PER_NAME * names;
}

/** Steps of making a task: parsing its row and filling in its prompt. */
export function stepsOfTask(row: string, promptCharacters: number): number {
  return stepsOfJson(row) + promptCharacters / PROMPT_CHARACTERS_PER_STEP;
}

/** The same for a training sample: each token has an id, a logprob and a mask. */
export function stepsOfTokens(tokens: number): number {
  return STEPS_PER_TEXT + STEPS_PER_TOKEN * tokens;
}

export class FairScheduler {
  readonly waits: Waits;
  readonly #waiting = new Set<Waiting>();
  /** By organisation. The one whose last work is the longest ago comes first. */
  readonly #computedBy = new Map<string, Computed>();
  /** When each present organisation had its last turn or request; the longest ago comes first. */
  readonly #present = new Map<string, number>();
  /** Level of the organisation that began last, on the shared scale. A new organisation begins at this level. */
  #level = 0;
  #heldUntil = 0;
  /** Steps since the process last rested, and the time until which it rests. */
  #computed = 0;
  #restUntil = 0;
  /** How many counts were made in all, and at the time of the last poll of a waiter. */
  #counts = 0;
  #looked = 0;

  constructor(waits: Waits = REAL) {
    this.waits = waits;
  }

  /**
   * Resolves when this organisation may compute this many steps; the caller must do the work before it awaits anything.
   * `first`: before other work of this organisation, because other organisations wait for this work, as in a consumer.
   */
  spend(org: string, steps: number, first = false): Promise<void> {
    return this.#inTurn(org, () => this.#count(org, steps, STEP_MS * steps), first);
  }

  /** The same for work that awaits something: no other work runs until the turn is given back. */
  take(org: string, first = false): Promise<GiveBack> {
    const begin = () => {
      const until = this.waits.now() + HELD_AT_MOST_MS;
      this.#heldUntil = until;
      return (steps: number) => {
        this.#count(org, steps);
        if (this.#heldUntil === until) this.#heldUntil = 0;
      };
    };
    return this.#inTurn(org, begin, first);
  }

  /** Calls `begin` synchronously, at the moment when the caller is found to be next. */
  async #inTurn<T>(org: string, begin: () => T, first = false): Promise<T> {
    const me = { org, first, seen: this.waits.now() };
    return this.#isNext(me) ? this.#begin(org, begin) : await this.#waitTo(me, begin);
  }

  #begin<T>(org: string, begin: () => T): T {
    this.#level = this.levelOf(org);
    this.notePresence(org);
    return begin();
  }

  /** Polls, for the reason given at takeTurn in environment/quarantine.ts. */
  async #waitTo<T>(me: Waiting, begin: () => T): Promise<T> {
    const { now, wait } = this.waits;
    const { org } = me;
    try {
      for (;;) {
        this.#waiting.add(me);
        const counts = this.#counts;
        // Waiters of one organisation poll one after the other, one a millisecond.
        const rest = this.#looked === counts ? Math.ceil(this.#restedAt(org, now()) - now()) : 0;
        await wait(Math.min(LONGEST_LOOK_MS, Math.max(rest, this.#waitingOf(org))));
        me.seen = now();
        // The counted work has been computed by now, even if the estimate was longer.
        if (this.#looked !== this.#counts) this.#restUntil = Math.min(this.#restUntil, me.seen + REST_MS);
        this.#looked = this.#counts;
        // If the condition is false, another waiter computed during this wait.
        if (counts === this.#counts && me.seen >= this.#restUntil) this.#computed = 0;
        if (this.#isNext(me)) return this.#begin(org, begin);
      }
    } finally {
      this.#waiting.delete(me);
    }
  }

  #isNext({ org, first, seen: at }: Waiting): boolean {
    if (at < this.#heldUntil || this.#computed >= PASS_STEPS || at < this.#restedAt(org, at)) return false;
    const level = this.levelOf(org);
    for (const other of this.#waiting) {
      if (at - other.seen > GONE_MS) this.#waiting.delete(other);
      else if (other.org === org) {
        if (other.first && !first) return false;
      } else if (this.levelOf(other.org) < level) return false;
    }
    return true;
  }

  #waitingOf(org: string): number {
    let count = 0;
    for (const other of this.#waiting) if (other.org === org) count += 1;
    return count;
  }

  /** How much the organisation has computed, on the shared scale. The lowest level is next. */
  levelOf(org: string): number {
    return Math.max(this.#level, this.#of(org).had);
  }

  #of(org: string): Computed {
    return this.#computedBy.get(org) ?? NOTHING;
  }

  /** `ahead`: milliseconds until the steps are computed. The process rests after that. */
  #count(org: string, steps: number, ahead = 0): void {
    const ends = this.waits.now() + ahead;
    this.#computed += steps;
    this.#counts += 1;
    const beyond = this.#computed - PASS_STEPS;
    if (beyond >= 0) this.#restUntil = ends + REST_MS;
    this.#charge(org, steps, ends, beyond > 0 ? ends + REST_MS + STEP_MS * beyond : 0);
  }

  /** Counts work that the process will do later for this organisation, in pieces that are not counted one by one. */
  charge(org: string, steps: number): void {
    this.#charge(org, steps, this.waits.now() + STEP_MS * steps);
  }

  #charge(org: string, steps: number, ends: number, rest = 0): void {
    const took = STEP_MS * steps;
    const { paidAt, restUntil } = this.#of(org);
    const shares = 1 + this.#organisationsWaiting().add(org).size;
    this.#computedBy.delete(org);
    this.#computedBy.set(org, {
      had: this.levelOf(org) + steps,
      paidAt: Math.max(paidAt, ends - took) + took * shares,
      restUntil: rest === 0 ? restUntil : rest,
    });
    const [oldest] = this.#computedBy.keys();
    if (this.#computedBy.size > ORGANISATIONS && oldest !== undefined) this.#computedBy.delete(oldest);
  }

  /** Notes that the organisation is present: the others leave it a share of the process. */
  notePresence(org: string): void {
    const now = this.waits.now();
    this.#present.delete(org);
    this.#present.set(org, now);
    for (const [one, at] of this.#present) {
      if (now - at <= PRESENT_MS && this.#present.size <= ORGANISATIONS) break;
      this.#present.delete(one);
    }
  }

  /** For how many milliseconds this organisation must leave the process to others. */
  restOf(org: string): number {
    const now = this.waits.now();
    return Math.max(0, this.#restedAt(org, now) - now);
  }

  /** The time until which this organisation must leave the process to others. */
  #restedAt(org: string, at: number): number {
    const { paidAt, restUntil } = this.#of(org);
    const rest = Math.max(this.#restUntil, restUntil);
    const share = paidAt - AHEAD_MS;
    if (share <= at) return rest;
    const waiting = this.#organisationsWaiting().add(org);
    for (const one of this.#present.keys()) if (!waiting.has(one)) return Math.max(rest, share);
    return rest;
  }

  #organisationsWaiting(): Set<string> {
    const waiting = new Set<string>();
    for (const { org } of this.#waiting) waiting.add(org);
    return waiting;
  }
}

/** The scheduling turns of this process. */
export const PROCESS_SCHEDULER = new FairScheduler();

/** Texts above this length count as large: parsing, joining, hashing or sending one is counted work. */
export const LARGE_CHARACTERS = 64 * 1024;
const STEPS_PER_LARGE_CHARACTER = 0.5;

/** Resolves when a large text may be processed; null if the text is not large and need not wait. */
export function turnOfLarge(org: string, characters: number): Promise<void> | null {
  return characters <= LARGE_CHARACTERS ? null : PROCESS_SCHEDULER.spend(org, characters * STEPS_PER_LARGE_CHARACTER);
}
