/**
 * A platform at rest answers reads and does nothing else: it is what a command boots that only reads.
 *
 * Invariants. No object there dispatches, plays, scores, asks or tells of itself. What it has to tell stays to be told: the runtime
 * drops an alarm when its handler ends, and there none ever does, so that the next boot finds each of them due.
 */

export function isAtRest({ AT_REST }: Env): boolean {
  return AT_REST === "true";
}

/** In place of what an alarm does. */
export function untilTheNextBoot(): Promise<never> {
  return new Promise(() => {
    // Ends with the process.
  });
}
