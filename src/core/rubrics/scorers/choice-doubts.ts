/**
 * Whether a sentence that names a letter states that it is the answer.
 *
 * It does not if it denies or doubts that, is a question or a condition ("if …"), or is about other people ("many
 * students pick A") or a second choice. Invariant: the given slices are bounded, and every pattern is linear in them.
 */

/** Ends of a sentence. */
const SENTENCE_END = /[.!?;](?=[\s)"'”’])|\n/g;
/** Words that turn against the text before them, or conclude from it. */
const TURN =
  /\s(?:but|however|yet|so|although|though|while|whereas)\b,?|(?:^|[,;:]|\sand)\s{0,2}(?:therefore|thus|hence|consequently)\b,?/gi;
/** A comma before the main clause: "While many pick A, the correct answer is C". */
const MAIN_CLAUSE =
  /,\s(?=(?:then\s|and\s)?(?:(?:the|my|our)\s(?:\w{1,12}\s){0,2}(?:answer|option|choice|solution|one)\b|(?:I|we|it|this|that|only|option|choice|answer)\b))/gi;
const LETTER_AFTER_COMMA = /,\s(?:\(|(?:option|choice|answer|letter)\s\(?)?$/i;
const SAYS_MORE = /^\)?\s(?:is|was|must|has|fits|works|matches|remains)\b/;

const NAMES = "answer|option|choice|selection|solution|guess|pick|candidate|letter|one|statement";
const OTHERS = [
  "\\b(?:students?|people|learners|beginners|classmates|test[- ]takers|nobody|no[ -]one|someone|somebody)\\b",
  "\\b(?:many|most(?!\\s(?:likely|probable|plausible|reasonable|logical|appropriate|suitable|accurate|fitting)\\b)|some|few|others|they|he|she)\\s(?:\\w{1,12}\\s)?(?:would|might|may|could|will|say|said|think|thought|" +
    "pick(?:ed)?|choose|chose|select(?:ed)?|claim(?:ed)?|argue[ds]?|believe[ds]?|go|went|answer(?:ed)?|tend)\\b",
  "\\b(?:user|prompt|hint|friend|teacher|professor|colleague|model)\\s(?:says?|said|claim(?:s|ed)|tells|told|suggest(?:s|ed)|thinks?)\\b",
  "\\b(?:common(?:ly)?|typical(?:ly)?|popular|frequent(?:ly)?|often|usual(?:ly)?|sometimes)\\s(?:\\w{1,12}\\s)?" +
    `(?:mistakes?|errors?|traps?|misconception|distractor|pitfall|ch[oe]+sen?|pick(?:ed)?|select(?:ed)?|said|thought|${NAMES})\\b`,
  "\\b(?:tempt(?:ed|ing|s|ation)?|distractors?|mistakes?|misconceptions?|pitfalls?|traps?)\\b",
];
const DOUBTS = [
  "(?<!\\b(?:no|any|a|without|beyond)\\s)\\bdoubt(?:s|ed|ful)?\\b",
  "\\b(?:unlikely|improbable|impossible)\\b",
  "(?:\\b(?:not|never|cannot|hardly)|n['’]t)\\s(?:\\w{1,12}ly\\s)?(?:be\\s)?(?:think|believe|say|suppose|agree|certain|sure|convinced|" +
    "true|clear|likely|plausible|the case|cho[os]|pick|select|go\\b|going|opt|settl|recommend|want|suggest|advis|consider|match|fit|" +
    "correspond|mean|imply|possible|enough|know|leav|have to be)[^,]*$",
  "\\b(?:deny|denies|disagree|refuse|reject|avoid|against)\\b[^,]*$",
  "\\b(?:wrong|incorrect|an error|false|foolish)\\sto\\b|\\b(?:wrongly|incorrectly|falsely|erroneously|mistakenly)\\b",
  "\\b(?:initially|originally|previously|at first|alternatively|otherwise|thought|assumed|guessed)\\b",
];
/** Words of a guess. The letter still counts if it is the only one. */
const GUESSES = "\\b(?:unsure|uncertain|perhaps|maybe|possibly|might|may|could)\\b";
/** "The wrong answer is", "second choice:", "the next best option is". */
const NOT_THE_ANSWER =
  "\\b(?:second|2nd|third|next|runner|alternat(?:iv)?e|another|other|backup|fallback|worst|worse|wrong|incorrect|false|bad|poor|" +
  "weak|weaker|least|less|inferior|rejected|eliminated|discarded|tempting|previous|first|initial|old|would-be)" +
  `(?:[\\s-](?!(?:${NAMES})\\b)[\\w-]{1,12}){0,2}[\\s-](?:${NAMES}|up|best)s?\\b(?!.*\\b(?:${NAMES})\\b)`;
const UNMEANT = new RegExp([...OTHERS, ...DOUBTS, NOT_THE_ANSWER].join("|"), "i");
const GUESSED = new RegExp(GUESSES, "i");

const SUPPOSES = /\b(?:if|unless|whether|suppos(?:e|ing))\b|^[\W]{0,3}(?:had|were)\b/i;
const WOULD = /\b(?:would|were)\b/i;

/** Ends of the text about a letter. */
const TAIL_END = /[.!?;,(\n]|\b(?:because|since|as|while|whereas|and|but|due)\b/;
const SAID_OF_IT =
  /^[).:\]]{0,2}\s(?:is|was|would|will|seems|looks|might|may|could|comes|came)\b.*\b(?:if|unless|what|students?|people|many|common(?:ly)?|typical|tempting|traps?|distractors?|mistakes?|wrong|incorrect|false|impossible|unlikely|often|second|next|close|alternative|backup|runner)\b|^\)?(?:\s(?:at first|initially|originally|if|unless|only if)|:\s(?:wrong|incorrect))\b/i;

/** `before` and `after`: the text around the letter. `guessed`: whether a guess, or an answer with "if", counts. */
export function isMeant(before: string, after: string, guessed = false): boolean {
  const [said = "", end = ""] = /^(?:[^.!?\n]|[.!?](?!\s|$)){0,200}(.?)/.exec(after) ?? [];
  if (end === "?") return false;
  const sentence = behind(SENTENCE_END, before);
  const clause = behind(TURN, sentence);
  const main = LETTER_AFTER_COMMA.test(clause) && SAYS_MORE.test(after) ? "" : behind(MAIN_CLAUSE, clause);
  const wouldBe = WOULD.test(main) || /^\)?\s(?:would|were)\b/.test(after);
  const condition = wouldBe ? sentence : clause;
  const supposed = SUPPOSES.test(condition) && (wouldBe || !guessed || /\bsuppos/i.test(condition));
  if (supposed || (wouldBe && /\b(?:if|unless)\b/i.test(said))) return false;
  if (guessed && /\b[B-HJ]\b/.test(said)) return false;
  const tail = after.slice(0, tailEnd(after));
  return !UNMEANT.test(main) && (guessed || !GUESSED.test(main)) && !SAID_OF_IT.test(tail);
}

function tailEnd(after: string): number {
  // A full stop or a bracket right after the letter belongs to it.
  const end = after.slice(1).search(TAIL_END);
  return end === -1 ? after.length : end + 1;
}

/** The text after the last match. */
function behind(pattern: RegExp, text: string): string {
  let from = 0;
  for (const { 0: found, index } of text.matchAll(pattern)) from = index + found.length;
  return text.slice(from);
}
