/**
 * A verdict that stands in prose, in a reply without JSON.
 *
 * Invariants. Only the last line decides, and only if it is a verdict and nothing else: `**Verdict**: yes`, `Score - 7`,
 * "The verdict is yes.", a value below a heading of that name, or a reply of one value. For a number it may also be a
 * sentence with one "7 out of 10". Lines of that form that differ are no verdict. Linear in the reply.
 */
import { NAME } from "./verdict-value.ts";

/** Marks of Markdown and quotation marks say nothing. */
const MARKS = /[*`"“”#>「」【】]|(?<!\w)_|_(?!\w)/g;
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
    .normalize("NFKC")
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
  return line.trim().replace(TAGGED, "$1: $2").replace(MARKS, "");
}
