/**
 * Gives typography one spelling: delimiters, spacing, sizes, colours, thousands separators, Unicode signs.
 *
 * Invariants: linear in the text: every pattern is either a fixed word, or has no two adjacent repetitions that could
 * match the same characters. Everything with a meaning stays: a unit, a word, a percent sign, a bracket, a base.
 */

import { plainTypography } from "./typography.ts";

/** Replaces an escaped dollar sign once the dollars that delimit formulas are removed. */
export const DOLLAR = "＄";

const SIGNS: readonly (readonly [string, string])[] = [
  ["\\$", DOLLAR],
  ["\\%", "%"],
  ["×", "\\times "],
  ["·", "*"],
  ["⋅", "*"],
  ["÷", "/"],
  ["π", "\\pi "],
  ["∞", "\\infty "],
  ["√", "\\sqrt "],
  ["∇", "\\nabla "],
  ["≤", "\\le "],
  ["≥", "\\ge "],
  ["≠", "\\ne "],
  ["≈", "\\approx "],
  ["≡", "\\equiv "],
  ["±", "\\pm "],
  ["∪", "\\cup "],
  ["∩", "\\cap "],
  ["∈", "\\in "],
  ["∅", "\\emptyset "],
  ["…", "\\dots "],
  ["...", "\\dots "],
  ["ℝ", "\\mathbb{R}"],
  ["ℤ", "\\mathbb{Z}"],
  ["ℕ", "\\mathbb{N}"],
  ["ℚ", "\\mathbb{Q}"],
  ["ℂ", "\\mathbb{C}"],
  ["°", "^\\circ "],
  ["\\degree", "^\\circ "],
  ["θ", "\\theta "],
  ["½", "\\frac{1}{2}"],
  ["⅓", "\\frac{1}{3}"],
  ["⅔", "\\frac{2}{3}"],
  ["¼", "\\frac{1}{4}"],
  ["¾", "\\frac{3}{4}"],
  ["**", "^"],
  ["^{\\prime\\prime}", "''"],
  ["^{\\prime}", "'"],
  ["^\\prime", "'"],
  ["\\left<", "\\langle "],
  ["\\right>", "\\rangle "],
  ["’", "'"],
];

/** Typography that is removed, or becomes a space. `\\` always ends a row. */
const DROPPED =
  /(?<!\\)\\(?:(?:left|right)\s?\.|(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|limits|boxed|underline|strut)(?![a-zA-Z])|!|[()[\]])|\$/g;
const HIDDEN = /(?<!\\)\\(?:textcolor|color|v?phantom|hphantom|tag|label)\s?\{[^{}]*\}/g;
const UNEQUAL = /(?<!\\)\\not\s?=/g;
/** `~p` is the negation of p. Elsewhere `~` is a space. */
const DENIED = /(?<=^|[\s(=,])(?<![\d}]\s)~(?=\s?(?:[A-Za-z(](?![a-zA-Z])))/g;
const SPACES = /(?<!\\)\\(?:[,;: ]|q?quad(?![a-zA-Z]))|~|\s/g;
const FRACTIONS = /\\[dtc]frac(?![a-zA-Z])/g;
/** A brace that opens an array of cases and never closes. */
const CASES = /\\left\s?\\\{\s?\\begin\s?\{(?:array|aligned|matrix)\}(?:\s?\{[lcr| ]*\})?/g;
const CASES_END = /\\end\s?\{(?:array|aligned|matrix)\}\s?\\right\s?\./g;
/** The unit vectors, with the hat inside the bold letters or around them. */
const UNIT_VECTOR = /\\hat\s?\{?\s?\\?([ijk])(?:math)?(?![a-zA-Z])\s?\}?/g;
const REPEATING = /(?<![\d.])(\d*)\.(\d*)(?:\\(?:overline|bar)\s?(?:\{(\d+)\}|(\d))|\((\d+)\)(?!\d))/g;
/** A block that occurs three times, then dots. */
const ELLIPSIS = /(?<![\d.])(\d{0,40})\.(\d{0,8}?)(\d{1,6}?)\3{2,20}(?:\\[lc]?dots(?![a-zA-Z])|\.{3}|…)/g;
/** `1{,}000`, `1\,000`, `1,\!000`, `1 000`: before a group of three digits these are always separators. */
const THOUSANDS = /(?<=\d)(?:\{,\}|\\[, ]|,?\\!| )(?=\d{3}(?![\d/]))/g;
/** `3.2 x 10^4` */
const TEN_TIMES = /(?<=\d)\s?[xX]\s?(?=10\s?\^)/g;
/** `5^{\text{th}}` */
const RAISED = /\^\s?\{?\s?\\(?:text|mathrm|textrm)\s?\{\s?(th|st|nd|rd)\s?\}\s?\}?/g;
const HALF_OF_DAY = /(?<![a-zA-Z])([ap])\.\s?m\.?(?![a-zA-Z])/gi;
const BETWEEN_NUMBERS = /(?<=\d)(?:\s?\\text\s?\{\s?to\s?\}\s?|\sto\s)(?=\d)/g;

const RAISED_DIGITS = /[⁻⁰¹²³⁴-⁹ⁿ]+/g;
const LOWERED_DIGITS = /[₀-₉]+/g;
const SMALL = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ₀₁₂₃₄₅₆₇₈₉";
const FULL = "0123456789-n0123456789";

/** `x²` as `x^{2}`, `x₁` as `x_{1}`. */
function withFullDigits(text: string): string {
  const full = (small: string) => Array.from(small, (sign) => FULL[SMALL.indexOf(sign)] ?? sign).join("");
  return text
    .replace(RAISED_DIGITS, (small) => `^{${full(small)}}`)
    .replace(LOWERED_DIGITS, (small) => `_{${full(small)}}`);
}

export function normalise(text: string): string {
  let plain = plainTypography(text)
    .replace(THOUSANDS, "")
    .replace(ELLIPSIS, repeatingFraction)
    .replace(REPEATING, repeatingFraction);
  plain = plain.replace(CASES, "\\begin{cases}").replace(CASES_END, "\\end{cases}");
  for (const [sign, spelling] of SIGNS) plain = plain.replaceAll(sign, spelling);
  plain = withFullDigits(plain);
  plain = plain
    .replace(UNIT_VECTOR, "\\mathbf{$1}")
    .replace(HIDDEN, "")
    .replace(DENIED, "\\sim ")
    .replace(UNEQUAL, "\\ne ")
    .replace(FRACTIONS, "\\frac")
    .replace(RAISED, "\\text{$1}");
  plain = plain.replace(DROPPED, "").replace(SPACES, " ");
  return trimEnds(plain.replace(HALF_OF_DAY, "$1m").replace(BETWEEN_NUMBERS, ":").replace(TEN_TIMES, "*"));
}

/** `0.1\overline{6}` is (16 − 1)/90. */
function repeatingFraction(_all: string, before: string, fixed: string, ...periods: readonly string[]): string {
  const period = periods.slice(0, 3).find((each) => typeof each === "string" && /^\d+$/.test(each)) ?? "0";
  const nines = "9".repeat(period.length) + "0".repeat(fixed.length);
  const over = BigInt(before + fixed + period) - BigInt(before + fixed);
  return `\\frac{${over}}{${nines}}`;
}

function trimEnds(text: string): string {
  return text
    .trim()
    .replace(/[.,;]$/, "")
    .trim();
}
