/** A semaphore: at most `most()` holders at a time, and the longest waiting is next. */
export class Semaphore {
  readonly #most: () => number;
  #taken = 0;
  /** In order of arrival. */
  readonly #waiting = new Set<() => void>();

  /** `most` is called each time, because it may change. */
  constructor(most: () => number) {
    this.#most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  /** True if the next caller would have to wait. */
  get full(): boolean {
    return this.#taken >= this.#most();
  }

  /**
   * Runs `work` when a place is free, and holds the place until its end or until it calls `leave`. `during` gets the
   * wait; if it throws, the place is given up.
   */
  async run<T>(
    work: (leave: () => void) => Promise<T>,
    during: (wait: Promise<void>) => Promise<void> = (wait) => wait,
  ): Promise<T> {
    if (this.full) await this.#wait(during);
    else this.#taken += 1;
    let held = true;
    const leave = () => {
      if (held) this.#giveBack();
      held = false;
    };
    try {
      return await work(leave);
    } finally {
      leave();
    }
  }

  /** Resolves when a place was handed over. */
  async #wait(during: (wait: Promise<void>) => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await during(promise);
    } catch (thrown) {
      // The place may have been handed over at that moment.
      if (!this.#waiting.delete(resolve)) this.#giveBack();
      throw thrown;
    }
  }

  #giveBack(): void {
    this.#taken -= 1;
    for (const resolve of this.#waiting) {
      if (this.full) return;
      this.#waiting.delete(resolve);
      this.#taken += 1;
      resolve();
    }
  }
}

/** Resolves with the wait. Throws the signal's reason as soon as the call is no longer needed. */
export async function unlessAborted(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, reject } = Promise.withResolvers<void>();
  const stop = () => reject(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  try {
    await Promise.race([wait, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
