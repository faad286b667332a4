/** Decides whether two lists hold the same elements, by an equality of the caller's. */

export function samePlaces<T>(a: readonly T[], b: readonly T[], same: (a: T, b: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  return a.every((left, at) => {
    const right = b[at];
    return right !== undefined && same(left, right);
  });
}

/** Each element of `a` has its own partner in `b`: the first that fits. */
export function sameInAnyOrder<T>(a: readonly T[], b: readonly T[], same: (a: T, b: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  const left = [...b];
  return a.every((item) => {
    const at = left.findIndex((other) => same(item, other));
    if (at !== -1) left.splice(at, 1);
    return at !== -1;
  });
}

export function distinct<T>(items: readonly T[], same: (a: T, b: T) => boolean): T[] {
  const kept: T[] = [];
  for (const item of items) {
    if (!kept.some((other) => same(item, other))) kept.push(item);
  }
  return kept;
}
