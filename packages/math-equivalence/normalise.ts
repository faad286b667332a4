/**
 * One spelling for what is only typography: delimiters, spacing, sizes, thousands separators, units, typographic signs.
 *
 * Invariants. Linear in the text: every pattern is either a fixed word or has no two neighbouring repetitions that
 * could match the same characters. What carries meaning stays: a percent sign, the brackets of an interval, a base.
 */

const SIGNS: readonly (readonly [string, string])[] = [
  ["−", "-"],
  ["–", "-"],
  ["×", "*"],
  ["·", "*"],
  ["⋅", "*"],
  ["÷", "/"],
  ["π", "\\pi "],
  ["∞", "\\infty "],
  ["√", "\\sqrt "],
  ["≤", "\\le "],
  ["≥", "\\ge "],
  ["≠", "\\ne "],
  ["±", "\\pm "],
  ["∪", "\\cup "],
  ["∈", "\\in "],
  ["°", "^\\circ "],
  ["\\degree", "^\\circ "],
  ["θ", "\\theta "],
  ["²", "^{2}"],
  ["³", "^{3}"],
  ["½", "\\frac{1}{2}"],
  ["**", "^"],
];

/** Typography that is dropped, or becomes a space. `\\` ends a row, whatever follows it. */
const DROPPED = /(?<!\\)\\(?:(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits)(?![a-zA-Z])|!|[()[\]])|\$/g;
const SPACES = /(?<!\\)\\(?:[,;: ]|q?quad(?![a-zA-Z]))|~|[\s\u00a0]/g;
const FRACTIONS = /\\[dtc]frac(?![a-zA-Z])/g;
/** Marks over a name: a vector, a line between two points. */
const MARKED = /\\(?:vec|overline|bar|hat|widehat|overrightarrow)(?=\s?\{)/g;
const REPEATING = /(?<!\d)(\d*)\.(\d*)\\overline\s?\{(\d+)\}/g;
/** `1{,}000`, `1\,000`, `1,\!000`, `1 000`: before a group of three digits these are never anything else. */
const THOUSANDS = /(?<=\d)(?:\{,\}|\\,|,?\\!| )(?=\d{3}(?!\d))/g;

const TEXT = String.raw`\\(?:text(?:bf|it|rm)?|mbox|mathrm|mathbf|mathbb|mathcal|operatorname)\s?\{([^{}]*)\}`;
const WHOLE_TEXT = new RegExp(`^${TEXT}$`);
const TEXTS = new RegExp(TEXT, "g");
const TRAILING_TEXT = new RegExp(String.raw`(?<=[^\s])\s?${TEXT}(?:\^\{?[23]\}?)?$`);
const SEPARATOR = /^\s?(?:and|or|,|,? and|,? or)\s?$/;

const UNITS = [
  "[ckm]m|in|inch(?:es)?|f(?:ee|oo)?t|yards?|miles?|(?:centi|kilo|milli)?met(?:er|re)s?",
  "[km]g|lbs?|pounds?|ounces?|(?:kilo|milli)?grams?|lit(?:er|re)s?|gallons?|mph|per|square|cubic|sq|units?",
  "seconds?|minutes?|hours?|days?|weeks?|months?|years?|dollars?|cents?|degrees?|rad(?:ian)?s?",
].join("|");
const TRAILING_UNIT = new RegExp(String.raw`(?<=[\d)}\]\s])(?:${UNITS})(?:\^\{?[23]\}?)?$`);
const DEGREES = /^([-+\d.,/ ]|\\frac|[{}])+\^\{?\s?\\circ\s?\}?$/;
/** `5 square miles per hour`. */
const UNIT_WORDS = 4;

export function normalise(text: string): string {
  let plain = text.replace(THOUSANDS, "").replaceAll("\\$", "").replaceAll("\\%", "%");
  for (const [sign, spelling] of SIGNS) plain = plain.replaceAll(sign, spelling);
  plain = plain.replace(REPEATING, repeatingFraction).replace(MARKED, "");
  plain = plain.replace(FRACTIONS, "\\frac").replace(DROPPED, "").replace(SPACES, " ");
  return withoutUnits(trimEnds(plain));
}

/** Equal texts, white space aside. */
export function squeeze(normalised: string): string {
  return normalised.replaceAll(" ", "");
}

/** A text that is all words is those words; " and " and " or " separate; what follows the mathematics is its unit. */
function withoutUnits(text: string): string {
  const words = WHOLE_TEXT.exec(text)?.[1];
  if (words !== undefined) return words.trim();
  let bare = text.replace(TEXTS, (all, inner: string) => (SEPARATOR.test(inner) ? "," : all));
  for (let word = 0; word < UNIT_WORDS; word += 1) {
    bare = trimEnds(bare.replace(TRAILING_TEXT, "").replace(TRAILING_UNIT, ""));
  }
  if (DEGREES.test(bare)) bare = bare.slice(0, bare.lastIndexOf("^"));
  return bare.replace(TEXTS, (_all, inner: string) => ` ${inner.trim()} `).trim();
}

/** `0.1\overline{6}` is (16 − 1)/90. */
function repeatingFraction(_all: string, before: string, fixed: string, period: string): string {
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
