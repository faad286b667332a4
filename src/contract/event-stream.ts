/**
 * Parses server-sent events from the pieces of a text, as they arrive. Source: HTML, "Server-sent events", 9.2.6.
 *
 * Invariants. The call that brings the empty line after an event returns that event, since the sender may send nothing
 * more. Lines end with LF, CRLF or CR, wherever the pieces are cut. The cost of a piece is linear in its length. Only
 * the incomplete event is kept between two calls: the caller bounds the text.
 */
export interface ServerSentEvent {
  /** `message` if the sender names none. */
  readonly name: string;
  /** The data lines, joined by LF; "" if there are none. */
  readonly data: string;
  readonly id: string | null;
  /** The reconnection time in milliseconds, as it was sent. */
  readonly retry: string | null;
}

const LINE_END = /\r\n|\n|\r/;
/** The fields that HTML defines. All others are ignored; a comment is a line with an empty field name. */
const FIELDS: ReadonlySet<string> = new Set(["event", "data", "id", "retry"]);

export class EventReader {
  /** The pieces of the line that has not ended. */
  #rest: string[] = [];
  #fields = new Map<string, string[]>();
  #endsInCr = false;

  /** The events that this piece completes. */
  push(piece: string): ServerSentEvent[] {
    if (piece === "") return [];
    const lines = (this.#endsInCr && piece.startsWith("\n") ? piece.slice(1) : piece).split(LINE_END);
    this.#endsInCr = piece.endsWith("\r");
    const last = lines.pop() ?? "";
    const events: ServerSentEvent[] = [];
    for (const line of lines) {
      const whole = this.#rest.length === 0 ? line : [...this.#rest, line].join("");
      this.#rest = [];
      if (whole !== "") this.#addField(whole);
      else if (this.#fields.size > 0) events.push(this.#complete());
    }
    if (last !== "") this.#rest.push(last);
    return events;
  }

  /** The event that has no empty line at the end of the text. HTML drops it; some servers leave the empty line out. */
  end(): ServerSentEvent[] {
    return this.push("\n\n");
  }

  #addField(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    if (!FIELDS.has(name)) return;
    const value = colon < 0 ? "" : line.slice(line.startsWith(" ", colon + 1) ? colon + 2 : colon + 1);
    const before = this.#fields.get(name);
    if (before === undefined || name !== "data") this.#fields.set(name, [value]);
    else before.push(value);
  }

  #complete(): ServerSentEvent {
    const fields = this.#fields;
    this.#fields = new Map();
    const field = (name: string) => fields.get(name)?.join("\n") ?? null;
    return { name: field("event") || "message", data: field("data") ?? "", id: field("id"), retry: field("retry") };
  }
}
