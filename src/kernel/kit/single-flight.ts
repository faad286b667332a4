/** Runs work one pass at a time, and waits after a failure before the next pass. Never throws. */
import { type LogIds, logError } from "./log.ts";

const AGAIN_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

export class SingleFlight {
  readonly #what: string;
  readonly #now: () => number;
  #busy = false;
  #failures = 0;
  #notBefore = 0;

  constructor(what: string, now: () => number) {
    this.#what = what;
    this.#now = now;
  }

  /** Returns null and does nothing while a pass is running or the wait after a failure is not over. */
  run(about: LogIds, work: () => Promise<void>): Promise<void> | null {
    if (this.#busy || this.#now() < this.#notBefore) return null;
    this.#busy = true;
    return this.#pass(about, work);
  }

  async #pass(about: LogIds, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#failures = 0;
    } catch (thrown) {
      logError(this.#what, about, thrown);
      const wait = Math.min(LONGEST_WAIT_MS, AGAIN_MS * 2 ** this.#failures);
      this.#notBefore = this.#now() + wait;
      this.#failures += 1;
    } finally {
      this.#busy = false;
    }
  }

  /** `at`, or when the next pass may begin: epoch milliseconds. */
  after(at: number | null): number | null {
    if (at === null) return null;
    return Math.max(at, this.#busy ? this.#now() + AGAIN_MS : this.#notBefore);
  }
}
