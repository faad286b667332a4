/** Numbers as people read them. */

export function estimateText({ mean, se }: { mean: number | null; se: number | null }): string {
  if (mean === null) return "–";
  return se === null ? mean.toFixed(3) : `${mean.toFixed(3)} ± ${se.toFixed(3)}`;
}

export function countText(count: number): string {
  return count.toLocaleString("en-US");
}

export function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** "scored 38, failed 2 (provider)": what is zero is left out. */
export function namedCounts(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  return parts.map(([name, count]) => `${name} ${countText(count)}`).join(", ") || "–";
}
