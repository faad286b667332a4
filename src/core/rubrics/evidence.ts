/**
 * Text that is judged, made fit for a judge's prompt: it is not trusted, so it is fenced; it may be long, so it is cut.
 */
import { type Messages, textOf } from "../../contract/messages.ts";

const BACKTICKS = /`+/g;
const SHORTEST_FENCE = 3;

/** Between two lines of backticks, more of them than stand anywhere inside in a row: it cannot end its own fence. */
export function fenced(text: string): string {
  const runs = text.match(BACKTICKS) ?? [];
  const longest = runs.reduce((most, run) => Math.max(most, run.length), SHORTEST_FENCE - 1);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

export interface Cut {
  readonly text: string;
  /** Characters that are not in it. */
  readonly leftOut: number;
}

/** At most `most` characters of it, the first and the last ones, and between them a line that says what is missing. */
export function cutMiddle(text: string, most: number): Cut {
  if (text.length <= most) return { text, leftOut: 0 };
  const head = untilCharacter(text, Math.ceil(most / 2));
  const tail = untilCharacter(text, text.length - Math.floor(most / 2));
  const leftOut = tail - head;
  const marker = `\n[… ${leftOut} characters left out …]\n`;
  return { text: `${text.slice(0, head)}${marker}${text.slice(tail)}`, leftOut };
}

/** A conversation as a judge reads it: who said what, which tools were called with what. No ids, no rewards. */
export function transcriptOf(messages: Messages): string {
  return messages
    .map((message) => {
      const calls = (message.tool_calls ?? []).map(
        ({ function: { name, arguments: given } }) => `calls ${name}(${given})`,
      );
      const said = textOf(message);
      return [`[${message.role}]`, ...(said === "" ? [] : [said]), ...calls].join("\n");
    })
    .join("\n\n");
}

/** Not between the halves of a surrogate pair. */
function untilCharacter(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}
