/**
 * Finds what a reply takes back: corrections ("wait, it is 20"), and numbers and formulas that it denies ("not 20", "20
 * is wrong"). Linear in the text: every repetition is bounded.
 */
import { maskFormulas, unmask } from "./formulas.ts";

/** Replaces a denied number or formula. */
export const DENIED = "\ue000";

/** A number in prose. */
export const AMOUNT =
  "(?<!\\d[.])(?:(?<![\\w)])-)?\\\\?\\$?-?(?:\\d{1,3}(?:,\\d{3}){1,40}(?!\\d)|\\d{1,3}(?: \\d{3}){1,9}(?![\\d-])|\\d{1,400}(?:,\\d{1,9}){0,40})" +
  "(?:\\.\\d{1,400})?(?!\\.?\\d)(?:/\\d{1,30}(?![\\d/]))?(?![\\d:])(?:%|[kK]\\b)?";
/** A formula that `maskFormulas` replaced. */
const MASK = "[\\ue100-\\uf8ff]";
const ANY = `[(*_~]{0,3}(?:${AMOUNT}|${MASK})[*_~]{0,3}(?:\\s(?!but\\b|and\\b|is\\b|it\\b|so\\b|or\\b|does|since\\b|because\\b|as\\b)[a-z]{1,20}){0,2}`;
const JOINED = "[,;(–—-]{0,2}\\s{0,2}(?:\\b(?:and|we|i|so we)\\s)?";
const NOT = "(?:\\w{0,8}n['’]t|cannot|can not|not|never|neither|nor|instead of|rather than|as opposed to|no longer)";
const FILLER = "(?:be|possibly|the|just|simply|only|equal|to|answer|is|that|a)";
// Only for formulas, because objects can be rejected too: "18 of the bottles are discarded".
const NO_FORMULA =
  "(?:\\w{0,8}n['’]t|cannot|can not|not|(?:reject|discard|exclud|dismiss|ignor|disregard|rul)(?:e|es|ed|ing|s)?(?: out)?)";
const FILLER_OF_FORMULA =
  "(?:have|get|take|use|allow|accept|include|equal|to|the|a|values?|case|solution|root|possibility|negative|positive|other|extraneous|second|first|latter)";
const WRONG = "(?:wrong|incorrect|false|too (?:low|high|much|many|few|little|big|large|small))";
const REFUTED =
  "(?:(?:is|are|was|were|being|must be|can be)\\s(?:invalid|impossible|rejected|discarded|excluded|extraneous|inadmissible|ruled out)|(?:isn|wasn|aren|doesn|can)['’]t|does not|cannot|fails|violates|contradicts)";
/** Patterns of denials, with the words that connect them to the sentence. */
const DENIALS = [
  /(?:±|\\pm)\s?[\d.]{1,40}/g,
  /~~[^~\n]{0,80}~~/g,
  new RegExp(
    `${JOINED}\\b${NOT}(?:\\s${FILLER}){0,4}\\s${ANY}(?:\\s(?:n?or|and not)\\s${ANY}){0,2}[,)]?(?:\\sbut(?:\\srather)?\\s)?`,
    "gi",
  ),
  new RegExp(`${JOINED}\\b${NO_FORMULA}(?:\\s${FILLER_OF_FORMULA}){0,4}\\s${MASK}\\)?`, "gi"),
  new RegExp(`(?<![\\w=+*/])${ANY}\\s(?:is|was|would be)(?:n['’]t|\\snot|\\s${WRONG})\\b`, "gi"),
  new RegExp(`${MASK}\\s(?:a solution\\s|a root\\s)?${REFUTED}(?![a-z])`, "gi"),
  new RegExp(`(?<!\\w)${ANY}\\?\\s{0,2}(?=no\\b|\\))`, "gi"),
];

/** Words that take back everything before them. */
const CORRECTION =
  /(?:^|[.!?…,;:(–—-]|\.\.)\s{0,3}[*_"(]{0,3}(?:(?:but|oh|hmm+|oops),?\s)?(?:wait|actually|correction|scratch that|on second thoughts?|oops|sorry|no(?=[,:.–—]| wait|$)|(?:that|this|it)(?:['’]s| is| was) (?:wrong|incorrect|not right|a mistake|an error)|i (?:made|see) (?:a|my) (?:mistake|error)|(?:my|a) mistake|let me (?:correct|redo|recalculate|recompute|reconsider|fix))(?![\w'’-]| to\b)/gim;

/**
 * The text after its last correction; the whole text if nothing after it could be an answer. `sign`: a character that
 * answers contain.
 */
export function afterCorrections(text: string, sign = /[\d$\\]/): string {
  let from = 0;
  let last = text.length - 1;
  while (last > 0 && !sign.test(text[last] ?? "")) last -= 1;
  for (const { 0: words, index } of text.matchAll(CORRECTION)) {
    const end = index + words.length;
    if (last >= end || DENIAL_ALONE.test(words)) from = end;
  }
  return from === 0 ? text : text.slice(from).replace(/^[\s,.:;!*_"–—-]{1,20}/, "");
}

/** "That is wrong." alone takes back the text before it. */
const DENIAL_ALONE = /wrong|incorrect|not right|mistake|error|scratch/i;

/** A text in which denied numbers and formulas are replaced. */
export function withoutDenied(text: string): string {
  if (!/[\d$\\]/.test(text)) return text;
  return text.split("\n").map(denyIn).join("\n");
}

function denyIn(line: string): string {
  const { masked, formulas } = maskFormulas(line);
  return unmask(
    DENIALS.reduce((left, denial) => left.replace(denial, DENIED), masked),
    formulas,
  );
}

/** The text without the places of denied values, if anything else is left. */
export function dropDenied(text: string): string {
  const rest = text.replaceAll(new RegExp(`\\s?${DENIED}`, "g"), "");
  return /[\p{L}\d$\\]/u.test(rest) ? rest : text;
}
