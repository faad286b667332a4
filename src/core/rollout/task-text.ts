/** The text by which people recognise a task: the beginning of its question. */
import { type Messages, textOf } from "../../contract/messages.ts";
import { cutBefore } from "../../contract/shown-text.ts";

/** UTF-16 units, including the mark of a cut: each rollout of a run has this text in its row. */
const MOST = 120;

/**
 * The last user message of the prompt (earlier ones may be the same in every task), on one line. Null if no user
 * message has words. Stops reading once there are enough words: a prompt may have megabytes.
 */
export function taskText(prompt: Messages): string | null {
  const asked = prompt.findLast(({ role }) => role === "user" || role === "text");
  let line = "";
  for (const [word] of textOf(asked).matchAll(/\S+/g)) {
    line += line === "" ? word : ` ${word}`;
    if (line.length > MOST) return `${line.slice(0, cutBefore(line, MOST - 1))}…`;
  }
  return line === "" ? null : line;
}
