/**
 * `1 − d / max(length)`, d the least number of inserted, deleted and replaced UTF-16 units (Levenshtein 1966); 1 for two empty
 * texts. As autoevals' Levenshtein.
 */
import { distance } from "fastest-levenshtein";
import * as z from "zod";
import { grouped, type Work } from "../work.ts";
import { plainText, TEXT_OPTIONS } from "./plain-text.ts";
import { scorer, withinCharacters } from "./scorer.ts";

export const levenshtein = scorer(z.strictObject(TEXT_OPTIONS), (options) =>
  withinCharacters((output, reference, work) =>
    likeness(plainText(output, options, work), plainText(reference, options, work), work),
  ),
);

/** Pairs of characters for each step: 32 at a time, at some 7 ns. */
const PAIRS = 200;

/** How alike two texts are, from 0 to 1. The work is the product of their lengths. */
export function likeness(a: string, b: string, work: Work): number {
  const longest = Math.max(a.length, b.length);
  const lengths = `${grouped(a.length)} with ${grouped(b.length)} characters`;
  work.spend(1 + (a.length * b.length) / PAIRS, `the edit distance of ${lengths}`);
  return longest === 0 ? 1 : 1 - distance(a, b) / longest;
}
