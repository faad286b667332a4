/**
 * Paces the requests of each organisation while other organisations send requests too. All requests of a process share
 * one thread, so forty at once from one organisation would block all others.
 *
 * Invariants. The cost of a request is stated by its operation, never timed. While another organisation is present, the
 * requests of one organisation use at most half of the process's time. If several want more than their share, they get
 * equal shares, and one share stays free for the others. A request beyond the share waits; one that would wait for
 * longer than `LONGEST_WAIT_MS` is refused. An organisation that is alone never waits. Requests of one organisation
 * that must not wait for its others have a lane, which is paced as one more organisation.
 */

/** Cost that an organisation may use ahead of its share: the web page sends several requests at once. */
const AHEAD_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** An organisation counts as present for this long after a request: a stream of events lasts as long. */
const HERE_MS = 5 * 60_000;

/** `urgent`: requests that limit damage. `hooks`: deliveries to its triggers, which anyone may send. */
export type Lane = "ordinary" | "urgent" | "hooks";

interface Asked {
  readonly org: string;
  readonly at: number;
}

export class RequestPace {
  /**
   * By organisation and lane: when its share will have paid for its requests so far, on `#clock`. Without those that
   * are paid for.
   */
  readonly #paidAt = new Map<string, number>();
  /** Milliseconds of the process that an organisation would have got if it had always wanted its share. */
  #clock = 0;
  #now = 0;
  /** The organisation of the last request, and the last other organisation. */
  #last: Asked | null = null;
  #other: Asked | null = null;

  /**
   * Milliseconds that a request has to wait; null if it is refused. `costMs`: CPU in milliseconds. `now`: epoch
   * milliseconds.
   */
  enter(org: string, costMs: number, now: number, lane: Lane = "ordinary"): number | null {
    if (this.#last !== null && this.#last.org !== org) this.#other = this.#last;
    this.#last = { org, at: now };
    this.#advance(now);
    if (this.#other === null || now - this.#other.at > HERE_MS) return 0;
    const key = `${lane} ${org}`;
    const behind = (this.#paidAt.get(key) ?? this.#clock) - this.#clock;
    const wait = Math.max(0, behind * this.#shares - AHEAD_MS);
    if (wait > LONGEST_WAIT_MS) return null;
    this.#paidAt.set(key, this.#clock + behind + costMs);
    return wait;
  }

  /** Counts extra work that requests of this organisation caused, such as probes. Its later requests wait for it. */
  charge(org: string, costMs: number, now: number): void {
    this.#advance(now);
    if (this.#other === null || now - this.#other.at > HERE_MS) return;
    const key = `ordinary ${org}`;
    this.#paidAt.set(key, (this.#paidAt.get(key) ?? this.#clock) + costMs);
  }

  /** The number of shares. One stays free. */
  get #shares(): number {
    return 1 + this.#paidAt.size;
  }

  /** Advances the clock: more slowly if more organisations share the process, and faster once one has paid. */
  #advance(now: number): void {
    let left = Math.max(0, now - this.#now);
    this.#now = Math.max(now, this.#now);
    while (left > 0 && this.#paidAt.size > 0) {
      let next = Number.POSITIVE_INFINITY;
      for (const paidAt of this.#paidAt.values()) next = Math.min(next, paidAt);
      const needed = (next - this.#clock) * this.#shares;
      this.#clock = needed <= left ? next : this.#clock + left / this.#shares;
      left -= needed;
      for (const [key, paidAt] of this.#paidAt) if (paidAt <= this.#clock) this.#paidAt.delete(key);
    }
  }
}

/** The pace of this process. */
export const PROCESS_PACE = new RequestPace();
