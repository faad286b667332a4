/**
 * Finds the answer in a reply and in a row of a dataset. Each text is read a fixed number of times, by position.
 *
 * In a reply, in this order: the last `\boxed{…}` that closes and is not blank; the last `<answer>…</answer>`; the last
 * line that announces the answer, by `####` or by `Final answer:`; the last line, if it is an answer and not a
 * sentence, or the last formula in it; the last number. A mark without an answer after it is a heading, and the lines
 * above it are searched. A last line that is copied from the question does not count, because questions often contain
 * the value of their answer. The caller removes a model's thoughts first.
 */
import { lastBox, lastTagged } from "./boxes.ts";
import { afterCorrections, DENIED, dropDenied, withoutDenied } from "./denials.ts";
import { lastFormula } from "./formulas.ts";
import { readNumber } from "./number.ts";
import { isHeading, isSentence, isTitle, withoutMarks, withoutPart } from "./prose.ts";
import { toldFormula, toldNumber } from "./told.ts";
import { plainDecimals, plainTypography } from "./typography.ts";

const MARK = "####";
/** `Answer: ` */
const LABEL = /^[A-Za-z ]{1,40}:(?!\/)/;
/** `So 5` */
const CONCLUSION = /^(?:(?:so|thus|hence|therefore|then|finally|it['’]s|that['’]s),?\s|(?:=>|->|[→⇒∴=])\s{0,3})/i;
/** Words before an amount of money. */
const TOLD_AMOUNT = /^[A-Za-z]{2,}\b[^$]{0,60}(?<!\\)\$\s?[\d.]/;
/** `Answer:`, `The final answer is`, or either as a title. */
const ANNOUNCEMENT =
  /^(?:最[终終]|正确)?答案[是为為:]{0,2}\s{0,3}|^(?:[-*•]\s{1,3})?(?:(?:so|thus|hence|therefore),?\s)?(?:(?:the|my|our|your)\s)?(?:final\s(?:answer|result|solution|value)|(?:(?:correct|right|numerical|exact)\s)?answer)(?:\s\([^()]{1,40}\))?(?:(?:\s(?:is|equals))?\s{0,3}(?:[:=]\s{0,3}|$)|\s(?:is|equals)\s{1,3})/i;
/** A value that an explanation follows. */
const EXPLAINED = /^\S{0,40}?\d\S{0,40}?(?=[,;.]?\s(?:since|because|as|for)\b|[.;]\s)/;
/** The answer of a reply to `question`; null if there is none. With `strict` only a box counts. */
export function extractMathAnswer(reply: string, strict = false, question = ""): string | null {
  const said = plainTypography(reply);
  const boxed = lastBox(said);
  if (boxed !== null || strict) return boxed;
  const tagged = lastTagged(said);
  if (tagged === null) return unlessDenied(read(said, plainTypography(question)));
  const isPlain = !tagged.includes("\n") && !isSentence(tagged);
  return (isPlain ? withoutLabel(withoutMarks(tagged)) : unlessDenied(read(tagged))) ?? tagged;
}

function unlessDenied(answer: string | null): string | null {
  return answer?.includes(DENIED) === true ? null : answer;
}

/**
 * The number that a reply without a box, a tag or `####` gives as its answer: where it announces one, else in its last
 * sentence with a number. Null if there is none, or more than one.
 */
export function extractToldNumber(reply: string): string | null {
  const said = plainTypography(plainDecimals(reply));
  const lines = linesOf(afterCorrections(lastTagged(said) ?? said));
  const left = lines.map(withoutDenied);
  const announcement = announced(left);
  if (announcement !== null) return numberIn(announcement);
  const told = FORMULA.test(lines.at(-1) ?? "") ? null : toldNumber(lines);
  return told === null ? readNumber(fromLastLine(left, "") ?? "") : readNumber(told);
}

const FORMULA = /\\[dtc]?frac|\\sqrt|\^/;

/** Ignores words and brackets around a number. */
function numberIn(text: string): string | null {
  const isProse = /\p{L}|[([]/u.test(text) && !FORMULA.test(text);
  const told = isProse ? toldNumber([text]) : null;
  // Words next to a number that no sentence gives as the answer leave it open: "20+3 eggs".
  if (told === null && /\d/.test(text) && /\p{L}/u.test(text) && !text.includes("\\")) return null;
  return readNumber(told ?? text);
}

/** The answer of a row: the content of its last box or tag, the announced answer, or the whole text. */
export function extractMathTarget(answer: string): string {
  const plain = plainTypography(answer);
  return lastBox(plain) ?? lastTagged(plain) ?? announced(linesOf(plain)) ?? afterMark(plain) ?? plain.trim();
}

/** The content of the last box, else the text after the last `####` that is not a heading; null if there is neither. */
export function extractMarkedAnswer(text: string): string | null {
  const plain = plainTypography(plainDecimals(text));
  return lastBox(plain) ?? announced(linesOf(plain), true);
}

function read(text: string, question = ""): string | null {
  const lines = linesOf(afterCorrections(text));
  const left = lines.map(withoutDenied);
  return announced(left) ?? fromLastLine(left, question) ?? toldNumber(lines);
}

/** The lines that are not blank, without code fences and rules. */
function linesOf(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter((line) => !/^(?:```\w{0,20}|[-*_=]{3,200}|)$/.test(line));
}

/** The answer of the last line that announces one; with `marksOnly` only `####` does. */
function announced(lines: readonly string[], marksOnly = false): string | null {
  let end = lines.length;
  for (let at = end - 1; at >= 0; at -= 1) {
    const line = lines[at] ?? "";
    const said = announcementOf(line, marksOnly);
    if (said !== null) {
      const below = lines.slice(at + 1, end);
      const answer = said.isOfMark ? fromMark(said.rest, below, marksOnly) : fromBelow(said.rest, below, said.isFinal);
      if (answer !== null) return answer;
    }
    if (said !== null || line.startsWith("#")) end = at;
  }
  return null;
}

interface Said {
  /** The rest of the line. */
  readonly rest: string;
  /** Only the mark announces the answer. */
  readonly isOfMark: boolean;
  /** The answer is announced as final. */
  readonly isFinal: boolean;
}

function announcementOf(line: string, marksOnly: boolean): Said | null {
  const marked = contentOfMark(line);
  if (marked === null && marksOnly) return null;
  const content = marked ?? withoutMarks(line);
  const [announcement] = ANNOUNCEMENT.exec(content) ?? [];
  if (announcement === undefined) return marked === null ? null : { rest: marked, isOfMark: true, isFinal: true };
  const isFinal = marked !== null || /final/i.test(announcement);
  return { rest: content.slice(announcement.length), isOfMark: false, isFinal };
}

/** The text after the last `####` of a line; null without one. The `#` that close a heading do not count. */
function contentOfMark(line: string): string | null {
  const mark = line.lastIndexOf(MARK);
  return mark === -1 ? null : withoutMarks(line.slice(mark)) || withoutMarks(line);
}

/** The answer after `####`; null if the mark begins a heading. */
function fromMark(content: string, below: readonly string[], marksOnly: boolean): string | null {
  if (content === "") return valueIn(below[0] ?? "", true);
  const isLast = below.length === 0;
  const isAmount = marksOnly && isLast && /^[-+]?\\?\$?\s?\d/.test(content);
  if (isHeading(content, isLast) || (isSentence(content) && !isAmount)) return null;
  return withoutLabel(content);
}

/**
 * The answer after an announcement; if nothing follows on the line, the line below it or the answer found in the lines
 * below.
 */
function fromBelow(rest: string, below: readonly string[], isFinal: boolean): string | null {
  if (rest !== "") return valueIn(rest, isFinal || below.length === 0);
  return valueIn(below[0] ?? "", isFinal) ?? fromLastLine(below, "") ?? toldNumber(below);
}

/**
 * A line that is a value or contains one formula. A line that calculates may be the first of several, unless it is
 * final.
 */
function valueIn(line: string, isFinal: boolean): string | null {
  const plain = dropDenied(withoutMarks(line));
  const stated = isSentence(plain) ? (EXPLAINED.exec(plain)?.[0] ?? null) : withoutLabel(plain);
  const value = toldFormula(plain) ?? (isTitle(plain) ? null : stated);
  const isOpen = /^(?:\$\$|\\\[|)$/.test(value ?? "");
  return value === null || isOpen || (value.includes("=") && !isFinal) ? null : value.replace(/\.$/, "");
}

function withoutLabel(line: string): string | null {
  return withoutPart(line).replace(LABEL, "").trim() || null;
}

/** Any text after the last `####` of a row. */
function afterMark(text: string): string | null {
  const mark = text.lastIndexOf(MARK);
  const after = mark === -1 ? "" : text.slice(mark + MARK.length).trimStart();
  return after.split("\n", 1)[0]?.trim() || null;
}

/** The most lines of a displayed formula. */
const LINES_OF_FORMULA = 12;

function fromLastLine(lines: readonly string[], question: string): string | null {
  const written = lines.filter((line) => !isTitle(withoutMarks(line)));
  const line = written.at(-1) ?? "";
  if (question.split("\n").some((asked) => asked.trim() === line)) return null;
  const closes = /^(?:\$\$|\\\])[.,]?$/.test(line);
  const formula = closes ? lastFormula(written.slice(-LINES_OF_FORMULA).join(" ")) : toldFormula(line);
  if (formula !== null) return formula;
  const answer = withoutLabel(withoutMarks(line).replace(/^[-*•]\s(?=\p{L})/u, ""));
  if (answer === null || closes || isSentence(answer) || TOLD_AMOUNT.test(answer)) return null;
  const concluded = answer.replace(CONCLUSION, "");
  // `It's 18!`
  return concluded === answer ? answer : concluded.replace(/!$/, "");
}

const BOX = "\\boxed{";

/**
 * The content of the last `\boxed{…}`, with matching braces. Without one, or if it never closes: the whole text, or ""
 * with `strict`.
 */
export function extractBoxedAnswer(text: string, strict = false): string {
  const box = text.lastIndexOf(BOX);
  const start = box + BOX.length;
  const end = box === -1 ? -1 : closingBrace(text, start);
  if (end !== -1) return text.slice(start, end);
  return strict ? "" : text;
}

function closingBrace(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}
