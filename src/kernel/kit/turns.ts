/** So many at a time, and the longest waiting first. */
export class Turns {
  readonly #most: () => number;
  #taken = 0;
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();

  /** `most` is asked each time: it may change. */
  constructor(most: () => number) {
    this.#most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  /** True where the next one would have to wait. */
  get full(): boolean {
    return this.#taken >= this.#most();
  }

  /** Runs `work` when it is its turn. `during` hears of the wait, and what it throws gives the turn up. */
  async run<T>(work: () => Promise<T>, during: (wait: Promise<void>) => Promise<void> = (wait) => wait): Promise<T> {
    if (this.full) await this.#wait(during);
    else this.#taken += 1;
    try {
      return await work();
    } finally {
      this.#taken -= 1;
      this.#next();
    }
  }

  /** Resolves when a turn was handed over. */
  async #wait(during: (wait: Promise<void>) => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await during(promise);
    } catch (thrown) {
      // It may have been its turn just then.
      if (!this.#waiting.delete(resolve)) {
        this.#taken -= 1;
        this.#next();
      }
      throw thrown;
    }
  }

  #next(): void {
    for (const resolve of this.#waiting) {
      if (this.full) return;
      this.#waiting.delete(resolve);
      this.#taken += 1;
      resolve();
    }
  }
}

/** The wait; throws the signal's reason as soon as nobody wants the call any more. */
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
