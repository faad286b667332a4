/**
 * When two scores count as equal. Sums of the same parts in another order differ in their last digits (0.1 + 0.2 is not
 * 0.3), and such a difference says nothing about the rollouts.
 */

/** The maximal difference of equal scores: relative to the larger one, absolute if both are below 1. */
export const SCORE_TOLERANCE = 1e-12;

export function isSameScore(first: number, second: number): boolean {
  return Math.abs(first - second) <= SCORE_TOLERANCE * Math.max(1, Math.abs(first), Math.abs(second));
}
