/**
 * Calls that were given to replicas and have not ended. In memory only: after a restart there are none.
 *
 * Invariant. A call whose end is not reported counts as ended at its `until`.
 */
import type { Weights } from "./weights.ts";

export interface Call {
  readonly replica_id: string;
  readonly rollout_id: string;
  /** The model name that the call uses at the replica. */
  readonly model: string;
  /** The weights that must sample it, if its run trains on the fleet. */
  readonly weights: Weights | null;
  readonly until: number;
}

export class InFlight {
  /** By call number. */
  readonly #calls = new Map<number, Call>();
  readonly #counts = new Map<string, number>();
  /** The earliest `until` of the calls. */
  #nextAt = Number.POSITIVE_INFINITY;

  add(number: number, call: Call): void {
    this.#calls.set(number, call);
    this.#counts.set(call.replica_id, this.of(call.replica_id) + 1);
    this.#nextAt = Math.min(this.#nextAt, call.until);
  }

  /** Null: the call has already ended, or is unknown. */
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

  /** For a replica that was removed. */
  forget(replica: string): void {
    for (const [number, { replica_id }] of this.#calls) if (replica_id === replica) this.#calls.delete(number);
    this.#counts.delete(replica);
  }
}
