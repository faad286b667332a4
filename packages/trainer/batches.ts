/**
 * Where a trainer's batches come from: asked for by lease, which works from behind any firewall.
 *
 * Invariants. One batch at a time, in step order. Nothing to train is waited for, for as long as it takes.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Leased } from "../../src/contract/trainer-wire.ts";
import type { TrainerClient } from "../../src/sdk/trainer-client.ts";

/** How a registered trainer is known. */
export interface Registration {
  readonly trainer_id: string;
  readonly epoch: number;
}

export interface Batches {
  /** Rejects with what the platform refused with, and with the signal's reason when that aborts. */
  next(who: Registration, step: number, stop: AbortSignal): Promise<Leased>;
}

const LONGEST_POLL_S = 30;

export function pulledBatches(client: Pick<TrainerClient, "lease">): Batches {
  return {
    next: async (who, want_step, stop) => {
      for (;;) {
        const request = { ...who, want_step, max_wait_s: LONGEST_POLL_S };
        const answer = await client.lease(request, { signal: stop });
        if (answer.leased !== null) return answer.leased;
        await wait(answer.retryAfterMs, undefined, { signal: stop });
      }
    },
  };
}
