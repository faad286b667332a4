/**
 * Where the final number of a solution stands, and how it is spelled.
 *
 * Two conventions are read: `\boxed{18}`, which the system prompt asks for, and `#### 18`, which the data set itself
 * uses. Without either the number counts that the reply ends in, and none before it: a solution is full of right
 * intermediate results.
 */
import { extractMarkedAnswer, extractToldNumber, readNumber } from "rollcall";

/** The last boxed answer, else what follows the last `####` that is no heading, else the number that prose ends in. */
export function extractAnswer(text: string): string | null {
  const marked = extractMarkedAnswer(text);
  return marked === null ? extractToldNumber(text) : spelled(marked);
}

/** The answer of a data set row: the one it marks, or all of a row that holds the bare answer. */
export function goldAnswer(solution: string): string {
  return spelled(extractMarkedAnswer(solution) ?? solution);
}

/** A number in one spelling, whatever it counts; any other text as it is. */
function spelled(text: string): string {
  return readNumber(text) ?? text.trim();
}
