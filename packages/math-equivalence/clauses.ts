/**
 * Finds the part of a sentence that gives its answer. A clause that explains, compares, concedes, verifies or quotes
 * somebody else is removed if a value is left without it. Linear in the text: every repetition is bounded.
 */

/** A number, a masked formula, or the place of a denied one. */
const VALUE = /[\d\ue000\ue100-\uf8ff]/;
/** Up to the next comma that is not a thousands separator, or to a word of conclusion. */
const CLAUSE = "(?:(?!\\b(?:so|thus|therefore|hence)\\b)(?:[^,;=]|,(?=\\d))){0,300}";
const MASK = "[\\ue100-\\uf8ff]";

/** Other people whose statements are not the reply's own. */
const OTHERS =
  "(?:the|my|your|our|an?)?\\s?(?:answer (?:key|sheet)|key|text ?book|book|solutions? manual|teacher|reference(?: answer| solution)?|calculator|others|some(?: people| students)?|many(?: people| students)?|(?:one|you|someone|people|students) (?:might|may|could|would))";
const QUOTES = `${OTHERS}\\s(?:\\w{1,10}\\s){0,2}?(?:says?|said|claims?|claimed|states?|stated|suggests?|lists?|expects?|thinks?|thought|guess|answer|shows?|gives?|has)\\b`;

const FIRST_SIDES = [
  // `Although I said 18, `
  `^[^\\p{L}\\d\\ue100-\\uf8ff]{0,4}(?:although|though|even though|while|whereas|despite|unlike|instead of|compared (?:to|with)|contrary to|even if|since|because|given)\\b(?:[^,;]|,(?=\\d)){0,300},\\s`,
  // `, and we can verify that 12 - 7 = 5`
  "(?:[,;:(–—-]|\\sand|\\sas)\\s{1,2}(?:and\\s|as\\s|but\\s)?(?:(?:(?:we|you|one|i)(?:\\s(?:can|could|may|should))?|let['’]?s|let us|to)\\s(?:\\w{1,10}ly\\s|also\\s|now\\s)?)?(?:verify|check|confirm|recall|note|observe|verifying|checking|confirming|recalling|noting|observing|indeed|verified by|check(?:ed)? by|confirmed by)\\b.{0,600}$",
  `(?:[,;(–—-]|\\sbut|\\sand)?\\s{0,2}(?:but|and|yet|while|whereas|as|where|even though|although|though)?\\s?${QUOTES}.{0,600}$`,
  // `, contrary to the expected 18`
  `[,;(–—-]?\\s(?:although|though|even though|even if|whereas|despite|contrary to|unlike|in contrast to|compared (?:to|with)|versus|vs\\.?|up from|down from|in place of|regardless of)\\s${CLAUSE}`,
  `,?\\s(?:(?:the|an?)\\s)?expected\\s(?:answer|value|result)\\b${CLAUSE}`,
  // `, attained at`
  "(?:[,;(]\\s?|\\s(?=which|and))(?:which\\s|and\\s)?(?:it\\s|this\\s|is\\s|are\\s){0,2}(?:attained|achieved|reached|occurring|occurs?|happens|realized|with equality|equality (?:holds|occurs))\\b.{0,600}$",
  // `, who is 18`
  `,\\s(?:who|whose|whom)\\b${CLAUSE}`,
  // `, which is 2 more than last week's $18`
  `,\\s(?:and\\s)?(?:(?:which|that|this|it)\\s(?:is|was|are|were)\\s)?(?:(?:only|just|about|exactly|almost|a|an)\\s)?(?:\\\\?\\$?[\\d.]{1,20}%?\\s(?:\\p{L}{1,15}\\s){0,3}?)?(?:more|less|\\p{L}{2,9}er)\\sthan\\b${CLAUSE}`,
  `,\\swhich\\s(?:is|was|are|were)\\s${CLAUSE}(?:\\sas (?:many|much|\\p{L}{2,10}) as\\b|\\s(?:of|from) (?:the )?(?:original|previous|last|her|his|their)\\b)${CLAUSE}`,
  `,\\s(?:only\\s|just\\s|or\\s)?\\\\?\\$?[\\d.]{1,20}%?\\s(?:times|percent|of)\\s(?:what|as (?:many|much)|the (?:original|amount))\\b${CLAUSE}`,
  // `35 flowers: 10 yellow, 18 purple and 7 green`
  "(?<=\\d\\s(?:\\p{L}{1,15}\\s?){1,6}):\\s\\\\?\\$?\\d[^=:]{0,60}(?:,|\\sand)\\s\\\\?\\$?\\d[^=:]{0,200}$",
  // `, a saving of $2`
  `,\\s(?:(?:an?|the|which is an?)\\s)?(?:\\p{L}{1,15}\\s){0,2}?(?:savings?|discount|increase|decrease|drop|rise|reduction|change|loss|gain|raise|tip|bonus|improvement)\\s(?:of|from|over)\\b${CLAUSE}`,
  `,\\s(?:saving|including|excluding|not counting|of which|having|using|with)\\s${CLAUSE}`,
].map((source) => new RegExp(source, "iu"));

const LAST_CLAUSE =
  /^.*(?:\b(?:so|thus|therefore|hence|meaning|means|giving|leaving|but|however)\b|=>|->|[→⇒])(?=.*[\d\ue000\ue100-\uf8ff])/i;
const REASON = /,?\s(?:because|since|given that|due to|seeing that|as(?!.*=))\s.*$/i;
const REASON_OF_FORMULA =
  /,?\s(?:because|since|given that|due to|seeing that)\s.*$|,\s(?:as|for (?:if|otherwise|when))\s.*$/i;
const BRACKET = /[([][^()[\]]{0,200}[)\]]/g;
/** `more than last week's $18`; a bound, `more than $18`, stays. */
const THAN = /\sthan\s(?!\\?\$?\d|[\ue100-\uf8ff])(?:[^,=]|,(?=\d)){0,300}$/i;
/** `$f(x) = 5$ for all $x > 2$` */
const FOR_ALL = new RegExp(
  `(?<=(?:${MASK}|\\d),?)\\s(?:for|when|whenever|where|if|provided(?: that)?|with|at)\\s(?:(?:all|every|any|each|some|real|positive|integers?)\\s){0,3}${MASK}.{0,600}$`,
  "iu",
);

/** A sentence without its side remarks. */
export function withoutAsides(sentence: string): string {
  return leaveOut(sentence, FIRST_SIDES);
}

/** The concluding clause of such a sentence, without reasons and brackets. */
export function lastClause(sentence: string): string {
  return leaveOut(sentence, [LAST_CLAUSE, REASON, BRACKET, THAN]);
}

/** The same for masked formulas; `isRelation` tells which masks stand for an inequality. */
export function lastClauseOfFormulas(sentence: string, isRelation: (mask: string) => boolean): string {
  const told = leaveOut(sentence, [LAST_CLAUSE, REASON_OF_FORMULA, BRACKET, THAN]);
  const [last = ""] = told.match(new RegExp(`${MASK}(?=,?\\s\\p{L})`, "u")) ?? [];
  return last !== "" && isRelation(last) ? told : leaveOut(told, [FOR_ALL]);
}

function leaveOut(sentence: string, sides: readonly RegExp[]): string {
  let told = sentence;
  for (const side of sides) {
    const rest = told.replace(side, " ");
    if (VALUE.test(rest)) told = rest;
  }
  return told;
}

/** Whether a sentence only repeats what others say. */
export function isQuotation(sentence: string): boolean {
  return QUOTATION.test(sentence);
}

const QUOTATION = new RegExp(`^[^\\p{L}\\d]{0,4}(?:but\\s|and\\s|however,?\\s)?${QUOTES}`, "iu");
