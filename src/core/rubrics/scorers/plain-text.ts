/** Spellings that a comparison of texts may put aside, each only where its option says so. White space at the ends never counts. */
import * as z from "zod";
import { grouped, type Work } from "../work.ts";

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

/** Steps for each character: what each option was measured to take of hostile text, as Arabic ligatures or all commas. */
const STEPS = { normalize: 4, punctuation: 4, articles: 3 };
/** Marks that follow each other are put in order by insertion, which takes the square of them. */
const MARK = /[\p{M}\uFF9E\uFF9F]/u;
const FIRST_MARK = "\u0300";
const PAIRS_OF_MARKS = 50;

/** The text in one spelling; with any option, white space is one blank. */
export function plainText(text: string, options: TextOptions, work: Work): string {
  const doing = `spelling ${grouped(text.length)} characters in one way`;
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
