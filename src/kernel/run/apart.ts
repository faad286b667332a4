/**
 * Lets many objects of one process begin the same work one after another: a thousand rollouts that are told to stop at
 * once would otherwise hold the process for as long as all of them take to end, and whoever reads meanwhile, or waits for
 * its socket to be closed, would wait as long.
 *
 * Invariants. Each has a time of its own, and a timer fires only once the process has nothing left to compute and has
 * looked at its sockets. One that comes to its turn late finds the process busy and takes another turn, behind the others;
 * nobody waits for longer than `MOST_MS`, and one alone does not wait.
 */
interface Waiting {
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
}

const APART_MS = 1;
const LATE_MS = 30;
const MOST_MS = 5000;
const REAL: Waiting = { now: () => Date.now(), pause: (ms) => scheduler.wait(ms) };

export class Apart {
  #next = 0;

  /** Resolves when its caller may begin. */
  async turn({ now, pause }: Waiting = REAL): Promise<void> {
    const end = now() + MOST_MS;
    for (;;) {
      const at = Math.max(now(), this.#next);
      this.#next = at + APART_MS;
      if (at > now()) await pause(Math.min(at, end) - now());
      if (now() - at <= LATE_MS || now() >= end) return;
    }
  }
}
