/** Spellings that a comparison of texts may put aside, each only where its option says so. White space at the ends never counts. */
import * as z from "zod";

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

/** The text in one spelling; with any option, white space is one blank. */
export function plainText(text: string, options: TextOptions): string {
  let plain = options.normalize_unicode ? text.normalize("NFKC") : text;
  if (options.ignore_case) plain = plain.toLowerCase();
  if (options.ignore_punctuation) plain = plain.replace(/\p{P}/gu, "");
  if (options.ignore_articles) plain = plain.replace(/\b(?:a|an|the)\b/gi, "");
  const loosened = options.ignore_punctuation || options.ignore_articles;
  return (loosened ? plain.replace(/\s+/g, " ") : plain).trim();
}
