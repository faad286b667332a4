/**
 * Finds the number that prose gives as its answer when no mark shows it.
 *
 * The last sentence with a number decides; on the same line, a sentence that concludes ("So …") takes precedence. In it
 * the number of the last clause counts. Side clauses (`clauses.ts`) and circumstances ("for 9 eggs", "at $2 each")
 * count only if there is nothing else. A value that is denied (`denials.ts`), asked for or left open (`bounds.ts`) is
 * not an answer, nor is the end of a truncated reply. Then there is no answer, and no earlier number takes its place.
 *
 * Invariant: linear in the text. Every repetition is bounded.
 */

import { isOpen } from "./bounds.ts";
import { isQuotation, lastClause, lastClauseOfFormulas, withoutAsides } from "./clauses.ts";
import { AMOUNT, DENIED, withoutDenied } from "./denials.ts";
import { lastFormula, maskFormulas, unmask } from "./formulas.ts";
import { readNumber } from "./number.ts";
import { isSentence, isTitle, withoutMarks, withoutPart } from "./prose.ts";

const NUMBER = new RegExp(`${AMOUNT}|(?<![\\w.])\\.\\d{1,400}%?`, "gi");
const REFUSES =
  /\b(?:(?:can(?:no|['’])?t|could ?n[o'’]t|unable to|impossible to) (?:tell|say|solve|answer|determine|know|be (?:determined|solved|answered))|do(?: not|n['’]t) know|not sure|give up|no answer|not enough information|(?:nobody|no one|who) knows|(?:unclear|unknown|uncertain|not clear) (?:if|whether))\b/i;
/** A question to the reader is not an answer and takes none back. */
const OFFER =
  /\b(?:you|anything|questions?|help|assist)\b[^?]{0,200}\?$|^[^\p{L}\d]{0,4}(?:let me know|feel free|i hope|i['’]d be happy|happy to|if you|should you)\b/iu;
const IS_CUT_OFF =
  /(?:[,:=+*/×÷]|\s-|\b(?:so|and|then|is|are|of|the|an?|to|plus|minus|by|if|because|since|with|for|that))\s{0,3}$/i;
const CONCLUDES =
  /^[^\p{L}\d]{0,6}(?:so|thus|therefore|hence|finally|consequently|altogether|overall|in total|in conclusion|conclusion|(?:the|my|our|final|correct)\s(?:\w{1,12}\s)?(?:answer|result|total)|total|result|answer)\b/iu;
const EXPLAINS =
  /^[^\p{L}\d]{0,4}(?:note|this is (?:because|since)|because|that is because|recall|remember|check|verification|here)\b|\b(?:before|originally|initially|at first|previously|earlier)\b[^\d]{0,40}$/iu;
/** Remarks of a reply about itself. */
const META =
  /^[^\p{L}\d]{0,6}(?:confidence|certainty|word count|words|tokens?(?: used| count)?|difficulty|time (?:taken|spent|used)|rating|score|grade|level|source|references?|p\.?s\.?|step \d{1,2} (?:used?|uses|gave|gives|was|took|is))\b/iu;
/** A separate line next to the answer. */
const IN_BRACKETS = /^[*_]{0,2}\([^()\n]{0,400}\)[*_]{0,2}$/;
const CALCULATOR = /<<[^<>\n]{0,200}>>/g;
const LIST_MARK = /^(?:[-*•]\s|[#>\s]){0,9}(?:\d{1,2}[.)]\s)?/;
const SENTENCES = /(?<=[.!?][*_")\]]{0,3})\s+(?=[\p{Lu}\d$*(\\"\ue100-\uf8ff])/u;

/** The number that these lines give as their answer; null if they give none, or if it is unclear which. */
export function toldNumber(lines: readonly string[]): string | null {
  if (IS_CUT_OFF.test(withoutMarks(lines.at(-1) ?? "").slice(-60))) return null;
  const [first = "", ...others] = lines;
  for (const line of [first, ...others.filter((each) => !isRemark(each))].reverse()) {
    if (REFUSES.test(line)) return null;
    const sentences = isTitle(withoutMarks(line)) ? [] : sentencesOf(line);
    const telling = sentences.filter((each) => isTelling(each) && !isBeside(each.slice(-LONGEST)));
    const sentence = telling.findLast((each) => CONCLUDES.test(each)) ?? telling.at(-1);
    if (sentence !== undefined) return sentence.endsWith("?") ? null : numberOf(sentence.slice(-LONGEST));
  }
  return null;
}

function sentencesOf(line: string): string[] {
  const plain = withoutPart(line.replace(CALCULATOR, "").replace(LIST_MARK, ""));
  return withoutDenied(plain).split(SENTENCES);
}

function isRemark(line: string): boolean {
  return IN_BRACKETS.test(line) && isSentence(line.replace(/[()*_]/g, ""));
}

function isTelling(sentence: string): boolean {
  return (/\d/.test(sentence) || sentence.includes(DENIED)) && !OFFER.test(sentence);
}

function isBeside(sentence: string): boolean {
  return META.test(sentence) || isQuotation(sentence) || EXPLAINS.test(withoutAsides(sentence));
}

/** The formula that a line gives as its answer; null if it gives none, `DENIED` if it is unclear which. */
export function toldFormula(line: string): string | null {
  if (lastFormula(line) === null) return null;
  const { masked, formulas } = maskFormulas(line);
  const sentences = masked.split(SENTENCES).filter((each) => FORMULA.test(each) && !OFFER.test(each));
  if (sentences.length === 0) return null;
  const sentence =
    sentences.findLast((each) => !isBeside(each.slice(-LONGEST))) ?? sentences.findLast((each) => !isQuotation(each));
  if (sentence === undefined || sentence.endsWith("?") || REFUSES.test(sentence)) return DENIED;
  const isRelation = (mask: string) => RELATION.test(unmask(mask, formulas));
  const told = lastClauseOfFormulas(withoutAsides(sentence.slice(-LONGEST)), isRelation);
  if (isEitherOf(told, formulas)) return DENIED;
  const last = told.match(MASKS)?.at(-1);
  if (last !== undefined) return lastFormula(unmask(last, formulas));
  return /\d/.test(told) ? null : DENIED;
}

const MASKS = /[\ue100-\uf8ff]/g;
const FORMULA = /[\ue000\ue100-\uf8ff]/;
const RELATION = /[<>≤≥≠∈]|\\(?:l|g|n)(?:e|eq|t|eqslant)?(?![a-z])|\\in(?![a-z])/;
const EITHER_FORMULA =
  /(\beither\s)?([\ue100-\uf8ff])(?:\s[a-z]{1,15})?,?\sor\s(?:maybe\s|perhaps\s)?([\ue100-\uf8ff])/i;

/** Whether it names two different ones: "either 5 or 6". */
function isEitherOf(told: string, formulas: readonly string[]): boolean {
  const [, either, ...two] = EITHER_FORMULA.exec(told) ?? [];
  const [one, other] = two.map((mask) => readNumber(lastFormula(unmask(mask ?? "", formulas)) ?? ""));
  return either !== undefined || (typeof one === "string" && typeof other === "string" && one !== other);
}

/** How many characters of a sentence are checked, from its end. */
const LONGEST = 1000;
const ASIDE = /^.*(?:=|≈)\s{0,3}(?=.*\d)/;
const SUM = /^[-\d\s.,+*/×÷()$]{1,200}/;
const BOLD = /\*\*([^*\n]{1,200})\*\*/g;

function numberOf(sentence: string): string | null {
  const plain = withoutAsides(sentence);
  const bold = Array.from(plain.matchAll(BOLD), ([, text = ""]) => text).filter((text) => /\d/.test(text));
  const told = lastClause(withoutMarks(bold.at(-1) ?? plain));
  const result = told.replace(ASIDE, "");
  if (result === told && /\d:\d/.test(told)) return null;
  const sum = result === told ? "" : (SUM.exec(result)?.[0] ?? "").replace(/[$,\s]{1,9}$/, "");
  if (/\d\s{0,3}[-+*/×÷]\s{0,3}\$?\d/.test(sum)) return sum;
  const [, first] = result === told ? [] : (FIRST.exec(result) ?? []);
  return (first ?? chosen(result.split(result === told ? /$/ : /[,;]\s/, 1)[0] ?? ""))?.replace(/^\\?\$/, "") ?? null;
}

/** The result of an equation, unless it is a formula that closes here. */
const FIRST = new RegExp(`^(${AMOUNT})(?!\\$|\\d)`, "i");
/** A number with these words describes a circumstance of the answer. */
const CIRCUMSTANCE =
  /(?:\b(?:at|in|with|from|after|every|per|each of|out of|all of|over|within|during|than|(?<!\b(?:needs?|needed|has|have|had|going|able|wants?|willing|ready|expected|supposed|likely|gets?|got|would like|managed) )to \p{L}{2,15}|by \p{L}{2,15}ing|(?:for|of)(?<!total of|sum of|cost of|price of|average of|rest of|amount of|number of|profit of))(?:\s(?:the|his|her|their|its|all|these|those|only|just|every|each|another))?|\p{L}{2,15}ing)\s{1,2}$/iu;
const EACH = /^\S{1,40}\s(?:each|apiece|per|a piece)\b/i;
const PART_OF = /\d\s(?:\p{L}{1,15}\s){0,2}of\s(?:the\s)?$/u;
const MINUS = /(?<!\d\s?)\b(?:minus|negative)\s$/i;
/** How many characters before and after a number are checked. */
const BESIDE = 60;

function chosen(clause: string): string | null {
  let [last, free]: { number: string; isOpen: boolean }[] = [];
  // One at a time: a line may consist of numbers.
  for (const { 0: number, index } of clause.matchAll(NUMBER)) {
    const before = clause.slice(Math.max(0, index - BESIDE), index);
    const after = clause.slice(index + number.length, index + number.length + BESIDE);
    const isPrice = /^\\?\$/.test(number) && /\b(?:for|of)\s{1,2}$/i.test(before) && !EACH.test(`${number}${after}`);
    const isCircumstance = (CIRCUMSTANCE.test(before) && !isPrice) || PART_OF.test(before);
    last = { number: MINUS.test(before) ? `-${number}` : number, isOpen: isOpen(before, after) };
    if (!isCircumstance) free = last;
  }
  const found = free ?? (clause.includes(DENIED) ? undefined : last);
  return found === undefined || found.isOpen ? null : found.number;
}
