/** What the ends of calls say of their replica: in memory, since what a fall forgets the next calls say again. Pure but for that. */
import type { EndedCall } from "./rpc.ts";

/** Different rollouts in a row that a replica failed: then it gets no calls until a probe is answered. */
const ROLLOUTS_TO_OPEN = 5;

export class Circuits {
  readonly #failing = new Map<string, Set<string>>();

  /** True where this end opens the circuit. `rollout`: whose call it was. */
  heard(replica: string, outcome: EndedCall["outcome"], rollout: string): boolean {
    switch (outcome) {
      case "answered":
        this.#failing.delete(replica);
        return false;
      // Of its own accord; and of the weights, not of the server.
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
