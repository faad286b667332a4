/** What somebody who mistyped probably meant. */

/** A guess further away than this share of the word is none. */
const FURTHEST = 0.4;

/** The candidate with the fewest letters to change; null when none is near. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(word, candidate) }))
    .filter(({ candidate, distance }) => {
      return distance <= Math.ceil(Math.max(word.length, candidate.length) * FURTHEST);
    })
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate ?? null;
}

/** Letters to insert, drop or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
