/**
 * Which of a run's objects plays which rollout: up to `LIMITS.rolloutsPerHost` share one, those that are dispatched one
 * after the other first, and a seat that falls free takes the next rollout of the run.
 *
 * Invariants. Objects are numbered from 1, and a number stands in the row of each rollout. Who sits where at this moment is
 * remembered here alone: a fresh instance of the run begins with new objects, and those before it end what they have. No
 * object is given more than `LIMITS.rolloutsPerHostInAll`, since it keeps what they left until the run's end.
 */
import { LIMITS } from "../../contract/limits.ts";

interface Seats {
  free: number;
  /** Rollouts it may still be given. */
  left: number;
}

export class Hosts {
  readonly #seats = new Map<number, Seats>();
  /** Those with so many free seats, by that number. */
  readonly #free = Array.from({ length: LIMITS.rolloutsPerHost + 1 }, () => new Set<number>());
  #last = 0;

  /** The object of the next rollout. `begin` gives the number of one that nobody has used. */
  take(begin: () => number): number {
    const host = this.#next() ?? this.#add(begin());
    this.#last = host;
    this.#change(host, -1);
    return host;
  }

  /** A rollout of the object has answered. */
  leave(host: number | null): void {
    this.#last = 0;
    if (host !== null) this.#change(host, 1);
  }

  /** A rollout of the object was given up: it may never answer, and is given no other. */
  drop(host: number | null): void {
    const seats = host === null ? undefined : this.#seats.get(host);
    if (host === null || seats === undefined) return;
    this.#free[seats.free]?.delete(host);
    this.#seats.delete(host);
    this.#last = 0;
  }

  /** To be called when what was written is not: nobody knows who sits where. */
  forget(): void {
    this.#seats.clear();
    for (const hosts of this.#free) hosts.clear();
  }

  /** That of the rollout dispatched right before while it has a seat, so that a group sits together; else the emptiest. */
  #next(): number | undefined {
    if ((this.#seats.get(this.#last)?.free ?? 0) > 0) return this.#last;
    const most = this.#free.findLast((hosts, free) => free > 0 && hosts.size > 0);
    return most?.values().next().value;
  }

  #add(host: number): number {
    const { rolloutsPerHost: free, rolloutsPerHostInAll: left } = LIMITS;
    this.#seats.set(host, { free, left });
    this.#free[free]?.add(host);
    return host;
  }

  #change(host: number, by: 1 | -1): void {
    const seats = this.#seats.get(host);
    if (seats === undefined) return;
    this.#free[seats.free]?.delete(host);
    seats.free += by;
    if (by === -1) seats.left -= 1;
    if (seats.left > 0) this.#free[seats.free]?.add(host);
    else this.#seats.delete(host);
  }
}
