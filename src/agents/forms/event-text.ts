/** Server-sent events. Source: the HTML standard. */
import type { Json, JsonObject } from "../../contract/json.ts";
import { cutBefore } from "../../contract/shown-text.ts";

/** Length of the pieces in which a text is streamed, in UTF-16 units. */
const PIECE = 400;

/** JSON has no line breaks. Some readers also end a line at these characters, which JSON allows in a text. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;

/** `name`: null for an event without one. */
export function eventText(name: string | null, data: Json): string {
  const text = JSON.stringify(data).replaceAll(
    LINE_ENDS,
    (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `${name === null ? "" : `event: ${name}\n`}data: ${text}\n\n`;
}

/** An event with the name that its data has as `type`. */
export function typedEvent(data: JsonObject & { readonly type: string }): string {
  return eventText(data.type, data);
}

/** The text in pieces, which never divide a surrogate pair. */
export function* piecesOf(text: string): Iterable<string> {
  let from = 0;
  while (from < text.length) {
    const end = from + PIECE;
    const to = end < text.length ? cutBefore(text, end) : text.length;
    yield text.slice(from, to);
    from = to;
  }
}
