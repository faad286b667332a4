/**
 * Assigns rollouts to the run's shards (objects). Up to `LIMITS.rolloutsPerHost` share one, preferably rollouts that
 * are dispatched one after the other. A shard slot that becomes free gets the run's next rollout.
 *
 * Invariants. Shards are numbered from 1, and each rollout's row has its number. The current occupation is only in
 * memory: a fresh instance of the run begins with new shards, and the earlier ones finish the rollouts they have. No
 * shard gets more than `LIMITS.rolloutsPerHostInAll`, since it stores what they left until the run's end.
 */
import { LIMITS } from "../../contract/limits.ts";

interface Seats {
  free: number;
  /** How many more rollouts it may get in all. */
  left: number;
}

export class Hosts {
  readonly #seats = new Map<number, Seats>();
  /** The shards with that many free slots, by that number. */
  readonly #free = Array.from({ length: LIMITS.rolloutsPerHost + 1 }, () => new Set<number>());
  #last = 0;

  /** The shard of the next rollout. `begin` returns the number of a new one. */
  take(begin: () => number): number {
    const host = this.#next() ?? this.#add(begin());
    this.#last = host;
    this.#change(host, -1);
    return host;
  }

  /** A rollout of the shard has reported. */
  leave(host: number | null): void {
    this.#last = 0;
    if (host !== null) this.#change(host, 1);
  }

  /** A rollout of the shard was given up: the shard may never answer, and gets no other rollout. */
  drop(host: number | null): void {
    const seats = host === null ? undefined : this.#seats.get(host);
    if (host === null || seats === undefined) return;
    this.#free[seats.free]?.delete(host);
    this.#seats.delete(host);
    this.#last = 0;
  }

  /** Must be called when writes are rolled back: the occupation is then unknown. */
  forget(): void {
    this.#seats.clear();
    for (const hosts of this.#free) hosts.clear();
  }

  /** The shard of the previous rollout if it has a free slot, so that a group stays together; else the emptiest. */
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
