/**
 * Paces the requests of each organisation while other organisations send requests too. All requests of a process share one
 * thread, so forty at once from one organisation would block all others.
 *
 * Invariants. The cost of a request is stated by its operation, never timed. While another organisation is present, the
 * requests of one organisation use at most half of the process's time. If several want more than their share, they get equal
 * shares, and one share stays free for the others. A request beyond the share waits; one that would wait for longer than
 * `LONGEST_WAIT_MS` is refused. An organisation that is alone never waits.
 */

/** Cost that an organisation may use ahead of its share before it waits: the web page sends several requests at once. */
const AHEAD_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** An organisation counts as present for this long after a request: a stream of events lasts as long. */
const HERE_MS = 5 * 60_000;

interface Asked {
  readonly org: string;
  readonly at: number;
}

export class RequestPace {
  /** By organisation, when its requests so far will be paid for by its share; without those that are paid for. */
  readonly #busyUntil = new Map<string, number>();
  /** The organisation of the last request, and the last other organisation. */
  #last: Asked | null = null;
  #other: Asked | null = null;

  /**
   * Milliseconds that a request has to wait; null if it is refused. `costMs`: CPU in milliseconds. `now`: epoch
   * milliseconds.
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
