/**
 * METEOR (Banerjee and Lavie 2005), with the parameters of Lavie and Agarwal 2007 and the alignment of nltk's
 * `meteor_score`: words are matched by themselves, then what is left by Porter's stems. With m matches, precision P = m /
 * words said and recall R = m / words expected make F = P R / (alpha P + (1 − alpha) R); matches that do not stand side by
 * side in both texts fall into chunks, and the score is F (1 − gamma (chunks / m)^beta). Synonyms of WordNet, the third
 * stage there, are not matched.
 */
import { stemmer } from "stemmer";
import * as z from "zod";
import { scorer } from "./scorer.ts";
import { ofWords } from "./words.ts";

/** Places in the two texts: the word said, and the expected word it is matched with. */
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

/** In the order of what was said. */
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

/** Each word, the last first, with the last of the same that is left: linear, and which of several is settled. */
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

/** Runs of matches that stand side by side in both texts. */
function chunksIn(matches: readonly Match[]): number {
  let chunks = 0;
  let [said, expected] = [Number.NaN, Number.NaN];
  for (const match of matches) {
    if (match[0] !== said + 1 || match[1] !== expected + 1) chunks += 1;
    [said, expected] = match;
  }
  return chunks;
}
