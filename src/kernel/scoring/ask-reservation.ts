/**
 * Limits the total memory of questions to judges in a process: a scoring group's questions stay in memory until they
 * are answered.
 *
 * Invariants. Questions are asked only if they have memory. If there is none, they are dropped, and the pass that made
 * them is repeated once there is; it then holds its memory from the start. A scoring group that got none for too long
 * is returned to the run.
 */
import { LIMITS } from "../../contract/limits.ts";
import { FairSemaphore, type Reservation, type Waiting } from "../kit/fair-semaphore.ts";

/** Longer than an invocation lasts. */
const SILENCE_MS = 20 * 60_000;
/** Less than a claim of a scoring group lasts. */
const WAIT_MS = 30_000;
/** A scoring group that was returned is taken again after this time. */
export const PUT_OFF_MS = 5000;

/** The memory for all scoring groups of this process, in characters. */
export const ASKS_HELD = new FairSemaphore(LIMITS.askedCharacters, SILENCE_MS);

/** The memory of one scoring group. */
export class AskReservation {
  readonly #org: string;
  readonly #waiting: Waiting;
  #reservation: Reservation | null = null;
  #size = 0;
  /** The memory that the previous pass did not get. */
  #needed = 0;
  #waited = false;

  constructor(org: string, waiting: Waiting = {}) {
    this.#org = org;
    this.#waiting = waiting;
  }

  /** Must be called before a pass. */
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
    if (this.#reservation !== null) return "held";
    this.#needed = characters;
    return this.#waited ? "full" : "later";
  }

  /** Its questions are answered, or will not be asked. */
  leave(): void {
    this.#reservation?.leave();
    this.#have(null, 0);
  }

  #have(reservation: Reservation | null, characters: number): void {
    this.#reservation = reservation;
    this.#size = reservation === null ? 0 : characters;
    this.#needed = 0;
  }
}
