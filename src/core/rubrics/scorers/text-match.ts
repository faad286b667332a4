/**
 * The scorers that search a text in another: `exact`, `includes`, `starts_with`, `levenshtein` and `regex`. Each
 * difference in spelling that is ignored is an option; white space at the ends is always ignored.
 */
import { distance } from "fastest-levenshtein";
import { RE2JS } from "re2js";
import * as z from "zod";
import { Pattern, PatternError } from "../../schema/pattern.ts";
import { scoreWork, type Work, WorkBudgetError, withThousands } from "../work.ts";
import { MalformedReferenceError, scorer, withinCharacters } from "./scorer.ts";

export const TEXT_OPTIONS = {
  ignore_case: z.boolean().default(false),
  /** Unicode NFKC: full-width letters, ligatures, superscripts. */
  normalize_unicode: z.boolean().default(false),
  ignore_punctuation: z.boolean().default(false),
  /** a, an, the */
  ignore_articles: z.boolean().default(false),
};

const TextOptions = z.strictObject(TEXT_OPTIONS);
export type TextOptions = z.output<typeof TextOptions>;

/** Steps per character and option, measured on hostile texts, such as Arabic ligatures or only commas. */
const STEPS = { normalize: 4, punctuation: 4, articles: 3 };
/** Consecutive marks are sorted by insertion, whose cost is quadratic. */
const MARK = /[\p{M}\uFF9E\uFF9F]/u;
const FIRST_MARK = "\u0300";
const PAIRS_OF_MARKS = 50;

/** The normalised text; with any option, white space becomes one blank. */
export function plainText(text: string, options: TextOptions, work: Work): string {
  const doing = `normalizing ${withThousands(text.length)} characters`;
  work.spend(text.length * stepsEach(options), doing);
  if (options.normalize_unicode) work.spend(pairsOfMarks(text) / PAIRS_OF_MARKS, doing);
  let plain = options.normalize_unicode ? text.normalize("NFKC") : text;
  if (options.ignore_case) plain = plain.toLowerCase();
  if (options.ignore_punctuation) plain = plain.replace(/\p{P}/gu, "");
  if (options.ignore_articles) plain = plain.replace(/\b(?:a|an|the)\b/gi, "");
  const loosened = options.ignore_punctuation || options.ignore_articles;
  return (loosened ? plain.replace(/\s+/g, " ") : plain).trim();
}

function stepsEach({ normalize_unicode, ignore_punctuation, ignore_articles }: TextOptions): number {
  return (
    (normalize_unicode ? STEPS.normalize : 0) +
    (ignore_punctuation ? STEPS.punctuation : 0) +
    (ignore_articles ? STEPS.articles : 0)
  );
}

function pairsOfMarks(text: string): number {
  let [pairs, run] = [0, 0];
  for (const character of text) {
    const marks = character >= FIRST_MARK && MARK.test(character);
    run = marks ? run + 1 : 0;
    pairs += run;
  }
  return 2 * pairs;
}

/** 1 if output and reference are the same text. */
export const exact = scorer(
  z.strictObject(TEXT_OPTIONS),
  (options) => (output, reference, work) =>
    plainText(output, options, work) === plainText(reference, options, work) ? 1 : 0,
);

/** 1 if the reference occurs in the output. An empty reference occurs in every text, so it cannot be used. */
export const includes = scorer(z.strictObject(TEXT_OPTIONS), (options) => (output, reference, work) => {
  const wanted = needle(reference, options, work);
  const text = plainText(output, options, work);
  spendSearch(text, wanted, work);
  return text.includes(wanted) ? 1 : 0;
});

/** 1 if the output begins with the reference. */
export const startsWith = scorer(
  z.strictObject(TEXT_OPTIONS),
  (options) => (output, reference, work) =>
    plainText(output, options, work).startsWith(needle(reference, options, work)) ? 1 : 0,
);

/** Pairs of characters per step of the engine's search, which skips at most as many characters as its table has. */
const PAIRS_SEARCHED = 12_500;

function spendSearch(text: string, wanted: string, work: Work): void {
  const lengths = `${withThousands(wanted.length)} characters in ${withThousands(text.length)}`;
  work.spend((text.length * wanted.length) / PAIRS_SEARCHED, `looking for ${lengths}`);
}

function needle(reference: string, options: TextOptions, work: Work): string {
  const plain = plainText(reference, options, work);
  if (plain === "") throw new MalformedReferenceError("it is empty");
  return plain;
}

/**
 * `1 − d / max(length)`, where d is the smallest number of inserted, deleted and replaced UTF-16 units (Levenshtein
 * 1966); 1 for two empty texts. As autoevals' Levenshtein.
 */
export const levenshtein = scorer(z.strictObject(TEXT_OPTIONS), (options) =>
  withinCharacters((output, reference, work) =>
    likeness(plainText(output, options, work), plainText(reference, options, work), work),
  ),
);

/** Pairs of characters per step: 32 at a time, in about 7 ns. */
const PAIRS_AT_ONCE = 200;

/** The similarity of two texts, from 0 to 1. The work is the product of their lengths. */
export function likeness(a: string, b: string, work: Work): number {
  const longest = Math.max(a.length, b.length);
  const lengths = `${withThousands(a.length)} with ${withThousands(b.length)} characters`;
  work.spend(1 + (a.length * b.length) / PAIRS_AT_ONCE, `the edit distance of ${lengths}`);
  return longest === 0 ? 1 : 1 - distance(a, b) / longest;
}

/**
 * 1 if a pattern matches somewhere in the output: the option's, else the reference.
 *
 * Patterns are RE2's (https://github.com/google/re2/wiki/Syntax): JavaScript's without look-around and back-references.
 * The work of compiling and matching is counted before it is done (core/schema/pattern.ts).
 */
const PatternText = z
  .string()
  .min(1, "is empty")
  .superRefine((pattern, context) => {
    try {
      new Pattern(pattern, scoreWork());
    } catch (thrown) {
      if (!(thrown instanceof PatternError || thrown instanceof WorkBudgetError)) throw thrown;
      context.addIssue({ code: "custom", message: thrown.message });
    }
  });

export const regex = scorer(
  z.strictObject({
    pattern: PatternText.optional(),
    ignore_case: z.boolean().default(false),
    /** `.` also matches the end of a line. */
    dot_all: z.boolean().default(false),
    /** `^` and `$` match at every line. */
    multiline: z.boolean().default(false),
    /** The whole output must match, except white space around it. */
    full: z.boolean().default(false),
  }),
  ({ pattern, ignore_case, dot_all, multiline, full }) => {
    const flags =
      (ignore_case ? RE2JS.CASE_INSENSITIVE : 0) | (dot_all ? RE2JS.DOTALL : 0) | (multiline ? RE2JS.MULTILINE : 0);
    const given = pattern === undefined ? undefined : usable(pattern, flags, scoreWork());
    return (output, reference, work) => {
      const compiled = given ?? usable(reference, flags, work);
      const found = full ? compiled.matches(output.trim(), work) : compiled.isIn(output, work);
      return found ? 1 : 0;
    };
  },
);

function usable(pattern: string, flags: number, work: Work): Pattern {
  if (pattern === "") throw new MalformedReferenceError("it is empty");
  try {
    return new Pattern(pattern, work, flags);
  } catch (thrown) {
    if (thrown instanceof PatternError) throw new MalformedReferenceError(thrown.message);
    throw thrown;
  }
}
