/** Paces the requests of this process (src/kernel/kit/request-pace.ts). */
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { type Lane, PROCESS_PACE } from "../kit/request-pace.ts";
import { Refusal } from "./errors.ts";

/** CPU of a run with one rollout from its request to its end, in milliseconds. */
export const RUN_COST_MS = 50;
/** All requests without a key: paced as one organisation, because one sender may use many addresses. */
export const STRANGERS = "strangers";

/**
 * Waits while this organisation is beyond its share of the process and others send requests too. `costMs`: CPU of the
 * request. Throws Refusal (429) if it would wait for more than ten seconds.
 */
export async function keepPace(org: string, costMs: number, lane?: Lane): Promise<void> {
  PROCESS_SCHEDULER.notePresence(org);
  const waitMs = PROCESS_PACE.enter(org, costMs, Date.now(), lane);
  if (waitMs === null) {
    const whose = org === STRANGERS ? "without a key" : "of your organisation";
    const message = `too many requests ${whose} are waiting: send fewer at once`;
    throw new Refusal({ code: "rate_limited", message, param: null });
  }
  if (waitMs > 0) await scheduler.wait(waitMs);
}
