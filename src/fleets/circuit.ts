/** Counts failed calls per replica. The counts are in memory only: after a restart, the next calls count again. */
import type { EndedCall } from "./rpc.ts";

/** If calls of this many different rollouts fail in a row on a replica, it gets no calls until a probe succeeds. */
const ROLLOUTS_TO_OPEN = 5;

export class Circuits {
  readonly #failing = new Map<string, Set<string>>();

  /** Returns true if this call opens the circuit. `rollout`: the rollout that made the call. */
  noteOutcome(replica: string, outcome: EndedCall["outcome"], rollout: string): boolean {
    switch (outcome) {
      case "answered":
        this.#failing.delete(replica);
        return false;
      // The caller aborted it; or the failure is about the weights, not the server.
      case "aborted":
      case "unknown_model":
        return false;
      case "failed":
      case "unreachable": {
        const failing = this.#failing.get(replica) ?? new Set();
        failing.add(rollout);
        this.#failing.set(replica, failing);
        if (failing.size < ROLLOUTS_TO_OPEN) return false;
        this.#failing.delete(replica);
        return true;
      }
    }
  }
}
