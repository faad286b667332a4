/**
 * Read-only mode of the platform: it answers reads and does nothing else. Commands that only read boot it so.
 *
 * Invariants. No object dispatches, plays, scores, calls another object or sends events by itself. Pending
 * notifications stay pending: the runtime deletes an alarm when its handler ends, and in this mode no handler ends. So
 * the next boot finds every alarm due.
 */

export function isAtRest({ AT_REST }: Env): boolean {
  return AT_REST === "true";
}

/** Used instead of an alarm's work. */
export function untilTheNextBoot(): Promise<never> {
  return new Promise(() => {
    // Ends with the process.
  });
}
