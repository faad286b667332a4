/**
 * Words as the reference counts them: runs of letters, digits and `_`; and for words in capitals the tokens of NLTK's
 * `word_tokenize`, which splits off punctuation and the ends of contractions: IT'S is IT and 'S.
 */
import { sentencesOf } from "./sentences.ts";

export function countWords(text: string): number {
  return text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;
}

/** At least one letter with a case, and none in lower case. */
export function isUpper(text: string): boolean {
  return /\p{Uppercase}/u.test(text) && !/\p{Lowercase}|\p{Lt}/u.test(text);
}

export function isLower(text: string): boolean {
  return /\p{Lowercase}/u.test(text) && !/\p{Uppercase}|\p{Lt}/u.test(text);
}

export function countCapitalWords(text: string): number {
  return sentencesOf(text).flatMap(tokensOf).filter(isUpper).length;
}

/** In this order; each works on the result of those before. */
const SPLITS: readonly (readonly [RegExp, string])[] = [
  [/([«“‘„]|`+)/gu, " $1 "],
  [/^"/g, "``"],
  [/(``)/g, " $1 "],
  [/([ ([{<])("|'{2})/g, "$1 `` "],
  [/(?<![\p{L}\p{N}_])(')(?!(?:re|ve|ll|m|t|s|d|n)(?![\p{L}\p{N}_]))(?=[\p{L}\p{N}_])/giu, "$1 "],
  [/([^.])(\.)([\])}>"'»”’ ]*)$/gu, "$1 $2 $3 "],
  [/([:,])(\P{Nd})/gu, " $1 $2"],
  [/([:,])$/g, " $1 "],
  [/\.{2,}/g, " $& "],
  [/[;@#$%&]/g, " $& "],
  [/[\u2012-\u2015]/g, " $& "],
  [/([^.])(\.)([\])}>"']*)\s*$/g, "$1 $2$3 "],
  [/[?!]/g, " $& "],
  [/([^'])' /g, "$1 ' "],
  [/[*]/g, " $& "],
  [/[\][(){}<>]/g, " $& "],
  [/--/g, " -- "],
  [/^|$/g, " "],
  [/([»”’])/g, " $1 "],
  [/''/g, " '' "],
  [/"/g, " '' "],
  [/\s+/g, " "],
  [/([^' ])('s|'m|'d|') /gi, "$1 $2 "],
  [/([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) /g, "$1 $2 "],
  [/\b(can)(not)\b/gi, " $1 $2 "],
  [/\b(d)('ye)\b/gi, " $1 $2 "],
  [/\b(gim)(me)\b/gi, " $1 $2 "],
  [/\b(gon)(na)\b/gi, " $1 $2 "],
  [/\b(got)(ta)\b/gi, " $1 $2 "],
  [/\b(lem)(me)\b/gi, " $1 $2 "],
  [/\b(more)('n)\b/gi, " $1 $2 "],
  [/\b(wan)(na)(?=\s)/gi, " $1 $2 "],
  [/ ('t)(is|was)\b/gi, " $1 $2 "],
];

function tokensOf(sentence: string): string[] {
  const split = SPLITS.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), sentence.trimEnd());
  return split.trim().split(/\s+/);
}
