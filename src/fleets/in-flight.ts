/**
 * Calls that replicas have been given and that have not ended: in memory. After a fall they begin at none.
 *
 * Invariant. A call whose end nobody tells of counts as over when its time is.
 */
import type { Weights } from "./weights.ts";

export interface Call {
  readonly replica_id: string;
  readonly rollout_id: string;
  /** As it was named to it. */
  readonly model: string;
  /** What it is to be sampled by, where its run trains on the fleet. */
  readonly weights: Weights | null;
  readonly until: number;
}

export class InFlight {
  /** By number. */
  readonly #calls = new Map<number, Call>();
  readonly #counts = new Map<string, number>();
  /** When the first of them may be over by its time. */
  #nextAt = Number.POSITIVE_INFINITY;

  add(number: number, call: Call): void {
    this.#calls.set(number, call);
    this.#counts.set(call.replica_id, this.of(call.replica_id) + 1);
    this.#nextAt = Math.min(this.#nextAt, call.until);
  }

  /** Null: it has ended already, or nobody knows of it. */
  end(number: number): Call | null {
    const call = this.#calls.get(number);
    if (call === undefined) return null;
    this.#calls.delete(number);
    this.#counts.set(call.replica_id, this.of(call.replica_id) - 1);
    return call;
  }

  of(replica: string): number {
    return this.#counts.get(replica) ?? 0;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Epoch milliseconds; null while there are none. */
  get nextAt(): number | null {
    return this.#calls.size === 0 ? null : this.#nextAt;
  }

  expire(now: number): void {
    if (now < this.#nextAt) return;
    this.#nextAt = Number.POSITIVE_INFINITY;
    for (const [number, { until }] of this.#calls) {
      if (until <= now) this.end(number);
      else this.#nextAt = Math.min(this.#nextAt, until);
    }
  }

  /** A replica that is gone, or of which nothing is known any more. */
  forget(replica: string): void {
    for (const [number, { replica_id }] of this.#calls) if (replica_id === replica) this.#calls.delete(number);
    this.#counts.delete(replica);
  }
}
