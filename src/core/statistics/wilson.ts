/**
 * Wilson's interval of a rate: of n independent tries of which a share passed (Wilson 1927). Unlike mean ± t·se it stays
 * within [0, 1] and does not shrink to nothing where all tries came out alike.
 */

const Z = 1.959963984540054;

/** 95 %; `n` ≥ 1, `share` in [0, 1]. */
export function wilson95(share: number, n: number): [number, number] {
  const z2n = (Z * Z) / n;
  const centre = (share + z2n / 2) / (1 + z2n);
  const half = (Z / (1 + z2n)) * Math.sqrt((share * (1 - share)) / n + z2n / (4 * n));
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}
