/**
 * Token F1: the harmonic mean of precision and recall over words, repetitions counted. As SQuAD's (Rajpurkar et al. 2016),
 * which drops articles too: `ignore_articles`.
 */
import * as z from "zod";
import { scorer, withinCharacters } from "./scorer.ts";
import { countRuns, overlap, sharedRuns, wordsOf } from "./words.ts";

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
