/** Requests at the pace of this process (src/runtime/kit/request-pace.ts). */
import { PROCESS_PACE } from "../runtime/kit/request-pace.ts";
import { Refusal } from "./errors.ts";

/** CPU of beginning a run of one rollout and of playing it to its end, in milliseconds. */
export const RUN_COST_MS = 50;

/**
 * Waits while this sharer asks for more than its part of the process, and others are here. `costMs`: CPU of the request.
 * Throws Refusal where it would wait too long.
 */
export async function keepPace(sharer: string, costMs: number): Promise<void> {
  const waitMs = PROCESS_PACE.enter(sharer, costMs, Date.now());
  if (waitMs === null) {
    const message = "more requests of yours wait here than can be answered soon: send fewer at once";
    throw new Refusal({ code: "rate_limited", message, param: null });
  }
  if (waitMs > 0) await scheduler.wait(waitMs);
}
