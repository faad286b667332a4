/**
 * Overlap of word runs, as machine translation measures it, of one sentence.
 *
 * BLEU (Papineni et al. 2002): the geometric mean of the clipped precisions of runs of 1 to `max_n` words, times the brevity
 * penalty `exp(1 − r/c)` for an output shorter than the reference. A single sentence often shares no long run, so 1 is added
 * to both sides of the precisions above 1 (Lin and Och 2004) unless `smoothing` is "none".
 * GLEU (Wu et al. 2016): the smaller of precision and recall over all runs of 1 to `max_n` words together.
 */
import * as z from "zod";
import { scorer } from "./scorer.ts";
import { countRuns, ofWords, sharedRuns } from "./words.ts";

const MaxN = z.int().min(1).max(9).default(4);

export const bleu = scorer(
  z.strictObject({ max_n: MaxN, smoothing: z.enum(["add_one", "none"]).default("add_one") }),
  ({ max_n, smoothing }) =>
    ofWords((said, expected) => {
      let logarithms = 0;
      for (let n = 1; n <= max_n; n += 1) {
        const { shared, total } = sharedOf(said, expected, n);
        const added = n > 1 && smoothing === "add_one" ? 1 : 0;
        if (shared + added === 0) return 0;
        logarithms += Math.log((shared + added) / (total + added));
      }
      const brevity = Math.min(0, 1 - expected.length / said.length);
      return Math.exp(brevity + logarithms / max_n);
    }),
);

export const gleu = scorer(z.strictObject({ max_n: MaxN }), ({ max_n }) =>
  ofWords((said, expected) => {
    let [shared, most] = [0, 0];
    for (let n = 1; n <= max_n; n += 1) {
      const runs = sharedOf(said, expected, n);
      shared += runs.shared;
      most += Math.max(runs.total, Math.max(0, expected.length - n + 1));
    }
    return shared / most;
  }),
);

function sharedOf(said: readonly string[], expected: readonly string[], n: number): { shared: number; total: number } {
  const shared = sharedRuns(countRuns(said, n), countRuns(expected, n));
  return { shared, total: Math.max(0, said.length - n + 1) };
}
