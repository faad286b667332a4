/**
 * How many do the same costly thing at once in this process: a place each, and a refusal for whoever finds none.
 *
 * Invariants. Never more than so many places are held. One that shows no sign of life for too long is nobody's any more: the
 * runtime may end an invocation without running what it left to do.
 */

export interface Place {
  /** Says that its holder is still at it. */
  readonly stay: (now: number) => void;
  /** A second time it does nothing. */
  readonly leave: () => void;
}

interface Waiting {
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
}

const ASK_EVERY_MS = 20;
const REAL: Waiting = { now: () => Date.now(), pause: (ms) => scheduler.wait(ms) };

export class Places {
  readonly #most: number;
  readonly #silenceMs: number;
  /** When each holder was last heard of, in epoch milliseconds. */
  readonly #held = new Map<symbol, number>();

  constructor(most: number, silenceMs: number) {
    this.#most = most;
    this.#silenceMs = silenceMs;
  }

  /** The same, asked until there is one or so many milliseconds are over. A place may be left in another invocation: nothing tells. */
  async wait(ms: number, { now, pause }: Waiting = REAL): Promise<Place | null> {
    const end = now() + ms;
    for (;;) {
      const place = this.take(now());
      if (place !== null || now() >= end) return place;
      await pause(ASK_EVERY_MS);
    }
  }

  /** Null where all are held. */
  take(now: number): Place | null {
    for (const [holder, heard] of this.#held) {
      if (now - heard > this.#silenceMs) this.#held.delete(holder);
    }
    if (this.#held.size >= this.#most) return null;
    const holder = Symbol();
    this.#held.set(holder, now);
    return {
      stay: (at) => {
        if (this.#held.has(holder)) this.#held.set(holder, at);
      },
      leave: () => this.#held.delete(holder),
    };
  }
}
