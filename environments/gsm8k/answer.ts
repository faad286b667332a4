/**
 * Finds and normalises the final number of a solution.
 *
 * Two conventions are read: `\boxed{18}`, which the system prompt requests, and `#### 18`, which the data set itself
 * uses. Without either, only the number at the end of the reply counts: a solution is full of right intermediate
 * results.
 */
import { extractMarkedAnswer, extractToldNumber, readNumber } from "rollcall";

/**
 * The last boxed answer, else the text after the last `####` that is not a heading, else the number that prose ends in.
 */
export function extractAnswer(text: string): string | null {
  const marked = extractMarkedAnswer(text);
  return marked === null ? extractToldNumber(text) : spelled(marked);
}

/** The answer of a data set row: its marked one, or the whole text of a row with a bare answer. */
export function goldAnswer(solution: string): string {
  return spelled(extractMarkedAnswer(solution) ?? solution);
}

/** A number in its normal form, without its unit; any other text as it is. */
function spelled(text: string): string {
  return readNumber(text) ?? text.trim();
}
