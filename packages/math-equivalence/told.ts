/**
 * The number that prose gives as its answer, where no mark says which it is.
 *
 * The last sentence that holds a number decides: one that concludes ("So …"), before others on its line. In it the number
 * of the last clause counts; a reason, a bracket and a circumstance ("for 9 eggs", "at $2 each") count only where nothing
 * else does. What is denied ("not 20", "20 is wrong") is no answer, nor is what is asked, one of two ("18 or 20") or
 * the end of a reply that was cut off. Then there is no answer, and no earlier number takes its place.
 *
 * Invariant: linear in the text. Every repetition is bounded.
 */
import { isTitle, withoutMarks, withoutPart } from "./prose.ts";

/** Stands where a number was denied. */
const DENIED = "\ue000";
const AMOUNT =
  "(?<!\\d[.])(?:(?<![\\w)])-)?\\\\?\\$?-?(?:\\d{1,3}(?:,\\d{3}){1,40}(?!\\d)|\\d{1,3}(?: \\d{3}){1,9}(?![\\d-])|\\d{1,400}(?:,\\d{1,9}){0,40})" +
  "(?:\\.\\d{1,400})?(?!\\.?\\d)(?:/\\d{1,30}(?![\\d/]))?(?![\\d:])(?:%|[kK]\\b)?";
const ANY = `[*_~]{0,3}${AMOUNT}[*_~]{0,3}(?:\\s(?!but\\b|and\\b|is\\b|it\\b|so\\b)[a-z]{1,20}){0,2}`;
const NOT = "(?:\\w{0,8}n['’]t|cannot|not|never|neither|nor|instead of|rather than)";
/** What is denied, with what joins it to its sentence. */
const DENIALS = [
  /(?:±|\\pm)\s?[\d.]{1,40}/g,
  /~~[^~\n]{0,80}~~/g,
  new RegExp(
    `[,;(–—-]{0,2}\\s{0,2}\\b${NOT}(?:\\s(?:be|the|just|simply|only|equal|to|answer|is|that|a)){0,3}\\s${ANY}[,)]?(?:\\sbut(?:\\srather)?\\s)?`,
    "gi",
  ),
  new RegExp(
    `(?<!\\w)${ANY}\\s(?:is|was|would be)\\s(?:not|wrong|incorrect|false|too (?:low|high|much|many|few|little))\\b`,
    "gi",
  ),
  new RegExp(`(?<!\\w)${ANY}\\?\\s{0,2}(?=no\\b|\\))`, "gi"),
];

/** What takes back everything that was said before it. */
const CORRECTION =
  /(?:^|[.!?…,;:(–—-]|\.\.)\s{0,3}[*_"(]{0,3}(?:(?:but|oh|hmm+|oops),?\s)?(?:wait|actually|correction|scratch that|on second thoughts?|oops|sorry|no(?=[,:.–—]| wait|$)|(?:that|this|it)(?:['’]s| is| was) (?:wrong|incorrect|not right|a mistake|an error)|i (?:made|see) (?:a|my) (?:mistake|error)|(?:my|a) mistake|let me (?:correct|redo|recalculate|recompute|reconsider|fix))(?![\w'’-]| to\b)/gim;

/**
 * A text from its last correction on; all of it where nothing that could be an answer follows. `sign`: a character that
 * answers have.
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

/** "That is wrong." alone takes back what stands before it. */
const DENIAL_ALONE = /wrong|incorrect|not right|mistake|error|scratch/i;

/** A text whose denied numbers are taken out. */
export function withoutDenied(text: string): string {
  if (!/\d/.test(text)) return text;
  return DENIALS.reduce((left, denial) => left.replace(denial, DENIED), text);
}

const NUMBER = new RegExp(
  `${AMOUNT}(?:\\s(?:hundred|thousand|million|billion|trillion)\\b)?|(?<![\\w.])\\.\\d{1,400}%?`,
  "gi",
);
const REFUSES =
  /\b(?:(?:can(?:no|['’])?t|could ?n[o'’]t|unable to|impossible to) (?:tell|say|solve|answer|determine|know|be (?:determined|solved|answered))|do(?: not|n['’]t) know|not sure|give up|no answer|not enough information)\b/i;
/** A question to the reader is no answer and takes none back. */
const OFFER =
  /\b(?:you|anything|questions?|help|assist)\b[^?]{0,200}\?$|^[^\p{L}\d]{0,4}(?:let me know|feel free|i hope|i['’]d be happy|happy to)\b/iu;
const IS_CUT_OFF =
  /(?:[,:=+*/×÷]|\s-|\b(?:so|and|then|is|are|of|the|an?|to|plus|minus|by|if|because|since|with|for|that))\s{0,3}$/i;
const CONCLUDES =
  /^[^\p{L}\d]{0,6}(?:so|thus|therefore|hence|finally|consequently|altogether|overall|in total|in conclusion|conclusion|(?:the|my|our|final|correct)\s(?:\w{1,12}\s)?(?:answer|result|total)|total|result|answer)\b/iu;
const EXPLAINS =
  /^[^\p{L}\d]{0,4}(?:note|this is (?:because|since)|because|that is because|recall|remember|check|verification|here)\b|\b(?:before|originally|initially|at first|previously|earlier)\b[^\d]{0,40}$/iu;
const CALCULATOR = /<<[^<>\n]{0,200}>>/g;
const LIST_MARK = /^(?:[-*•]\s|[#>\s]){0,9}(?:\d{1,2}[.)]\s)?/;
const SENTENCES = /(?<=[.!?][*_")\]]{0,3})\s+(?=[\p{Lu}\d$*(\\"])/u;

/** The number that these lines give as their answer; null where they give none, or it is not clear which. */
export function toldNumber(lines: readonly string[]): string | null {
  if (IS_CUT_OFF.test(withoutMarks(lines.at(-1) ?? "").slice(-60))) return null;
  for (const line of lines.toReversed()) {
    if (REFUSES.test(line)) return null;
    const sentences = isTitle(withoutMarks(line)) ? [] : sentencesOf(line);
    const telling = sentences.filter((sentence) => isTelling(sentence) && !EXPLAINS.test(sentence));
    const sentence = telling.findLast((each) => CONCLUDES.test(each)) ?? telling.at(-1);
    if (sentence !== undefined) return sentence.endsWith("?") ? null : numberOf(sentence.slice(-LONGEST));
  }
  return null;
}

function sentencesOf(line: string): string[] {
  const plain = withoutPart(line.replace(CALCULATOR, "").replace(LIST_MARK, ""));
  return withoutDenied(plain).split(SENTENCES);
}

function isTelling(sentence: string): boolean {
  return (/\d/.test(sentence) || sentence.includes(DENIED)) && !OFFER.test(sentence);
}

/** Characters of a sentence that are looked at, from its end. */
const LONGEST = 1000;
const LAST_CLAUSE =
  /^.*(?:\b(?:so|thus|therefore|hence|meaning|means|giving|leaving|but|however|though)\b|=>|->|[→⇒])(?=.*[\d\ue000])/i;
const REASON = /,?\s(?:because|since|given that|as(?!.*=))\s.*$/i;
const BRACKET = /[([][^()[\]]{0,200}[)\]]/g;
const ASIDE = /^.*(?:=|≈)\s{0,3}(?=.*\d)/;
const SUM = /^[-\d\s.,+*/×÷()$]{1,200}/;
const BOLD = /\*\*([^*\n]{1,200})\*\*/g;

function numberOf(sentence: string): string | null {
  const bold = Array.from(sentence.matchAll(BOLD), ([, text = ""]) => text).filter((text) => /\d/.test(text));
  let told = withoutMarks(bold.at(-1) ?? sentence);
  for (const part of [LAST_CLAUSE, REASON, BRACKET]) {
    const rest = told.replace(part, " ");
    if (/[\d\ue000]/.test(rest)) told = rest;
  }
  const result = told.replace(ASIDE, "");
  if (result === told && /\d:\d/.test(told)) return null;
  const sum = result === told ? "" : (SUM.exec(result)?.[0] ?? "").replace(/[$,\s]{1,9}$/, "");
  if (/\d\s{0,3}[-+*/×÷]\s{0,3}\$?\d/.test(sum)) return sum;
  const [, first] = result === told ? [] : (FIRST.exec(result) ?? []);
  return (first ?? chosen(result.split(result === told ? /$/ : /[,;]\s/, 1)[0] ?? ""))?.replace(/^\\?\$/, "") ?? null;
}

/** What an equation comes to, unless it is a formula that closes here. */
const FIRST = new RegExp(`^(${AMOUNT}(?:\\s(?:hundred|thousand|million|billion|trillion)\\b)?)(?!\\$|\\d)`, "i");
/** A number of these words says under which circumstances the answer is one. */
const CIRCUMSTANCE =
  /(?:\b(?:at|in|with|from|after|every|per|each of|out of|all of|over|within|during|than|to \p{L}{2,15}|by \p{L}{2,15}ing|(?:for|of)(?<!total of|sum of|cost of|price of|average of|rest of|amount of|number of|profit of))(?:\s(?:the|his|her|their|its|all|these|those|only|just|every|each|another))?|\p{L}{2,15}ing)\s{1,2}$/iu;
const EACH = /^\S{1,40}\s(?:each|apiece|per|a piece)\b/i;
const PART_OF = /\d\s(?:\p{L}{1,15}\s){0,2}of\s(?:the\s)?$/u;
const VAGUE = /\b(?:less than|more than|fewer than|under|below|above|between)\s{1,2}$/i;
const EITHER = new RegExp(`${AMOUNT}(?:\\s[a-z]{1,15})?\\s(?:or)\\s(?:\\w{1,12}\\s)?\\\\?\\$?\\d`, "i");
const RANGE = /\d(?:-|\sto\s)\\?\$?\d/i;
/** Characters before a number that are looked at. */
const BEFORE = 40;

function chosen(clause: string): string | null {
  if (EITHER.test(clause) || (RANGE.test(clause) && !/\bfrom\b/i.test(clause))) return null;
  let [last, free]: { number: string; isVague: boolean }[] = [];
  // One at a time: a line may be nothing but numbers.
  for (const { 0: number, index } of clause.matchAll(NUMBER)) {
    const before = clause.slice(Math.max(0, index - BEFORE), index);
    const isPrice = /^\\?\$/.test(number) && /\b(?:for|of)\s{1,2}$/i.test(before) && !EACH.test(clause.slice(index));
    const isCircumstance = (CIRCUMSTANCE.test(before) && !isPrice) || PART_OF.test(before);
    last = { number, isVague: VAGUE.test(before) };
    if (!isCircumstance) free = last;
  }
  const found = free ?? last;
  return found === undefined || found.isVague ? null : found.number;
}
