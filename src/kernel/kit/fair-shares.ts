/**
 * Fair shares of something that comes in whole numbers, and who holds how much of it: pure.
 *
 * Invariants. Shares are fair between groups first and between the claimants of one then (max-min: nobody gets more
 * than he wants, and what one leaves goes to those who want more). Nothing is left over while somebody wants more, and
 * the sum never exceeds the limit. What does not divide goes to the oldest; ids are in order of their time. A claimant
 * holds what it was granted, or what it says it uses where that is more.
 */
export interface Claim {
  readonly id: string;
  readonly group: string;
  readonly wants: number;
}

/** Somebody who holds some of it. */
export interface Holding extends Claim {
  /** What it uses. */
  readonly running: number;
  /** What it was granted. */
  readonly permits: number;
}

/** By id; `limit` and every `wants` are whole numbers, or infinite. */
export function fairShares(claims: readonly Claim[], limit: number): Map<string, number> {
  const oldestFirst = claims.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const byGroup = [...Map.groupBy(oldestFirst, ({ group }) => group).values()];
  const ofGroups = split(byGroup.map(wantedBy), limit);
  const shares = byGroup.flatMap((members, index) => {
    const ofMembers = split(
      members.map(({ wants }) => wants),
      ofGroups[index] ?? 0,
    );
    return members.map(({ id }, at): [string, number] => [id, ofMembers[at] ?? 0]);
  });
  return new Map(shares);
}

/** What nobody holds. */
export function freeOf(holdings: readonly Holding[], limit: number): number {
  const held = holdings.reduce((sum, { running, permits }) => sum + Math.max(running, permits), 0);
  return Math.max(0, limit - held);
}

/** Those that hold more than their share, or less while some of it is free. */
export function outOfShare(holdings: readonly Holding[], limit: number): string[] {
  const shares = fairShares(holdings, limit);
  const spare = freeOf(holdings, limit) > 0;
  return holdings.flatMap(({ id, permits }) => {
    const share = shares.get(id) ?? 0;
    return permits > share || (spare && permits < share) ? [id] : [];
  });
}

function wantedBy(members: readonly Claim[]): number {
  return members.reduce((sum, { wants }) => sum + wants, 0);
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
