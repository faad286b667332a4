/** How long a call waits if no replica takes it now. Pure; times are epoch milliseconds. */
import type { FleetUpdate } from "../contract/fleet.ts";
import { type FleetState, interrupts, type Replica } from "./state.ts";

const LEAST_MS = 1000;
const MOST_MS = 15_000;

/**
 * When a call that no replica takes is to be tried again: when the first replica should be back, by the duration of its
 * last update; otherwise after half of the time that it has been away. So few calls ask twice during one update.
 */
export function askAgainAt({ replicas }: FleetState, now: number): number {
  const waits = Object.values(replicas).map((replica) => waitFor(replica, now));
  return now + Math.max(LEAST_MS, Math.min(MOST_MS, ...waits));
}

function waitFor({ phase, took_ms, since }: Replica, now: number): number {
  const began = phase?.since;
  const from = began !== undefined && took_ms !== undefined ? began + took_ms : since;
  return from > now ? from - now : (now - from) / 2;
}

/** The longest update of a replica by the fleet's settings, over all phases; 0 if the replica takes calls meanwhile. */
export function longestUpdateMs(update: FleetUpdate): number {
  if (!interrupts(update)) return 0;
  const { pause, pause_s, update_s, resume_s } = update;
  const ending = pause === "wait" ? 2 * pause_s : pause_s;
  return 1000 * (ending + update_s + 3 * resume_s);
}
