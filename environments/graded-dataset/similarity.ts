/** The similarity of two texts, by the metrics of OpenAI's `text_similarity`, from 0 to 1 (equal). */
import { commonSubsequence, scorers } from "rollcall";
import type { METRICS } from "./graders.ts";

/** The metrics that are computed from the texts alone. */
type Metric = Exclude<(typeof METRICS)[number], "cosine">;
type Args = Parameters<typeof commonSubsequence>[2];

/** Comparing takes the product of the lengths: a longer output scores 0, a longer reference cannot be used. */
const MOST_CHARACTERS = 20_000;

const ROUGE_N = /^rouge_([1-5])$/;

/** `args`: those of the scoring function, whose scoring group is charged for the work. */
export function similarity(metric: Metric, input: string, reference: string, args: Args = {}): number {
  const n = ROUGE_N.exec(metric)?.[1];
  if (n !== undefined) return scorers.rouge.score(input, reference, { n: Number(n) }, args);
  if (metric === "rouge_l") return scorers.rouge.score(input, reference, { n: "l" }, args);
  if (metric === "bleu") return scorers.bleu.score(input, reference, {}, args);
  if (metric === "gleu") return scorers.gleu.score(input, reference, {}, args);
  if (metric === "meteor") return scorers.meteor.score(input, reference, {}, args);
  return fuzzyMatch(input, reference, args);
}

/** For texts that cannot be embedded: 1 if both are blank, 0 if one is; null if neither is. */
export function blankSimilarity(input: string, reference: string): number | null {
  const blank = [input, reference].filter((text) => text.trim() === "").length;
  return blank === 0 ? null : blank - 1;
}

/**
 * rapidfuzz's `ratio`: twice the longest common subsequence over both lengths.
 * Source: https://rapidfuzz.github.io/RapidFuzz/Usage/fuzz.html#ratio.
 */
export function fuzzyMatch(input: string, reference: string, args: Args = {}): number {
  const [a, b] = [[...input], [...reference]];
  if (a.length + b.length === 0) return 1;
  if (b.length > MOST_CHARACTERS) {
    throw new RangeError(`a reference of ${b.length} characters is too long to be compared with`);
  }
  if (a.length > MOST_CHARACTERS) return 0;
  return (2 * commonSubsequence(a, b, args, "characters")) / (a.length + b.length);
}
