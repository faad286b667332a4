/**
 * The scorer `choice`: whether the letter that the model chose is the reference's.
 *
 * Invariants. Linear in the output: every repetition is bounded, and the text around a letter is read from a bounded
 * slice. A letter that is a word of its sentence (a, I) is not a choice, nor is a letter that its sentence does not
 * mean (choice-doubts.ts). If two letters are joined by "or", "and" or a comma, none is chosen, and no other place is
 * searched.
 */

import { afterCorrections, lastBox, lastTagged, plainTypography } from "@rollcall/math-equivalence";
import * as z from "zod";
import { isMeant } from "./choice-doubts.ts";
import { MalformedReferenceError, scorer } from "./scorer.ts";

/** 1 if the letter that the model chose is the reference's. `chosenLetter` lists where it is searched. */
export const choice = scorer(
  z.strictObject({
    /** The possible letters. */
    choices: z
      .string()
      .regex(/^[A-Z]{2,26}$/, "is two to 26 capital letters")
      .default("ABCDEFGHIJ"),
  }),
  ({ choices }) =>
    (output, reference) => {
      const wanted = plainTypography(reference)
        .trim()
        .replace(/^\(?([A-Za-z])\)?[.:]?$/, "$1")
        .toUpperCase();
      if (wanted.length !== 1 || !choices.includes(wanted)) {
        throw new MalformedReferenceError(`${JSON.stringify(reference.slice(0, 40))} is not one of ${choices}`);
      }
      return chosenLetter(plainTypography(output.replace(CIRCLED, bracketed)), choices) === wanted ? 1 : 0;
    },
);

/** `Ⓒ`, `ⓒ`, `⒞` and `🄒` */
const CIRCLED = /[\u249c-\u24e9]|[\u{1f110}-\u{1f189}]/gu;

function bracketed(sign: string): string {
  const letter = sign.normalize("NFKC").replace(/[()]/g, "");
  return /^[A-Za-z]$/.test(letter) ? `(${letter})` : sign;
}

/** A capital letter; null if several are named and none is chosen; undefined if none is named. */
type Choice = string | null | undefined;

/**
 * Searches, in this order: the last `\boxed{…}`; the last `<answer>…</answer>`; the last announcement ("answer is",
 * "option:"); the last "I choose"; a last line of one letter; the first mark, `(B)`, `B.`, `B) because …`, unless the
 * options are listed; a subject of "is correct"; an object of "is left" or "matches"; then the last of these: a letter
 * in brackets or bold, one alone on a line, one that begins the last line, or one that ends the output, "so it is B."
 */
function chosenLetter(output: string, choices: string): Choice {
  const tagged = lastTagged(output);
  const contents = [lastBox(output), tagged].filter((content) => content !== null);
  const read = contents.map((content) => letterAlone(content, choices));
  const found = read.find((letter) => letter !== undefined);
  if (found !== undefined) return found;
  const text = withoutMarks(tagged ?? output).trim();
  if (isList(text, choices)) return null;
  const corrected = afterCorrections(text, /[A-Z]/);
  const letter = corrected === text ? undefined : letterOfProse(withoutDenied(corrected), choices);
  return letter === undefined ? letterOfProse(withoutDenied(text), choices) : letter;
}

/** The letter in a box or a tag. */
function letterAlone(content: string, choices: string): Choice {
  const text = withoutMarks(content).trim();
  if (isList(text, choices)) return null;
  return INDEXED.test(content) ? undefined : last(places(withoutDenied(text), WHOLE), choices);
}

/** Whether a text consists only of letters, of which several differ: "B; C", "A\nB", "BC". */
function isList(text: string, choices: string): boolean {
  if (text.length > AROUND || !/^(?:\W{0,9}(?:(?:and|or|also|plus|as well as)\b|[A-Z]))+\W{0,9}$/.test(text))
    return false;
  const letters = text.match(/[A-Z]/g) ?? [];
  return new Set(letters).size > 1 && letters.every((letter) => choices.includes(letter));
}

function letterOfProse(text: string, choices: string): Choice {
  const lastLine = text.lastIndexOf("\n") + 1;
  const ways = [
    () => decisions(text, ANNOUNCED),
    () => decisions(text, CHOSEN),
    () => places(text, ALONE, lastLine),
    () => (listsOptions(text, choices) ? [] : places(text, OPENING)),
    () => subjects(text),
    () => places(text, LEFT),
    () => endings(text, lastLine),
  ];
  for (const way of ways) {
    const found = last(way(), choices);
    if (found !== undefined) return found;
  }
  // "The answer might be C" counts if there is no better answer.
  return last(decisions(text, ANNOUNCED), choices, true);
}

/** The place of a named letter, and the text around it. */
interface Place {
  readonly letter: string;
  readonly at: number;
  readonly before: string;
  readonly after: string;
}

/** How many characters around a letter are examined. */
const AROUND = 200;
/** Of the places of one kind, only the last ones are examined. */
const MOST_PLACES = 32;

/** The letter that a match in `text` names; the match begins `from` characters after the start of the text. */
function place(text: string, match: RegExpExecArray, from = 0): Place {
  const letter = match.slice(1).find((group) => group !== undefined) ?? "";
  const at = from + match.index + match[0].lastIndexOf(letter);
  return { letter, at, before: text.slice(Math.max(0, at - AROUND), at), after: text.slice(at + 1, at + AROUND) };
}

/** The places where a pattern names a letter, from an index of the text on. */
function* places(text: string, pattern: RegExp, from = 0): Iterable<Place> {
  for (const match of text.slice(from).matchAll(pattern)) yield place(text, match, from);
}

/** The last of many places. */
function ending(named: Iterable<Place>): Place[] {
  const kept: Place[] = [];
  // One at a time: a reply may consist of letters only.
  for (const each of named) if (kept.push(each) > MOST_PLACES) kept.shift();
  return kept;
}

/** The last named letter that is meant. A guess counts only if no other letter is meant. */
function last(named: Iterable<Place>, choices: string, guessed = false): Choice {
  const meant = ending(named).filter(
    ({ letter, before, after }) => choices.includes(letter.toUpperCase()) && isMeant(before, after, guessed),
  );
  if (guessed && new Set(meant.map(({ letter }) => letter.toUpperCase())).size > 1) return null;
  const found = meant.reduce<Place | undefined>((a, b) => (a === undefined || b.at >= a.at ? b : a), undefined);
  if (found === undefined) return undefined;
  const letter = found.letter.toUpperCase();
  const beside = [JOINED_AFTER.exec(found.after)?.[1], JOINED_BEFORE.exec(found.before)?.[1]];
  return beside.some((other) => other !== undefined && other !== letter && choices.includes(other)) ? null : letter;
}

/** A noun in front of a letter: "Option C". */
const NOUN =
  "(?:(?:[Cc]orrect|[Ff]inal|[Aa]nswer)\\s)?(?:[Oo]ption|OPTION|[Cc]hoice|CHOICE|[Aa]nswer|ANSWER|[Aa]ns|[Ll]etter)";
/** A capital that begins a sentence, as in "A car", is followed by a word other than these. */
const AFTER_CHOICE = "because|since|as|for|with|and|but|or|which|is|due|given|based";
const CAPITAL = `([A-Z])(?![\\w+#]|['’-]\\w)(?!(?<=[AI])\\s{1,3}(?!(?:${AFTER_CHOICE})\\b)[a-z])`;
/** A lower-case letter only at the end of a clause. */
const SMALL = `([a-z])(?![\\w+#]|['’.-]\\w)(?=\\s{0,3}(?:[.):;,!"'”’]|\\n|$))`;
/** A letter followed by a question mark is not chosen. */
const LETTER = `(?:\\(\\s?([A-Za-z])\\s?\\)|\\[\\s?([A-Za-z])\\s?\\]|${CAPITAL}|${SMALL})(?!\\)?\\s?\\?)`;

const DENIED_BEFORE = new RegExp(
  "(?:n['’]t|\\b(?:cannot|not|never|eliminate[ds]?|eliminating|rule[ds]? out|ruling out|reject(?:s|ed)?|exclude[ds]?|rather than|instead of" +
    `|wrong:|incorrect:))\\s(?:be\\s)?(?:(?:the|that)\\s)?(?:${NOUN}\\s)?(?:\\([A-Z]\\)|[A-Z](?![\\w+#]|['’-]\\w))(?:,?\\sbut\\s(?:rather\\s)?)?`,
  "gi",
);
/** Several letters: "A, B and D". */
const LETTERS = "\\(?[A-Z]\\)?(?:,?\\s(?:and|or|nor)\\s\\(?[A-Z]\\)?|,\\s\\(?[A-Z]\\)?){1,9}(?![\\w+#])";
const SEVERAL_DENIED = new RegExp(
  `(?<!\\w)${LETTERS}\\s(?:are|were)(?:n['’]t|\\s(?:all\\s|both\\s|clearly\\s)?(?:not|false|wrong|incorrect|tempting|traps|distractors|out|eliminated|ruled\\sout))\\b` +
    `|\\b(?:eliminat(?:e[ds]?|ing)|rul(?:e[ds]?|ing)\\sout|reject(?:ed|ing)?|exclud(?:e[ds]?|ing)|discard(?:ed|ing)?|neither)\\s(?:both\\s)?(?:(?:options|choices|answers)\\s)?${LETTERS}`,
  "gi",
);
const DENIED_BEHIND =
  /(?<!\w)(?:\([A-Z]\)|[A-Z])[.:)]?\s(?:is|was)(?:n['’]t\b|\s(?:also\s|clearly\s|simply\s)?(?:not\b(?! only)|false|wrong|incorrect|a trap|tempting)\b)/g;

/** Removes letters that are denied: "not B but", "rather than B", "(B) is wrong". */
function withoutDenied(text: string): string {
  return text
    .replace(SEVERAL_DENIED, "")
    .replace(DENIED_BEHIND, "")
    .replace(DENIED_BEFORE, (denial) =>
      /(?<![A-Za-z])[A-Z](?![A-Za-z])\)?(?:,?\sbut\s(?:rather\s)?)?$/.test(denial) ? "" : denial,
    );
}

const JOINT = "(?:[,;]?\\s{0,2}\\b(?:or|and|plus|as\\swell\\sas)(?:\\salso|\\smaybe)?\\s|[,/&+])\\s{0,2}";
const JOINED_AFTER = new RegExp(
  `^[.)\\]]?\\s{0,2}(?:${JOINT}|;\\s{0,2})(?:${NOUN}\\s)?\\(?([A-Z])\\)?(?=\\s{0,3}(?:[.,;:!)/]|\\n|$|(?:or|and|are)\\b))`,
);
const JOINED_BEFORE = new RegExp(`(?<!\\w)([A-Z])\\)?\\s{0,2}${JOINT}(?:${NOUN}\\s)?\\(?$`);

/** A text that is a letter, possibly followed by the option's text. */
const WHOLE = new RegExp(
  `^(?:[Tt]he\\s)?(?:${NOUN}\\s{0,2}(?::|is\\b)?\\s{0,2})?${LETTER}(?!\\s{0,3}(?:[=<>+*/^]|\\\\(?!q?quad)[a-zA-Z]))`,
  "g",
);
/** `C_2` */
const INDEXED = /^[A-Za-z]_[\w{]/;
/** A letter at the beginning of a text. */
const OPENING = new RegExp(
  `^[^\\w(]{0,3}(?:${NOUN}\\s{0,2}${LETTER}(?=\\)?\\s{0,2}(?:[).:,;!-]|\\n|$|because\\b|since\\b))` +
    "|\\(([A-Za-z])\\)|([A-Z])(?:[).:;](?!\\w)|\\s{1,3}[-—]\\s|,(?<!I,)|\\s{0,3}(?:\\n|$))|([a-z])(?:[).]\\s|$))",
  "g",
);
const ALONE = /^[^\w\n?]{0,4}([A-Za-z])[^\w\n?]{0,4}$/gm;
const BRACKETED = /\(([A-Z])\)/g;
const ITEM = /^[^\w\n]{0,3}([A-Z])[).:](?!\w)/gm;

const SO =
  "none\\sother\\sthan|therefore|thus|hence|then|clearly|indeed|definitely|obviously|simply|still|(?:most\\s)?likely|probably";
/** An announcement of the answer, up to the letter. */
const ANNOUNCED = new RegExp(
  "\\b(?:ans|answer|choice|option|solution|selection|(?:correct|right|best)\\s(?:one|statement|letter))\\b" +
    "[\"'”’]?(?:\\s(?:to|for|of|here|among)\\b[^.:?!\\n]{0,80}|,\\s\\w{1,12},)?\\s{0,3}" +
    `(?:(?:is|are|was|(?:should|must|would|will|has\\sto|seems\\sto)(?:,?\\s(?:${SO}),?)?\\sbe)\\b` +
    "\\s{0,3}[:=]?|[:=]|-{1,2}\\s|[—→])\\s{0,3}" +
    `(?:(?:${SO}),?\\s)?` +
    "|\\bans\\.\\s{1,3}" +
    "|(?:réponse|respuesta|resposta|risposta|antwort)(?:\\s(?:correcta|correta|corretta|correcte|juste|exacte|giusta|certa))?\\s{0,3}" +
    "(?::|(?:est|es|é|è|ist)(?=[\\s:]):?)\\s{0,3}(?:(?:donc|entonces|portanto|quindi|also|daher)\\s)?(?:(?:l[aeo]|el|il|[ao]|die)\\s(?:(?:letra|opci[oó]n|opção|lettre|option|lettera|opzione)\\s)?)?" +
    "|ответ\\s{0,3}[:—-]?\\s{0,3}|(?:정답|답)[은는이]?\\s{0,3}:?\\s{0,3}|(?:答え|正解)[はわ:]?\\s{0,3}" +
    "|(?:答案|正解|[选選])[項项择擇]?[是为為は]?\\s{0,3}:?\\s{0,3}",
  "gi",
);
/** Words that choose the letter after them. */
const CHOSEN =
  /(?<!n['’]t\s|\bnot\s|\bnever\s)\b(?:(?:I['’]d|I\swould)\ssay|choose|chose|pick|picked|select|selected|go\swith|going\swith|opt\sfor|settle\son)\s{1,3}/gi;
const DECIDED = new RegExp(`(?:[Tt]he\\s)?(?:${NOUN}\\s{0,2}:?\\s{0,2})?["'“‘]?${LETTER}`, "y");

function* decisions(text: string, pattern: RegExp): Iterable<Place> {
  for (const { 0: words, index } of text.matchAll(pattern)) {
    DECIDED.lastIndex = index + words.length;
    const match = DECIDED.exec(text);
    if (match !== null) yield place(text, match);
  }
}

const IS_CORRECT =
  /\s(?:is|was|must be|would be|has to be)\s(?:(?:clearly|therefore|indeed|definitely|thus|the|most|only|my)\s){0,3}(?:correct|right|best|answer|choice|option|better (?:one|answer|choice|option))\b/gi;
const SUBJECT = /(?<!\w)(?:\(([A-Za-z])\)|([A-Z])[).:]?)(?:\s\([^()\n]{1,60}\))?\s?$/;
/** Words that question or deny the letter after them. */
const ASKED = new RegExp(`\\b(?:nor|neither|whether|if|not|that)\\s(?:${NOUN}\\s)?$`, "i");

/** The letters that are called correct. */
function* subjects(text: string): Iterable<Place> {
  for (const { index } of text.matchAll(IS_CORRECT)) {
    const from = Math.max(0, index - AROUND);
    const match = SUBJECT.exec(text.slice(from, index));
    const named = match === null ? undefined : place(text, match, from);
    if (named !== undefined && !ASKED.test(named.before.replace(/\($/, ""))) yield named;
  }
}

/** Whether the text lists the options, each on its own line. */
function listsOptions(text: string, choices: string): boolean {
  let listed = "";
  for (const [, letter = ""] of text.matchAll(ITEM)) {
    listed += letter;
    if (listed.length > 1) break;
  }
  return listed === choices.slice(0, 2);
}

/** Phrases in front of the last remaining letter, or of the letter that a result matches. */
const LEFT = new RegExp(
  "\\b(?:left\\swith|leav(?:es?|ing)(?:\\sus\\swith)?|remain(?:s|ing)(?:\\s(?:option|choice|answer))?(?:\\sis|:)?|match(?:es|ing)|corresponds?\\s(?:to|with)|fits)" +
    `\\s(?:only\\s|just\\s)?(?:the\\s)?(?:${NOUN}\\s)?${LETTER}` +
    `|\\b[Oo]nly\\s(?:${NOUN}\\s)?${LETTER}(?=\\)?\\s(?:remains?|is\\sleft|fits|works|matches|satisfies)\\b)` +
    `|(?<!\\w)${LETTER}(?=\\)?\\s(?:it\\sis\\b|(?:fits|matches|works)(?:\\sbetter|\\sbest)?\\s?[.!\\n]))`,
  "g",
);

const IT_IS = new RegExp(`\\b(?:[Ii]t(?:['’]s|\\sis)|must\\sbe)\\s(?:${NOUN}\\s)?${LETTER}`, "g");
const CLOSING = /(?<!\w)([A-Z])[\s.!)"'”]{0,5}$/g;
/** A conclusion in front of the last letter of an output. */
const CONCLUDES = new RegExp(
  `(?:\\b(?:is|it['’]s|therefore|thus|hence|so|(?:must|should|would|to)\\sbe)\\b,?|[a-z]{2}\\s?:|->|→)\\s{1,3}(?:the\\s)?(?:${NOUN}\\s)?\\(?$`,
  "i",
);

/** Letters without a word that chooses them: the last of them may be the choice. */
function* endings(text: string, lastLine: number): Iterable<Place> {
  yield* ending(places(text, BRACKETED));
  yield* ending(places(text, ALONE));
  yield* ending(places(text, IT_IS));
  const lineBefore = text.slice(0, lastLine).trimEnd();
  const isItem = lineBefore.slice(lineBefore.lastIndexOf("\n") + 1).search(ITEM) === 0;
  if (!isItem) yield* places(text, ITEM, lastLine);
  for (const named of places(text, CLOSING, Math.max(0, text.length - AROUND))) {
    if (CONCLUDES.test(named.before)) yield named;
  }
}

const LATEX = /\\(?:text[a-z]{0,6}|math[a-z]{0,6}|f?boxed|bf|rm)(?![a-zA-Z])\s?|\\[()[\]]|[{}$]/g;
/** A letter in bold, also with its noun or the text of its option. */
const BOLD = new RegExp(
  `(?:\\*{2,3}|__|\`)(?:${NOUN}\\s)?\\(?([A-Z])(?:[).:]{0,2}(?:\\*{2,3}|__|\`)|[).:]{1,2}(?=[\\s*_]))`,
  "g",
);

/** End tokens of a reply that some servers do not remove. */
const SPECIAL = /<\/s>|<\|[a-z_]{1,20}\|>/g;

/** Removes the marks of LaTeX and Markdown; a letter in bold gets brackets. */
function withoutMarks(text: string): string {
  return text
    .replace(SPECIAL, "")
    .replace(LATEX, "")
    .replace(/\[{2}([A-Za-z])\]{2}/g, "[$1]")
    .replace(BOLD, "($1) ")
    .replace(/^[ \t#>]+|[*`]/gm, "")
    .replace(/[ _]{2,}|_/g, " ")
    .replace(/(?<=\)) (?=[,.;:])/g, "");
}
