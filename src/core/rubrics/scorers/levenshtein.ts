/**
 * `1 − d / max(length)`, d the least number of inserted, deleted and replaced UTF-16 units (Levenshtein 1966); 1 for two empty
 * texts. As autoevals' Levenshtein.
 */
import { distance } from "fastest-levenshtein";
import * as z from "zod";
import { plainText, TEXT_OPTIONS } from "./plain-text.ts";
import { scorer, withinCharacters } from "./scorer.ts";

export const levenshtein = scorer(z.strictObject(TEXT_OPTIONS), (options) =>
  withinCharacters((output, reference) =>
    likeness(plainText(output, options), plainText(reference, options)),
  ),
);

/** How alike two texts are, from 0 to 1. The work is the product of their lengths over 32. */
export function likeness(a: string, b: string): number {
  const longest = Math.max(a.length, b.length);
  return longest === 0 ? 1 : 1 - distance(a, b) / longest;
}
