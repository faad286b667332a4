/** Holm's step-down correction of the p values of several tests (Holm 1979). It controls the family-wise error. */

/**
 * The adjusted p values, in the order given. One that is at most the level is significant at that level. A null is a
 * test that was not made: it stays null, and is not counted.
 */
export function adjustByHolm(ps: readonly (number | null)[]): (number | null)[] {
  const tests = ps.flatMap((p, at) => (p === null ? [] : [{ p, at }])).sort((a, b) => a.p - b.p);
  const adjusted: (number | null)[] = ps.map(() => null);
  let least = 0;
  for (const [rank, { p, at }] of tests.entries()) {
    least = Math.max(least, Math.min(1, (tests.length - rank) * p));
    adjusted[at] = least;
  }
  return adjusted;
}
