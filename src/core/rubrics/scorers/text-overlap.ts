/** The scorers that count common words and sequences of words: `f1`, `rouge`, `bleu`, `gleu` and `meteor`. */
import { stemmer } from "stemmer";
import * as z from "zod";
import { WORK, type Work } from "../work.ts";
import { commonSubsequence } from "./common-subsequence.ts";
import { type Compare, MalformedReferenceError, scorer, withinCharacters } from "./scorer.ts";

/** Sequences of letters and digits of any script, in lower case; all other characters separate words. */
function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/** Compares two texts that both have words. Otherwise the score is 1 if neither has any, else 0. */
function ofWords(compare: (said: readonly string[], expected: readonly string[], work: Work) => number): Compare {
  return withinCharacters((output, reference, work) => {
    const [said, expected] = [wordsOf(output), wordsOf(reference)];
    if (said.length > 0 && expected.length > 0) {
      work.spend(said.length + expected.length, "comparing words");
      return compare(said, expected, work);
    }
    return said.length === expected.length ? 1 : 0;
  });
}

/** How often each sequence of `n` words occurs. */
function countRuns(words: readonly string[], n: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let at = 0; at + n <= words.length; at += 1) {
    const run = words.slice(at, at + n).join(" ");
    counts.set(run, (counts.get(run) ?? 0) + 1);
  }
  return counts;
}

/** Number of common occurrences: for each sequence the smaller of the two counts. */
function sharedRuns(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let shared = 0;
  for (const [run, count] of a) shared += Math.min(count, b.get(run) ?? 0);
  return shared;
}

/** Precision, recall or their harmonic mean, if `shared` of `said` and of `expected` items agree. */
function overlap(shared: number, said: number, expected: number, measure: Measure = "f1"): number {
  // If nothing is expected, an empty output is right and any other is wrong.
  if (said === 0 && expected === 0) return 1;
  if (said === 0 || expected === 0) return 0;
  if (measure === "precision") return shared / said;
  return measure === "recall" ? shared / expected : (2 * shared) / (said + expected);
}

const MEASURES = ["f1", "precision", "recall"] as const;
type Measure = (typeof MEASURES)[number];

/**
 * Token F1: the harmonic mean of precision and recall over words, counting repetitions. As SQuAD's (Rajpurkar et al.
 * 2016), which also drops articles: `ignore_articles`.
 */
const ARTICLES = new Set(["a", "an", "the"]);

export const f1 = scorer(z.strictObject({ ignore_articles: z.boolean().default(false) }), ({ ignore_articles }) =>
  withinCharacters((output, reference) => {
    const [said, expected] = [output, reference].map((text) =>
      wordsOf(text).filter((word) => !ignore_articles || !ARTICLES.has(word)),
    ) as [string[], string[]];
    const shared = sharedRuns(countRuns(said, 1), countRuns(expected, 1));
    return overlap(shared, said.length, expected.length);
  }),
);

// ROUGE (Lin 2004): common sequences of n words (`n: 1` to `5`), or the longest common subsequence of words (`n: "l"`,
// the default). F1 unless `measure` is precision or recall. No stemming.

/** The subsequence takes the product of the lengths: an output with more words scores 0. */
const SUBSEQUENCE_WORDS = 10_000;
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
        const shared = commonSubsequence(said, expected, { [WORK]: work }, "words");
        return overlap(shared, said.length, expected.length, measure);
      }
      const [runs, wanted] = [countRuns(said, n), countRuns(expected, n)];
      const total = (words: readonly string[]) => Math.max(0, words.length - n + 1);
      return overlap(sharedRuns(runs, wanted), total(said), total(expected), measure);
    }),
);

/**
 * Overlap of word sequences of one sentence, as in machine translation.
 *
 * BLEU (Papineni et al. 2002): the geometric mean of the clipped precisions of sequences of 1 to `max_n` words, times
 * the brevity penalty `exp(1 − r/c)` for an output shorter than the reference. A single sentence often has no long
 * sequence in common, so 1 is added to both sides of the precisions above 1 (Lin and Och 2004) unless `smoothing` is
 * "none". GLEU (Wu et al. 2016): the smaller of precision and recall over all sequences of 1 to `max_n` words together.
 */
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

// METEOR (Banerjee and Lavie 2005), with the parameters of Lavie and Agarwal 2007 and the alignment of nltk's
// `meteor_score`: equal words are matched first, the rest by Porter's stems. With m matches, precision P = m / words of
// the output and recall R = m / expected words make F = P R / (alpha P + (1 − alpha) R). Matches that are adjacent in
// both texts form a chunk, and the score is F (1 − gamma (chunks / m)^beta). nltk's third stage, synonyms of WordNet,
// is left out.

/** Places in the two texts: the word of the output, and the expected word it is matched with. */
type Match = readonly [said: number, expected: number];
type Word = readonly [place: number, word: string];

export const meteor = scorer(
  z.strictObject({
    alpha: z.number().min(0).max(1).default(0.9),
    beta: z.number().min(0).default(3),
    gamma: z.number().min(0).max(1).default(0.5),
  }),
  ({ alpha, beta, gamma }) =>
    ofWords((said, expected) => {
      const matches = align(said, expected);
      if (matches.length === 0) return 0;
      const precision = matches.length / said.length;
      const recall = matches.length / expected.length;
      const mean = (precision * recall) / (alpha * precision + (1 - alpha) * recall);
      return mean * (1 - gamma * (chunksIn(matches) / matches.length) ** beta);
    }),
);

/** The matches in the order of the output. */
function align(said: readonly string[], expected: readonly string[]): Match[] {
  const same = matchFromEnd([...said.entries()], [...expected.entries()]);
  const stems = (words: readonly string[], side: 0 | 1) => {
    const matched = new Set(same.map((match) => match[side]));
    const left = [...words.entries()].filter(([place]) => !matched.has(place));
    return left.map(([place, word]): Word => [place, stemmer(word)]);
  };
  const alike = matchFromEnd(stems(said, 0), stems(expected, 1));
  return [...same, ...alike].sort(([a], [b]) => a - b);
}

/** Matches each word, from the last one on, with the last equal word that is left: linear and deterministic. */
function matchFromEnd(said: readonly Word[], expected: readonly Word[]): Match[] {
  const places = new Map<string, number[]>();
  for (const [place, word] of expected) {
    const known = places.get(word);
    if (known === undefined) places.set(word, [place]);
    else known.push(place);
  }
  return said.toReversed().flatMap(([place, word]): Match[] => {
    const match = places.get(word)?.pop();
    return match === undefined ? [] : [[place, match]];
  });
}

/** The number of sequences of matches that are adjacent in both texts. */
function chunksIn(matches: readonly Match[]): number {
  let chunks = 0;
  let [said, expected] = [Number.NaN, Number.NaN];
  for (const match of matches) {
    if (match[0] !== said + 1 || match[1] !== expected + 1) chunks += 1;
    [said, expected] = match;
  }
  return chunks;
}
