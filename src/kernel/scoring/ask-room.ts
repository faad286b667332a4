/**
 * How much of what judges are asked a process holds in memory, in sum: a unit's questions are there until they are answered.
 *
 * Invariants. Questions are asked only while they have room. Where there is none, they are not kept: the pass that made
 * them is made again once there is, and holds its room from before that. A unit that found none for too long is given
 * back.
 */
import { LIMITS } from "../../contract/limits.ts";
import { type Place, Places, type Waiting } from "../kit/places.ts";

/** Longer than an invocation lasts. */
const SILENCE_MS = 20 * 60_000;
/** Less than a claim of a unit lasts. */
const WAIT_MS = 30_000;
/** When a unit that was given back is taken again. */
export const PUT_OFF_MS = 5000;

/** Of all units of this process, in characters. */
export const ASKS_HELD = new Places(LIMITS.askedCharacters, SILENCE_MS);

/** Of one unit. */
export class AskRoom {
  readonly #org: string;
  readonly #waiting: Waiting;
  #place: Place | null = null;
  #size = 0;
  /** What the pass before found no room for. */
  #needed = 0;
  #waited = false;

  constructor(org: string, waiting: Waiting = {}) {
    this.#org = org;
    this.#waiting = waiting;
  }

  /** Before a pass. */
  async enter(): Promise<void> {
    if (this.#needed === 0) return;
    this.#have(await ASKS_HELD.wait(this.#org, WAIT_MS, this.#waiting, this.#needed), this.#needed);
    this.#waited = true;
  }

  /** `later`: it waits before the next pass. `full`: it has waited in vain. */
  hold(characters: number): "held" | "later" | "full" {
    if (characters <= this.#size) return "held";
    this.leave();
    this.#have(ASKS_HELD.take(this.#org, Date.now(), characters), characters);
    if (this.#place !== null) return "held";
    this.#needed = characters;
    return this.#waited ? "full" : "later";
  }

  /** Its questions are answered, or nobody asks them. */
  leave(): void {
    this.#place?.leave();
    this.#have(null, 0);
  }

  #have(place: Place | null, characters: number): void {
    this.#place = place;
    this.#size = place === null ? 0 : characters;
    this.#needed = 0;
  }
}
