/** How long a sender waits for more items before it sends those that it has in one call. */

/** Items that arrive within this time go in one call. */
export const DEBOUNCE_MS = 10;
/** The longest time between two calls of a sender whose items are dense. */
export const GATHER_MS = 250;

/**
 * Milliseconds until the next call, after the first item has arrived. If the last call was long ago, the item waits no
 * longer than the debounce. If items are dense, calls are `apartMs` apart. `sinceLastMs`: since the last call.
 */
export function gatherWaitMs(sinceLastMs: number, apartMs: number = GATHER_MS): number {
  return Math.max(DEBOUNCE_MS, Math.min(GATHER_MS, apartMs) - Math.max(0, sinceLastMs));
}
