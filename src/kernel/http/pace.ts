/** Requests at the pace of this process (src/kernel/kit/request-pace.ts). */
import { PROCESS_TURNS } from "../kit/fair-turns.ts";
import { PROCESS_PACE } from "../kit/request-pace.ts";
import { Refusal } from "./errors.ts";

/** CPU of a run with one rollout from its request to its end, in milliseconds. */
export const RUN_COST_MS = 50;

/**
 * Waits while this sharer (an organisation, or an address without a key) is beyond its share of the process and others send
 * requests too. `costMs`: CPU of the request. Throws Refusal (429) if it would wait for more than ten seconds.
 */
export async function keepPace(sharer: string, costMs: number): Promise<void> {
  PROCESS_TURNS.notePresence(sharer);
  const waitMs = PROCESS_PACE.enter(sharer, costMs, Date.now());
  if (waitMs === null) {
    const message = "too many requests of your organisation are waiting: send fewer at once";
    throw new Refusal({ code: "rate_limited", message, param: null });
  }
  if (waitMs > 0) await scheduler.wait(waitMs);
}
