/**
 * Lets many objects of one process begin the same work one after another. If a thousand rollouts stopped at the same
 * moment, they would block the process until all have ended, and readers or sockets being closed would wait as long.
 *
 * Invariants. Each caller gets its own time. A timer fires only when the process has nothing left to compute and has
 * polled its sockets. A caller whose timer fires late finds the process busy and waits again, after the others. No
 * caller waits longer than `MOST_MS`, and a single caller does not wait.
 */
interface Waiting {
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
}

const YIELD_MS = 1;
const LATE_MS = 30;
const MOST_MS = 5000;
const REAL: Waiting = { now: () => Date.now(), pause: (ms) => scheduler.wait(ms) };

export class EventLoopYield {
  #next = 0;

  /** Resolves when its caller may begin. */
  async turn({ now, pause }: Waiting = REAL): Promise<void> {
    const end = now() + MOST_MS;
    for (;;) {
      const at = Math.max(now(), this.#next);
      this.#next = at + YIELD_MS;
      if (at > now()) await pause(Math.min(at, end) - now());
      if (now() - at <= LATE_MS || now() >= end) return;
    }
  }
}
