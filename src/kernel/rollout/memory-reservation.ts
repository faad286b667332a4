/**
 * Bounds the memory that all running rollouts of a process use together: one may have megabytes, and thousands run at once.
 *
 * Invariants. A rollout is in memory only while it has room. A rollout without room waits and holds none meanwhile, so
 * rollouts with room never wait for each other. Growth is counted before the next call; if it does not fit, the rollout is
 * stored, gives its room back, and waits for all that it needs. One rollout never needs more than one organisation may have.
 */
import { LIMITS } from "../../contract/limits.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import { turnOfLarge } from "../kit/fair-scheduler.ts";
import { FairSemaphore, type Reservation, waitFor } from "../kit/fair-semaphore.ts";
import type { RolloutSpec } from "../messages/wire.ts";

/** Longer than any step: a call, a hook, a close. */
const SILENCE_MS = 3 * LIMITS.closingMs;
/** Wait between two tries to get memory. */
export const ASK_AGAIN_MS = 500;

/** The memory of all objects of this process, in characters. */
export const ROLLOUTS_HELD = new FairSemaphore(LIMITS.heldCharacters, SILENCE_MS);

/** The memory of one rollout. */
export class MemoryReservation {
  readonly #now: () => number;
  #org = "";
  #reservation: Reservation | null = null;
  #size = 0;
  /** What it needs at least, as far as known. */
  #needed = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  get isHeld(): boolean {
    return this.#reservation !== null;
  }

  /** False if there is no memory yet and `mayWait` returns false. `letGo`: called before it waits. */
  async enter(org: string, characters: number, mayWait: () => boolean, letGo: () => void): Promise<boolean> {
    this.#org = org;
    this.#needed = Math.max(this.#needed, needOf(characters));
    if (this.#take(this.#now())) return true;
    letGo();
    const take = (now: number) => this.#take(now) || (mayWait() ? null : false);
    const pause = () => scheduler.wait(ASK_AGAIN_MS);
    return (await waitFor(take, Number.POSITIVE_INFINITY, { now: this.#now, pause })) ?? false;
  }

  /** The rollout now has this size. False if there is no memory for that. */
  grow(characters: number): boolean {
    this.#needed = Math.max(this.#needed, needOf(characters));
    if (this.#reservation === null) return false;
    const fits = this.#reservation.grow(this.#needed - this.#size, this.#now());
    if (fits) this.#size = this.#needed;
    return fits;
  }

  /** Resolves when a large rollout may be read, called for or stored; null for a small one, which need not wait. */
  turn(characters = this.#needed): Promise<void> | null {
    return turnOfLarge(this.#org, characters);
  }

  leave(): void {
    this.#reservation?.leave();
    this.#reservation = null;
  }

  #take(now: number): boolean {
    this.#reservation ??= ROLLOUTS_HELD.take(this.#org, now, this.#needed);
    this.#size = this.#needed;
    return this.#reservation !== null;
  }
}

/** The size of its row, its prompt, and its turns so far. */
export function sizeInMemory({ characters = 0 }: RolloutSpec, { held = 0 }: Rollout): number {
  return characters + held;
}

function needOf(characters: number): number {
  return Math.min(characters, LIMITS.heldCharacters / 2);
}
