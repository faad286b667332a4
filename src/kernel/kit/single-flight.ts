/**
 * Runs work one pass at a time, and waits after a failure before the next pass. Never throws. A pass whose invocation
 * was ended runs no code any more, so after the longest time of an invocation it counts as gone.
 */
import { type LogIds, logError } from "./log.ts";

const AGAIN_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** The longest time of an alarm on Cloudflare. */
const GONE_MS = 15 * 60_000;

export class SingleFlight {
  readonly #what: string;
  readonly #now: () => number;
  /** When the running pass began, in epoch milliseconds; null if none runs. */
  #began: number | null = null;
  #failures = 0;
  #notBefore = 0;

  constructor(what: string, now: () => number) {
    this.#what = what;
    this.#now = now;
  }

  /** Returns null and does nothing while a pass is running or the wait after a failure is not over. */
  run(about: LogIds, work: () => Promise<void>): Promise<void> | null {
    const began = this.#now();
    if (this.#isBusy() || began < this.#notBefore) return null;
    this.#began = began;
    return this.#pass(about, work, began);
  }

  #isBusy(): boolean {
    return this.#began !== null && this.#now() - this.#began < GONE_MS;
  }

  async #pass(about: LogIds, work: () => Promise<void>, began: number): Promise<void> {
    try {
      await work();
      this.#failures = 0;
    } catch (thrown) {
      logError(this.#what, about, thrown);
      const wait = Math.min(LONGEST_WAIT_MS, AGAIN_MS * 2 ** this.#failures);
      this.#notBefore = this.#now() + wait;
      this.#failures += 1;
    } finally {
      if (this.#began === began) this.#began = null;
    }
  }

  /** `at`, or when the next pass may begin: epoch milliseconds. */
  after(at: number | null): number | null {
    if (at === null) return null;
    return Math.max(at, this.#isBusy() ? this.#now() + AGAIN_MS : this.#notBefore);
  }
}
