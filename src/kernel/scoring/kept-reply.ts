/** The part of a judge's reply that is stored with its judgement, for people who look for what the judge said. */
import { LIMITS } from "../../contract/limits.ts";
import { cutMiddle } from "../../core/rubrics/judge-rubric.ts";
import type { ReadJudgement } from "../../core/rubrics/judgement.ts";

/** Room for the line that says how many characters were cut out. */
const MARK_CHARACTERS = 60;

/**
 * The reply, at most `LIMITS.judgeReplyCharacters` characters: a longer one is cut in its middle, with a mark. Undefined
 * if it says nothing more than the judgement.
 */
export function keptReply(text: string, read: ReadJudgement): string | undefined {
  const isKnown = read.ok && (text === read.value || text === read.reason);
  if (text.trim() === "" || isKnown) return undefined;
  const most = LIMITS.judgeReplyCharacters;
  const whole = text.toWellFormed();
  return whole.length <= most ? whole : cutMiddle(whole, most - MARK_CHARACTERS).text;
}
