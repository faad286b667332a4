/** Counts failed calls per replica. The counts are in memory only: after a restart, the next calls count again. */
import type { EndedCall } from "./rpc.ts";

/** If calls of this many different rollouts fail in a row on a replica, it gets no calls until a probe succeeds. */
const ROLLOUTS_TO_OPEN = 5;

interface Failing {
  /** The number of the first call that failed. */
  readonly from: number;
  readonly rollouts: Set<string>;
}

export class Circuits {
  readonly #failing = new Map<string, Failing>();

  /**
   * Returns true if this call opens the circuit. `rollout`: the rollout that made the call. Reports come late: an answer
   * to a call that began before the first failure does not show that the replica answers now.
   */
  noteOutcome({ replica_id: replica, outcome, number }: EndedCall, rollout: string): boolean {
    switch (outcome) {
      case "answered":
        if (number > (this.#failing.get(replica)?.from ?? 0)) this.#failing.delete(replica);
        return false;
      // The caller aborted it; or the failure is about the weights, not the server.
      case "aborted":
      case "unknown_model":
        return false;
      case "failed":
      case "unreachable": {
        const failing = this.#failing.get(replica) ?? { from: number, rollouts: new Set<string>() };
        failing.rollouts.add(rollout);
        this.#failing.set(replica, failing);
        if (failing.rollouts.size < ROLLOUTS_TO_OPEN) return false;
        this.#failing.delete(replica);
        return true;
      }
    }
  }
}
