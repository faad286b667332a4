/**
 * Where the final number of a solution stands, and how two spellings of it are told to be the same.
 *
 * Two conventions are read: `\boxed{18}`, which the system prompt asks for, and `#### 18`, which the data set itself
 * uses. Numbers elsewhere in the text never count: a reference solution is full of right intermediate results.
 */
import { extractBoxedAnswer } from "rollcall";

const MARK = "####";

/** The last boxed answer, else the line after the last `####`, normalised; null when there is neither. */
export function extractAnswer(text: string): string | null {
  const boxed = normalise(extractBoxedAnswer(text, true));
  if (boxed !== "") return boxed;
  const mark = text.lastIndexOf(MARK);
  if (mark === -1) return null;
  return normalise(firstLine(text.slice(mark + MARK.length))) || null;
}

/** The answer of a data set row: what follows its `####`, or all of a row that holds the bare answer. */
export function goldAnswer(solution: string): string {
  const mark = solution.lastIndexOf(MARK);
  return normalise(mark === -1 ? solution : firstLine(solution.slice(mark + MARK.length)));
}

/** Without dollar signs, thousands separators, a trailing period or a fraction of zeros: "$1,600.00." is "1600". */
function normalise(text: string): string {
  const bare = text.replaceAll("\\$", "").replaceAll("$", "").replaceAll(",", "").trim();
  return bare.replace(/\.$/, "").replace(/\.0+$/, "").trim();
}

function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}
