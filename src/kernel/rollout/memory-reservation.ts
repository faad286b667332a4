/**
 * Bounds the memory that all running rollouts of a process use together: one may have megabytes, and thousands run at once.
 *
 * Invariants. A rollout is in memory only while it has room. A rollout without room waits and holds none meanwhile, so
 * rollouts with room never wait for each other. Growth is counted before the next call; if it does not fit, the rollout is
 * stored, gives its room back, and waits for all that it needs. Two large rollouts may have more than there is, so that small
 * ones cannot keep them waiting.
 */
import type { Rollout } from "../../core/rollout/rollout.ts";
import { turnOfLarge } from "../kit/fair-scheduler.ts";
import { type Growing, type GrowingMemory, waitFor } from "../kit/fair-semaphore.ts";
import { BYTES_PER_CHARACTER, isolateMemory } from "../kit/isolate-memory.ts";
import { rolloutCharactersOf } from "../kit/memory-variables.ts";
import type { RolloutSpec } from "../messages/wire.ts";

/** Wait between two tries to get memory. */
export const ASK_AGAIN_MS = 500;

/** The memory of one rollout. */
export class MemoryReservation {
  readonly #memory: GrowingMemory;
  readonly #id: string;
  readonly #now: () => number;
  #org = "";
  #reservation: Growing | null = null;
  /** In bytes. */
  #size = 0;
  /** What it needs at least, as far as known. */
  #needed = 0;

  /** `id`: of the rollout. */
  constructor(env: Env, id: string, now: () => number) {
    this.#memory = isolateMemory(env).rollouts;
    this.#id = id;
    this.#now = now;
  }

  get isHeld(): boolean {
    return this.#reservation !== null;
  }

  /** False if there is no memory yet and `mayWait` returns false. `letGo`: called before it waits. */
  async enter(org: string, characters: number, mayWait: () => boolean, letGo: () => void): Promise<boolean> {
    this.#org = org;
    this.#note(characters);
    if (this.#take(this.#now())) return true;
    letGo();
    const take = (now: number) => this.#take(now) || (mayWait() ? null : false);
    const pause = () => scheduler.wait(ASK_AGAIN_MS);
    return (await waitFor(take, Number.POSITIVE_INFINITY, { now: this.#now, pause })) ?? false;
  }

  /** The rollout now has this size. False if there is no memory for that. */
  grow(characters: number): boolean {
    this.#note(characters);
    if (this.#reservation === null) return false;
    const fits = this.#reservation.grow(this.#needed - this.#size, this.#now());
    if (fits) this.#size = this.#needed;
    return fits;
  }

  /** Resolves when a large rollout may be read, called for or stored; null for a small one, which need not wait. */
  turn(characters = this.#needed / BYTES_PER_CHARACTER): Promise<void> | null {
    return turnOfLarge(this.#org, characters);
  }

  leave(): void {
    this.#reservation?.leave();
    this.#reservation = null;
    this.#size = 0;
  }

  #note(characters: number): void {
    this.#needed = Math.max(this.#needed, characters * BYTES_PER_CHARACTER);
  }

  #take(now: number): boolean {
    const held = this.#reservation ?? this.#memory.open(this.#org, now, this.#id);
    if (!held.grow(this.#needed - this.#size, now)) {
      this.leave();
      held.leave();
      return false;
    }
    this.#reservation = held;
    this.#size = this.#needed;
    return true;
  }
}

/** The most that its turns may have, as JSON in UTF-16 units. Those that are scored together are in memory together. */
export function mostCharactersOf(env: Env, { scored_together = 1 }: RolloutSpec): number {
  return Math.min(rolloutCharactersOf(env), isolateMemory(env).mostCharacters(scored_together));
}

/** The size of its row, its prompt, and its turns so far. */
export function sizeInMemory({ characters = 0 }: RolloutSpec, { held = 0 }: Rollout): number {
  return characters + held;
}
