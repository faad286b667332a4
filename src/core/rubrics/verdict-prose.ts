/**
 * A verdict that stands in prose, in a reply without JSON.
 *
 * Invariants. Only the last line decides, and only if it is a verdict and nothing else: `**Verdict**: yes`, `Score - 7`,
 * "The verdict is yes.", a value below a heading of that name, or a reply of one value. For a number it may also be a
 * sentence that gives one "7 out of 10". Lines of that form that differ are no verdict. Linear in the reply.
 */
import { NAME } from "./verdict-value.ts";

/** Marks of Markdown and quotation marks say nothing. */
const MARKS = /[*`"“”「」【】]|(?<!\w)_|_(?!\w)/g;
/** Of a heading or a quotation; "> 7" may be a bound. */
const LINE_MARKS = /^(?:[\s#]|>(?!\s{0,9}[\d.]))+|\s#+$/g;
const TAGGED = new RegExp(`^<(${NAME})>([^<>]{1,200})</${NAME}>$`, "i");
const STATED = new RegExp(
  `^\\s{0,9}(?:(?:the|my|our)\\s)?${NAME}\\s{0,3}(?:[:=]|-{1,2}\\s|[–—]|is\\b:?)\\s{0,3}(\\S.{0,200})$`,
  "i",
);
const TITLE = new RegExp(`^\\s{0,9}(?:the\\s)?${NAME}\\s{0,3}:?\\s{0,3}$`, "i");

/** Reads the value of a verdict; null where it is none of the menu's. */
type ReadValue<T> = (text: string) => T | null;

/** The verdict; null where there is none. `readSentence`: of a last line that is a sentence. */
export function verdictOfProse<T extends string | number>(
  text: string,
  readValue: ReadValue<T>,
  readSentence: ReadValue<T>,
): T | null {
  const lines = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(plainLine);
  const last = lines.at(-1) ?? "";
  const stated = lines.flatMap((line) => STATED.exec(line)?.[1] ?? []).map(readValue);
  const isTitled = TITLE.test(lines.at(-2) ?? "");
  const value = STATED.test(last)
    ? (stated.at(-1) ?? null)
    : valueAlone(last, lines.length === 1 || isTitled, readValue);
  const found = value ?? (STATED.test(last) ? null : readSentence(last));
  return stated.every((each) => each === found) ? found : null;
}

function valueAlone<T>(line: string, counts: boolean, readValue: ReadValue<T>): T | null {
  return counts ? readValue(line) : null;
}

function plainLine(line: string): string {
  return line.trim().replace(TAGGED, "$1: $2").replace(LINE_MARKS, "").replace(MARKS, "");
}

const SENTENCES = /(?<=[.!?])\s+/;
const VERDICT = NAME.replace(/\|judge\?ment\|decision/, "");
/** A sentence that announces a verdict. */
const ANNOUNCED = new RegExp(
  "^\\W{0,5}(?:(?:so|thus|therefore|hence|wait|actually|instead|no|but),?\\s)?(?:(?:the|my|our)\\s)?(?:(?:correct|right|true|actual|real|revised|corrected)\\s)?" +
    `(${VERDICT})\\s{0,3}(?:[:=]|-{1,2}\\s|[–—]|(?:is|was|should\\s(?:be|have\\sbeen)|must\\sbe|has\\sto\\sbe|changes\\sto)\\b:?)\\s{0,3}(?:(?:now|instead|therefore|thus|really)\\s)?(\\S.{0,200})$`,
  "i",
);
const SURE = /final|overall/i;
const RETRACTS =
  /^\W*(?:(?:but|oh|hmm+|oops),?\s)?(?:wait|actually|correction|no(?=[,.:!–—-]| wait)|on (?:second thoughts?|reflection)|sorry|scratch that|oops|i (?:made|was|see)\b)/i;

/**
 * Whether prose around a verdict contradicts it: behind it, what takes it back or announces another; before it, a final
 * verdict that is another, or the only verdict there.
 */
export function isContradicted<T extends string | number>(
  value: T,
  { before, behind }: { readonly before: string; readonly behind: string },
  readValue: ReadValue<T>,
): boolean {
  const alone = readValue(behind.trim());
  if (RETRACTS.test(behind) || (alone !== null && alone !== value)) return true;
  const earlier = announcements(before, readValue);
  const sure = earlier.filter(({ name }) => earlier.length === 1 || SURE.test(name));
  return [...sure, ...announcements(behind, readValue)].some((each) => each.value !== value);
}

interface Announcement<T> {
  readonly name: string;
  readonly value: T;
}

function announcements<T>(text: string, readValue: ReadValue<T>): Announcement<T>[] {
  return text
    .split("\n")
    .flatMap((line) => plainLine(line).split(SENTENCES))
    .flatMap((sentence) => {
      const [, name = "", said = ""] = ANNOUNCED.exec(sentence) ?? [];
      const value =
        said === "" ? null : (readValue(said) ?? readValue(said.split(/[,;(–—]|\s-\s|\sbecause\b/, 1)[0] ?? ""));
      return value === null ? [] : [{ name, value }];
    });
}
