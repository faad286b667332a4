/**
 * Who computes next. All objects, consumers and requests of a process share one thread: while one computes, nobody is
 * answered. So whatever is bounded one by one and not in sum (rows of an upload, lines of a page, units of a message)
 * counts its work here.
 *
 * Invariants. Work is counted, never timed. What is counted at once is not divided. After `PASS_STEPS` the process rests
 * from counted work for a fifth of what they took: answering a request takes many looks at the sockets, and each would wait
 * for a pass. The organisation whose work went beyond that rests for as long as it went beyond. While an organisation is
 * present that does not wait for a turn, it needs the process for what nobody counts: so each of the others has an equal
 * share of the process, and one share stays free. Among organisations that wait, the one is next that has computed least
 * since it came. So two that always wait have half each, however they divide their work.
 */
import { countJson } from "../../core/schema/json-counts.ts";

/** About 50 ms of one core: a step is some 50 ns. */
export const PASS_STEPS = 1_000_000;
/** What a step takes. */
const STEP_MS = 50e-6;
/** How long the process rests after a pass. */
const REST_MS = 10;
/** What an organisation may compute ahead of its share: a small run is then not slowed down by another that is idle. */
const AHEAD_MS = 10 * PASS_STEPS * STEP_MS;
/** An organisation counts as present for this long after its last turn or request. */
const PRESENT_MS = 60_000;
/**
 * Reading a text as JSON, and making something of it: a character of text, and what each has to it beside its text. Each
 * name of an object's member is looked up many times: 2 µs where an object has 100,000 of them.
 */
const STEPS_PER_CHARACTER = 2;
const STEPS_PER_TEXT = 200;
const STEPS_PER_TOKEN = 10;
/** A prompt that is filled in: a template names megabytes in few characters. */
const PROMPT_CHARACTERS_PER_STEP = 32;
const STEPS_PER_NAME = 40;
/** One that holds the turn and was not heard of for so long is gone: its invocation was ended. */
const HELD_AT_MOST_MS = 60_000;
/** One that waits looks again after this at the latest. One that has not looked for longer than `GONE_MS` is gone. */
const LONGEST_LOOK_MS = 100;
const GONE_MS = 5000;
/** Organisations of which it is known how much they computed. */
const ORGANISATIONS = 10_000;

/** What an organisation has computed. */
interface Computed {
  /** In steps, on a scale that all organisations share. */
  readonly had: number;
  /** When what it had is paid for by its share of the process. */
  readonly paidAt: number;
  /** Until when it rests from work that went beyond a pass. */
  readonly restUntil: number;
}
const NOTHING: Computed = { had: 0, paidAt: 0, restUntil: 0 };

interface Waiting {
  readonly org: string;
  /** Takes its turn before others of its organisation. */
  readonly first: boolean;
  seen: number;
}

/** The process's clock and its timer: a wait lets it do all else. */
export interface Waits {
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<void>;
}
const REAL: Waits = { now: () => Date.now(), wait: (ms) => scheduler.wait(ms) };

/** Called with the steps that were computed since the turn was taken. */
export type GiveBack = (steps: number) => void;

/** Steps of work that goes by a text's length. */
export function stepsOfText(characters: number): number {
  return STEPS_PER_TEXT + STEPS_PER_CHARACTER * characters;
}

/** The same of a text that a caller wrote as JSON, where `names` are the members of all its objects. */
export function stepsOfJson(text: string, { names } = countJson(text)): number {
  return stepsOfText(text.length) + STEPS_PER_NAME * names;
}

/** Steps of making a task: its row is read, and its prompt filled in. */
export function stepsOfTask(row: string, promptCharacters: number): number {
  return stepsOfJson(row) + promptCharacters / PROMPT_CHARACTERS_PER_STEP;
}

/** The same of a sample that is trained on: each token has an id, a logprob and a mask. */
export function stepsOfTokens(tokens: number): number {
  return STEPS_PER_TEXT + STEPS_PER_TOKEN * tokens;
}

export class FairTurns {
  readonly waits: Waits;
  readonly #waiting = new Set<Waiting>();
  /** By organisation; those that computed nothing for longest come first. */
  readonly #computedBy = new Map<string, Computed>();
  /** When each organisation that is present had its last turn or request; the longest ago first. */
  readonly #present = new Map<string, number>();
  /** Where whoever began last was on that scale: an organisation that comes begins there, whatever it left before. */
  #level = 0;
  #heldUntil = 0;
  /** Steps since the process rested, and until when it does. */
  #computed = 0;
  #restUntil = 0;
  /** How often anything was counted, now and when one that waits looked last. */
  #counts = 0;
  #looked = 0;

  constructor(waits: Waits = REAL) {
    this.waits = waits;
  }

  /**
   * Resolves when this organisation may compute so many steps, which it does before it awaits anything. `first`: before
   * others of this organisation, because other organisations wait for what this work holds up, as in a consumer.
   */
  spend(org: string, steps: number, first = false): Promise<void> {
    return this.#inTurn(org, () => this.#count(org, steps, STEP_MS * steps), first);
  }

  /** The same for work that awaits something: nobody else computes until it is given back. */
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

  /** Begins at the very moment in which it is found to be next. */
  async #inTurn<T>(org: string, begin: () => T, first = false): Promise<T> {
    const me = { org, first, seen: this.waits.now() };
    return this.#isNext(me) ? this.#begin(org, begin) : await this.#waitTo(me, begin);
  }

  #begin<T>(org: string, begin: () => T): T {
    this.#level = this.levelOf(org);
    this.notePresence(org);
    return begin();
  }

  /** By looking again and again: see takeTurn in environment/suspects.ts. */
  async #waitTo<T>(me: Waiting, begin: () => T): Promise<T> {
    const { now, wait } = this.waits;
    const { org } = me;
    try {
      for (;;) {
        this.#waiting.add(me);
        const counts = this.#counts;
        // Those of one organisation look one after the other, each millisecond one.
        const rest = this.#looked === counts ? Math.ceil(this.#restedAt(org, now()) - now()) : 0;
        await wait(Math.min(LONGEST_LOOK_MS, Math.max(rest, this.#waitingOf(org))));
        me.seen = now();
        // What was counted is computed by now, though it may have been estimated to take longer.
        if (this.#looked !== this.#counts) this.#restUntil = Math.min(this.#restUntil, me.seen + REST_MS);
        this.#looked = this.#counts;
        // Else another has computed behind the look that this wait was.
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

  /** How much it has computed, on a scale that all organisations share: whoever has the least is next. */
  levelOf(org: string): number {
    return Math.max(this.#level, this.#of(org).had);
  }

  #of(org: string): Computed {
    return this.#computedBy.get(org) ?? NOTHING;
  }

  /** `ahead`: milliseconds until they are computed. The process rests from then on. */
  #count(org: string, steps: number, ahead = 0): void {
    const ends = this.waits.now() + ahead;
    this.#computed += steps;
    this.#counts += 1;
    const beyond = this.#computed - PASS_STEPS;
    if (beyond >= 0) this.#restUntil = ends + REST_MS;
    this.#charge(org, steps, ends, beyond > 0 ? ends + REST_MS + STEP_MS * beyond : 0);
  }

  /** Counts what the process will compute later for this organisation, in pieces that nobody counts. */
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

  /** While it is present, others leave it a share of the process. */
  notePresence(org: string): void {
    const now = this.waits.now();
    this.#present.delete(org);
    this.#present.set(org, now);
    for (const [one, at] of this.#present) {
      if (now - at <= PRESENT_MS && this.#present.size <= ORGANISATIONS) break;
      this.#present.delete(one);
    }
  }

  /** Milliseconds for which this organisation leaves the process to others. */
  restOf(org: string): number {
    const now = this.waits.now();
    return Math.max(0, this.#restedAt(org, now) - now);
  }

  /** Until when this organisation leaves the process to others. */
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

/** Those of this process. */
export const PROCESS_TURNS = new FairTurns();

/** Handling a large text as it is: it is parsed, put together, hashed or sent. */
export const LARGE_CHARACTERS = 64 * 1024;
const STEPS_PER_LARGE_CHARACTER = 0.5;

/** Resolves when so large a text may be handled; null for one that is not large, which waits for nobody. */
export function turnOfLarge(org: string, characters: number): Promise<void> | null {
  return characters <= LARGE_CHARACTERS ? null : PROCESS_TURNS.spend(org, characters * STEPS_PER_LARGE_CHARACTER);
}
