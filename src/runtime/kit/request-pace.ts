/**
 * How fast the requests of one organisation are answered while other organisations ask too. All requests of a process
 * share one thread: forty at once of one organisation would keep all others waiting.
 *
 * Invariants. What a request costs is stated by its operation, never timed. While another organisation is here, one
 * organisation's requests take at most half of the process's time; of several that ask for more than their part, each
 * takes an equal part, and one part is left for those that ask for less. What is beyond waits; a request that would wait
 * for longer than `LONGEST_WAIT_MS` is refused. An organisation that is alone never waits.
 */

/** How much an organisation may be ahead of its part before it waits: a page of ours asks several things at once. */
const AHEAD_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** An organisation that asked so long ago is still here: it may follow a run on a stream of events, which lasts as long. */
const HERE_MS = 5 * 60_000;

interface Asked {
  readonly org: string;
  readonly at: number;
}

export class RequestPace {
  /** By organisation, until when the process works for it at its pace; only those of which that is still to come. */
  readonly #busyUntil = new Map<string, number>();
  /** The organisation that asked last, and the last other one. */
  #last: Asked | null = null;
  #other: Asked | null = null;

  /**
   * Milliseconds that a request has to wait before it is answered; null where it is refused. `costMs`: what it takes of
   * the process; `now`: epoch milliseconds.
   */
  enter(org: string, costMs: number, now: number): number | null {
    if (this.#last !== null && this.#last.org !== org) this.#other = this.#last;
    this.#last = { org, at: now };
    for (const [one, until] of this.#busyUntil) if (until <= now) this.#busyUntil.delete(one);
    if (this.#other === null || now - this.#other.at > HERE_MS) return 0;
    const behind = (this.#busyUntil.get(org) ?? now) - now;
    const wait = Math.max(0, behind - AHEAD_MS);
    if (wait > LONGEST_WAIT_MS) return null;
    const parts = 1 + this.#busyUntil.size + (this.#busyUntil.has(org) ? 0 : 1);
    this.#busyUntil.set(org, now + behind + costMs * parts);
    return wait;
  }
}

/** That of this process. */
export const PROCESS_PACE = new RequestPace();
