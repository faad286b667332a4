/**
 * Memory of the isolate for the questions of scoring groups to judges, which stay in memory until they are answered.
 *
 * Invariants. Questions are asked only if they have memory. If there is none, they are dropped, and the pass that made
 * them is repeated once there is; it then holds its memory from the start. A scoring group that got none for too long
 * is returned to the run.
 */
import type { Growing, Waiting } from "../kit/fair-semaphore.ts";
import { BYTES_PER_CHARACTER, isolateMemory } from "../kit/isolate-memory.ts";

/** Less than a claim of a scoring group lasts. */
const WAIT_MS = 30_000;
/** A scoring group that was returned is taken again after this time. */
export const PUT_OFF_MS = 5000;

/** The memory of one scoring group. */
export class AskReservation {
  readonly #env: Env;
  readonly #org: string;
  readonly #waiting: Waiting;
  #reservation: Growing | null = null;
  #size = 0;
  /** The memory that the previous pass did not get. */
  #needed = 0;
  #waited = false;

  constructor(env: Env, org: string, waiting: Waiting = {}) {
    this.#env = env;
    this.#org = org;
    this.#waiting = waiting;
  }

  /** Must be called before a pass. */
  async enter(): Promise<void> {
    if (this.#needed === 0) return;
    const { questions } = isolateMemory(this.#env);
    const bytes = this.#needed * BYTES_PER_CHARACTER;
    this.#have(await questions.wait(this.#org, WAIT_MS, this.#waiting, bytes), this.#needed);
    this.#waited = true;
  }

  /** `later`: it waits before the next pass. `full`: it has waited in vain. */
  hold(characters: number): "held" | "later" | "full" {
    if (characters <= this.#size) return "held";
    this.leave();
    const { questions } = isolateMemory(this.#env);
    this.#have(questions.take(this.#org, Date.now(), characters * BYTES_PER_CHARACTER), characters);
    if (this.#reservation !== null) return "held";
    this.#needed = characters;
    return this.#waited ? "full" : "later";
  }

  /** Its questions are answered, or will not be asked. */
  leave(): void {
    this.#reservation?.leave();
    this.#have(null, 0);
  }

  #have(reservation: Growing | null, characters: number): void {
    this.#reservation = reservation;
    this.#size = reservation === null ? 0 : characters;
    this.#needed = 0;
  }
}
