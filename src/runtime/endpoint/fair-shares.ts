/**
 * Fair shares of something that comes in whole numbers: rollouts at once, calls a minute.
 *
 * Invariants. Shares are fair between organisations first and between the runs of one then (max-min: nobody gets more
 * than he wants, and what one leaves goes to those who want more). Nothing is left over while somebody wants more, and
 * the sum never exceeds the limit. What does not divide goes to the oldest runs; ids are in order of their time.
 */
export interface Claim {
  readonly run_id: string;
  readonly org_id: string;
  readonly wants: number;
}

/** By run; `limit` and every `wants` are whole numbers, or infinite. */
export function fairShares(claims: readonly Claim[], limit: number): Map<string, number> {
  const oldestFirst = claims.toSorted((a, b) => (a.run_id < b.run_id ? -1 : 1));
  const byOrg = [...Map.groupBy(oldestFirst, ({ org_id }) => org_id).values()];
  const ofOrgs = split(byOrg.map(wantedBy), limit);
  const shares = byOrg.flatMap((runs, index) => {
    const ofRuns = split(
      runs.map(({ wants }) => wants),
      ofOrgs[index] ?? 0,
    );
    return runs.map(({ run_id }, at): [string, number] => [run_id, ofRuns[at] ?? 0]);
  });
  return new Map(shares);
}

function wantedBy(runs: readonly Claim[]): number {
  return runs.reduce((sum, { wants }) => sum + wants, 0);
}

/** Everyone up to the highest level that fits, then one more each for the first of those who want it. */
function split(wants: readonly number[], limit: number): number[] {
  const level = levelOf(wants, limit);
  const shares = wants.map((want) => Math.min(want, level));
  let left = limit - shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share, index) => {
    if (left <= 0 || (wants[index] ?? 0) <= share) return share;
    left -= 1;
    return share + 1;
  });
}

/** The largest whole number L for which the sum of min(want, L) is within the limit. */
function levelOf(wants: readonly number[], limit: number): number {
  let left = limit;
  for (const [index, want] of wants.toSorted((a, b) => a - b).entries()) {
    const others = wants.length - index;
    if (want * others > left) return Math.floor(left / others);
    left -= want;
  }
  return Number.POSITIVE_INFINITY;
}
