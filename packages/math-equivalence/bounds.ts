/**
 * Recognises numbers that their context leaves open: a bound, the end of a range, a term of a sum that is not computed.
 */

const BOUND =
  /\b(?:(?:less|more|fewer|greater|higher|lower) than(?: or equal to)?|under|below|above|over|at (?:least|most)|up to|between|exceed(?:s|ing)?|(?:minimum|maximum) of|as (?:many|much|few|little) as)\s{1,2}\\?\$?$/i;
const TERM =
  /(?:\b(?:twice|double|triple|thrice|quadruple|half(?: of)?|(?:third|quarter|fourth|fifth|tenth|half)s? of|(?:root|square|cube) of)(?: the)?|\d%? ?of(?<=%.{1,3})|\d\)?(?: [a-z]{1,12})?\s?(?:[+*×÷^]|\s-(?=\s)|times|plus|minus|divided by|multiplied by))\s{0,2}\\?\$?$/i;
const CONTINUES =
  /^\s?(?:(?:[+*×÷]|times|plus|minus|divided by|multiplied by)\s?\\?\$?\d|\^|[²³]|(?:squared|cubed|halves|thirds|fourths|fifths|sixths|eighths|tenths)\b)/i;
const END_OF_RANGE = /(?:\d(?:\s[a-z]{1,12})?(?:-|\sto\s)|\bbetween\s\S{1,20}(?:\s[a-z]{1,12})?\sand\s)\\?\$?$/i;
const EITHER_BEFORE = /\d(?:\s[a-z]{1,15})?,?\sor\s(?:\w{1,12}\s)?\\?\$?$/i;
const EITHER_AFTER = /^(?:\s[a-z]{1,15})?,?\sor\s(?:\w{1,12}\s)?\\?\$?\d/i;
const START_OF_RANGE = /^(?:-|(?:\s[a-z]{1,12})?\sto\s)\\?\$?\d/i;
/** "rises from 12 to 18" names its end. */
const CHANGES =
  /\b(?:r[io]s\w{0,2}|increas\w{1,3}|go|goes|went|gr[eo]w\w?|drop\w{0,4}|falls?|fell|fallen|decreas\w{1,3}|chang\w{1,3}|moved?s?|rais\w{1,3}|reduc\w{1,3}|climb\w{0,3}|jump\w{0,3}|up|down|improv\w{1,3}) from\b[^.;]{0,30}$/i;

/** Whether the text before and after a number shows that it is not a value by itself. */
export function isOpen(before: string, after: string): boolean {
  if (EITHER_BEFORE.test(before) || EITHER_AFTER.test(after)) return true;
  if (BOUND.test(before) || TERM.test(before) || CONTINUES.test(after)) return true;
  return (END_OF_RANGE.test(before) && !CHANGES.test(before)) || START_OF_RANGE.test(after);
}
