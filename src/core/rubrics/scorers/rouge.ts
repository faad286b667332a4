/**
 * ROUGE (Lin 2004): runs of n words that output and reference share (`n: 1` to `5`), or their longest common subsequence
 * of words (`n: "l"`, the default). F1 unless `measure` says precision or recall. No stemming.
 */
import * as z from "zod";
import { grouped } from "../work.ts";
import { MalformedReferenceError, scorer, withinCharacters } from "./scorer.ts";
import { countRuns, MEASURES, overlap, sharedRuns, wordsOf } from "./words.ts";

/** The subsequence takes the product of the lengths: an output of more words scores 0. */
const SUBSEQUENCE_WORDS = 10_000;
/** Pairs of words for each step. */
const PAIRS = 25;

export const rouge = scorer(
  z.strictObject({
    n: z.union([z.literal("l"), z.int().min(1).max(5)]).default("l"),
    measure: z.enum(MEASURES).default("f1"),
  }),
  ({ n, measure }) =>
    withinCharacters((output, reference, work) => {
      const [said, expected] = [wordsOf(output), wordsOf(reference)];
      if (n === "l") {
        if (expected.length > SUBSEQUENCE_WORDS) {
          throw new MalformedReferenceError(`it has more than ${SUBSEQUENCE_WORDS} words`);
        }
        if (said.length > SUBSEQUENCE_WORDS) return 0;
        const lengths = `${grouped(said.length)} with ${grouped(expected.length)} words`;
        work.spend((said.length * expected.length) / PAIRS, `comparing ${lengths}`);
        return overlap(commonSubsequence(said, expected), said.length, expected.length, measure);
      }
      const [runs, wanted] = [countRuns(said, n), countRuns(expected, n)];
      const total = (words: readonly string[]) => Math.max(0, words.length - n + 1);
      return overlap(sharedRuns(runs, wanted), total(said), total(expected), measure);
    }),
);

/** Length of the longest common subsequence, row by row, over words told apart by number. */
function commonSubsequence(a: readonly string[], b: readonly string[]): number {
  const numbers = new Map([...a, ...b].map((word, at) => [word, at]));
  const numbered = (words: readonly string[]) => Uint32Array.from(words, (word) => numbers.get(word) ?? 0);
  const [rows, columns] = [numbered(a), numbered(b)];
  const lengths = new Uint32Array(columns.length);
  for (const row of rows) {
    let corner = 0;
    let left = 0;
    for (let at = 0; at < columns.length; at += 1) {
      const above = lengths[at] ?? 0;
      left = row === columns[at] ? corner + 1 : Math.max(above, left);
      lengths[at] = left;
      corner = above;
    }
  }
  return lengths.at(-1) ?? 0;
}
