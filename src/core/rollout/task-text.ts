/** What a task is called among people: the beginning of what it asks. */
import { type Messages, textOf } from "../../contract/messages.ts";
import { cutBefore } from "../../contract/shown-text.ts";

/** UTF-16 units, the mark of a cut included: each rollout of a run has one in its row. */
const MOST = 120;

/**
 * The last thing a user says in the prompt (what comes before may be the same in every task), on one line. Null where no
 * user says anything in words. Words are read until there are enough: a prompt may be megabytes.
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
