/**
 * Gives the characters of numbers one spelling: spaces, digits, signs, thousands separators.
 *
 * Everything that reads a number calls this first, so that all code reads the same numbers. Invariants: linear in the
 * text. Plain ASCII does not change, except LaTeX's separators between groups of three digits.
 */

import { plainSizes } from "./sizes.ts";

/**
 * Marks between groups of three digits that no list uses, and the comma before cents: `1.600,50`, `1 600,50`,
 * `1’600,50`.
 */
const GROUPS_AND_CENTS =
  /(?<![\d.,'’])\d{1,3}(?:(?:\.\d{3}){1,40}|(?:[ '’\u00a0\u2009\u202f]\d{3}){1,40}),\d{1,2}(?![\d,]|\.\d)/g;
/** `1.234.567` */
const GROUPS_OF_DOTS = /(?<![\d.,])\d{1,3}(?:\.\d{3}){2,40}(?![\d,]|\.\d)/g;
/** `10,00,000`, as in India. */
const GROUPS_OF_TWO = /(?<![\d.,])\d{1,2}(?:,\d{2}){1,40},\d{3}(?![\d,])/g;
/** Cents next to a currency sign, in the currencies that use a decimal comma: `18,00 €`. */
const CENTS = /(?<![\d.,])(\d{1,15}),(\d{2})(?=\s?(?:€|EUR\b|euros?\b|CHF\b|kr\b|zł|Kč|₺))/g;
const CENTS_BEHIND = /((?:€|\bEUR|\bCHF|R\$)\s?\d{1,15}),(\d{2})(?![\d,])/g;

/**
 * Numbers in the spellings of other countries, and with size words, if a text contains numbers and no lists of them.
 */
export function plainDecimals(text: string): string {
  return plainSizes(text)
    .replace(GROUPS_AND_CENTS, (number) => number.replace(/[. '’\u00a0\u2009\u202f]/g, "").replace(",", "."))
    .replace(GROUPS_OF_DOTS, (number) => number.replaceAll(".", ""))
    .replace(GROUPS_OF_TWO, (number) => number.replaceAll(",", ""))
    .replace(CENTS, "$1.$2")
    .replace(CENTS_BEHIND, "$1.$2");
}

/** Characters without width or meaning, which may be inside a number. */
const INVISIBLE = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ue000-\uf8ff]/g;
/** No-break, thin, figure, ideographic space and similar ones. A plain blank is not among them. */
const SPACE = "[\\u00a0\\u2000-\\u200a\\u202f\\u205f\\u3000]";
const SPACES = new RegExp(SPACE, "g");
/**
 * Between groups of three digits these are always separators. A plain blank may be something else: "in 2024 500
 * people".
 */
const SEPARATOR = `(?:${SPACE}|['’]|(?:\\\\text)?\\{,\\}|\\\\[,;: ]|,?\\\\!)`;
/** `1 234 567` before the decimal point, `.141 592 6` after it. */
const GROUPS = new RegExp(
  `(?<![\\d.,])\\d{1,3}(?:${SEPARATOR}\\d{3})+(?![\\d/])|(?<=\\.)\\d{3}(?:${SEPARATOR}\\d{3})*${SEPARATOR}\\d{1,3}(?![\\d/])`,
  "g",
);
const SEPARATORS = new RegExp(SEPARATOR, "g");

/** The digit 0 of Arabic, Persian, Devanagari and Bengali. The other nine digits follow it. */
const ZEROS = [0x660, 0x6f0, 0x966, 0x9e6];
const OTHER_DIGITS = /[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef]/g;
/** Full-width characters. Not included: the dollar sign, which stands for an escaped one, and the wave of a range. */
const FULL_WIDTH = /[\uff01-\uff03\uff05-\uff5d]/g;
const FROM_FULL_WIDTH = 0xfee0;
const SIGNS = /[\u2010-\u2013\u2212\ufe63\u2044\u2215\u066a-\u066c\u060c\u3002\uff61]/g;
const PLAIN_SIGNS = new Map([
  ...Array.from("\u2010\u2011\u2012\u2013\u2212\ufe63", (minus) => [minus, "-"] as const),
  ["\u2044", "/"],
  ["\u2215", "/"],
  ["\u066a", "%"],
  ["\u066b", "."],
  ["\u066c", ","],
  ["\u060c", ","],
  ["\u3002", "."],
  ["\uff61", "."],
]);

export function plainTypography(text: string): string {
  return text
    .replace(INVISIBLE, "")
    .replace(FULL_WIDTH, (wide) => String.fromCharCode(wide.charCodeAt(0) - FROM_FULL_WIDTH))
    .replace(OTHER_DIGITS, plainDigit)
    .replace(SIGNS, (sign) => PLAIN_SIGNS.get(sign) ?? sign)
    .replace(GROUPS, (number) => number.replace(SEPARATORS, ""))
    .replace(SPACES, " ");
}

function plainDigit(digit: string): string {
  const code = digit.charCodeAt(0);
  return String(code - Math.max(...ZEROS.filter((zero) => zero <= code)));
}
