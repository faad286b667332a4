/** A timer fires at once if it is set for longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The time of one call. It does not run while the platform itself does not read, because it has no memory for the reply:
 * that is no fault of the server. However long that lasts, the call ends at the latest time.
 */
export class CallTimer {
  readonly #end: () => void;
  readonly #now: () => number;
  readonly #last: ReturnType<typeof setTimeout> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #leftMs: number;
  #runsSince: number | null = null;
  #waits = 0;
  #over = false;

  /** In milliseconds: `ms` is the time of the call, and `latestMs`, if it is more, the longest that it takes with waits. */
  constructor(ms: number, latestMs: number, end: () => void, now: () => number = () => Date.now()) {
    this.#end = end;
    this.#now = now;
    this.#leftMs = ms;
    const last = Math.max(ms, latestMs);
    if (last <= LONGEST_TIMER_MS) this.#last = setTimeout(end, last);
    this.#run();
  }

  async untimed(wait: Promise<void>): Promise<void> {
    this.#waits += 1;
    if (this.#waits === 1) this.#stop();
    try {
      await wait;
    } finally {
      this.#waits -= 1;
      if (this.#waits === 0) this.#run();
    }
  }

  /** The call is over. */
  close(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#last);
  }

  #run(): void {
    if (this.#over) return;
    this.#runsSince = this.#now();
    this.#timer = setTimeout(this.#end, Math.max(0, this.#leftMs));
  }

  #stop(): void {
    clearTimeout(this.#timer);
    if (this.#runsSince !== null) this.#leftMs -= this.#now() - this.#runsSince;
    this.#runsSince = null;
  }
}
