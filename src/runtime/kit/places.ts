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

export interface Waiting {
  readonly now?: () => number;
  readonly pause?: (ms: number) => Promise<void>;
}

const ASK_EVERY_MS = 20;

/** What `take` gives, asked again and again: what it waits for may come to pass in another invocation, and nothing tells. */
export async function waitFor<T>(
  take: (now: number) => T | null,
  ms: number,
  { now = () => Date.now(), pause = (ms) => scheduler.wait(ms) }: Waiting = {},
): Promise<T | null> {
  const end = now() + ms;
  for (;;) {
    const taken = take(now());
    if (taken !== null || now() >= end) return taken;
    await pause(ASK_EVERY_MS);
  }
}

export class Places {
  readonly #most: number;
  readonly #silenceMs: number;
  /** When each holder was last heard of, in epoch milliseconds. */
  readonly #held = new Map<symbol, number>();

  constructor(most: number, silenceMs: number) {
    this.#most = most;
    this.#silenceMs = silenceMs;
  }

  /** The same, asked until there is one or so many milliseconds are over. */
  wait(ms: number, waiting?: Waiting): Promise<Place | null> {
    return waitFor((now) => this.take(now), ms, waiting);
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
