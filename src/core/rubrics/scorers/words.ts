/** Words and runs of words, as the overlap metrics count them. */
import type { Work } from "../work.ts";
import { type Compare, withinCharacters } from "./scorer.ts";

/** Runs of letters and digits of any script, in lower case; all else separates. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/** Of two texts that both have words; without, 1 when neither has any, else 0. */
export function ofWords(
  compare: (said: readonly string[], expected: readonly string[], work: Work) => number,
): Compare {
  return withinCharacters((output, reference, work) => {
    const [said, expected] = [wordsOf(output), wordsOf(reference)];
    if (said.length > 0 && expected.length > 0) {
      work.spend(said.length + expected.length, "comparing words");
      return compare(said, expected, work);
    }
    return said.length === expected.length ? 1 : 0;
  });
}

/** How often each run of `n` words occurs. */
export function countRuns(words: readonly string[], n: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let at = 0; at + n <= words.length; at += 1) {
    const run = words.slice(at, at + n).join(" ");
    counts.set(run, (counts.get(run) ?? 0) + 1);
  }
  return counts;
}

/** Occurrences that two counts share, each as often as in the one that has fewer. */
export function sharedRuns(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let shared = 0;
  for (const [run, count] of a) shared += Math.min(count, b.get(run) ?? 0);
  return shared;
}

/** Precision, recall or their harmonic mean, where `shared` of `said` and of `expected` items agree. */
export function overlap(shared: number, said: number, expected: number, measure: Measure = "f1"): number {
  // Nothing where nothing was asked for is right; nothing otherwise is not.
  if (said === 0 && expected === 0) return 1;
  if (said === 0 || expected === 0) return 0;
  if (measure === "precision") return shared / said;
  return measure === "recall" ? shared / expected : (2 * shared) / (said + expected);
}

export const MEASURES = ["f1", "precision", "recall"] as const;
type Measure = (typeof MEASURES)[number];
