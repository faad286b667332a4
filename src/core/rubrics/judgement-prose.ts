/**
 * Finds a judgement in prose, in a reply without JSON.
 *
 * Invariants. Only the last line counts, and only if it consists of a judgement: `**Verdict**: yes`, `Score - 7`, "The
 * verdict is yes.", a value below a heading of that name, or a reply of one value. A number may also be given in a
 * sentence as "7 out of 10". If several lines of that form differ, there is no judgement. Linear in the reply.
 */
import { NAME } from "./judgement-value.ts";

/** Markdown marks and quotation marks are ignored. */
const MARKS = /[*`"“”「」【】]|(?<!\w)_|_(?!\w)/g;
/** Marks of a heading or a quotation at the start of a line; "> 7" may be a bound. */
const LINE_MARKS = /^(?:[\s#]|>(?!\s{0,9}[\d.]))+|\s#+$/g;
const TAGGED = new RegExp(`^<(${NAME})>([^<>]{1,200})</${NAME}>$`, "i");
const STATED = new RegExp(
  `^\\s{0,9}(?:(?:the|my|our)\\s)?${NAME}\\s{0,3}(?:[:=]|-{1,2}\\s|[–—]|is\\b:?)\\s{0,3}(\\S.{0,200})$`,
  "i",
);
const TITLE = new RegExp(`^\\s{0,9}(?:the\\s)?${NAME}\\s{0,3}:?\\s{0,3}$`, "i");

/** Parses the value of a judgement; null if it is not in the menu. */
type ReadValue<T> = (text: string) => T | null;

/** The judgement; null if there is none. `readSentence`: parses a last line that is a sentence. */
export function judgementOfProse<T extends string | number>(
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
/** A sentence that announces a judgement. */
const ANNOUNCED = new RegExp(
  "^\\W{0,5}(?:(?:so|thus|therefore|hence|wait|actually|instead|no|but),?\\s)?(?:(?:the|my|our)\\s)?(?:(?:correct|right|true|actual|real|revised|corrected)\\s)?" +
    `(${VERDICT})\\s{0,3}(?:[:=]|-{1,2}\\s|[–—]|(?:is|was|should\\s(?:be|have\\sbeen)|must\\sbe|has\\sto\\sbe|changes\\sto)\\b:?)\\s{0,3}(?:(?:now|instead|therefore|thus|really)\\s)?(\\S.{0,200})$`,
  "i",
);
const SURE = /final|overall/i;
const RETRACTS =
  /^\W*(?:(?:but|oh|hmm+|oops),?\s)?(?:wait|actually|correction|no(?=[,.:!–—-]| wait)|on (?:second thoughts?|reflection)|sorry|scratch that|oops|i (?:made|was|see)\b)/i;

/**
 * Whether prose around a judgement contradicts it: after it, a text that withdraws it or announces another; before it,
 * another final judgement, or the only one of the reply.
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
