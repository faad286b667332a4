/**
 * Computes fair shares of a resource that comes in whole numbers, and how much each claimant holds. Pure.
 *
 * Invariants. Shares are max-min fair between groups first, then between the claimants of one group: no claimant gets
 * more than it wants, and what it leaves goes to those that want more. Nothing is left over while a claimant wants
 * more, and the sum never exceeds the limit. The remainder of a division goes to the oldest claimants; ids are in order
 * of time. A claimant holds as much as it was granted, or as much as it reports as used if that is more.
 */
export interface Claim {
  readonly id: string;
  readonly group: string;
  readonly wants: number;
}

/** A claimant that holds a part of the resource. */
export interface Holding extends Claim {
  /** How much it uses. */
  readonly running: number;
  /** How much it was granted. */
  readonly permits: number;
}

/** Shares by claimant id. `limit` and every `wants` are whole numbers or infinite. */
export function fairQuotas(claims: readonly Claim[], limit: number): Map<string, number> {
  const oldestFirst = claims.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const byGroup = [...Map.groupBy(oldestFirst, ({ group }) => group).values()];
  const ofGroups = split(byGroup.map(wantedBy), limit);
  const quotas = byGroup.flatMap((members, index) => {
    const ofMembers = split(
      members.map(({ wants }) => wants),
      ofGroups[index] ?? 0,
    );
    return members.map(({ id }, at): [string, number] => [id, ofMembers[at] ?? 0]);
  });
  return new Map(quotas);
}

/** How much no claimant holds. */
export function freeOf(holdings: readonly Holding[], limit: number): number {
  const held = holdings.reduce((sum, { running, permits: quota }) => sum + Math.max(running, quota), 0);
  return Math.max(0, limit - held);
}

/** Ids of claimants that hold more than their share, or hold less although some of the resource is free. */
export function offQuota(holdings: readonly Holding[], limit: number): string[] {
  const quotas = fairQuotas(holdings, limit);
  const spare = freeOf(holdings, limit) > 0;
  return holdings.flatMap(({ id, permits: quota }) => {
    const fairQuota = quotas.get(id) ?? 0;
    return quota > fairQuota || (spare && quota < fairQuota) ? [id] : [];
  });
}

function wantedBy(members: readonly Claim[]): number {
  return members.reduce((sum, { wants }) => sum + wants, 0);
}

/** Gives each claimant up to the highest common level that fits, then one more to the first ones that want more. */
function split(wants: readonly number[], limit: number): number[] {
  const level = levelOf(wants, limit);
  const quotas = wants.map((want) => Math.min(want, level));
  let left = limit - quotas.reduce((sum, fairQuota) => sum + fairQuota, 0);
  return quotas.map((fairQuota, index) => {
    if (left <= 0 || (wants[index] ?? 0) <= fairQuota) return fairQuota;
    left -= 1;
    return fairQuota + 1;
  });
}

/** The largest whole number L for which the sum of min(want, L) is within the limit. */
function levelOf(wants: readonly number[], limit: number): number {
  let left = limit;
  for (const [index, want] of Float64Array.from(wants).sort().entries()) {
    const others = wants.length - index;
    if (want * others > left) return Math.floor(left / others);
    left -= want;
  }
  return Number.POSITIVE_INFINITY;
}
