/**
 * Server-sent events out of the pieces of a text, as they arrive. Source: HTML, "Server-sent events", 9.2.6.
 *
 * Invariants. An event is given once the empty line behind it is there, in the call that brought it, and never later:
 * its sender may say nothing more. Lines end with LF, CRLF or CR, wherever the pieces are cut. What a piece costs is
 * linear in its length. What is kept between two calls is the event that is not complete: its caller bounds the text.
 */
export interface ServerSentEvent {
  /** `message` where the sender names none. */
  readonly name: string;
  /** Its lines, with LF between them; "" where it has none. */
  readonly data: string;
  readonly id: string | null;
  /** Milliseconds until the reader should come back, as they were sent. */
  readonly retry: string | null;
}

const LINE_END = /\r\n|\n|\r/;
/** Of HTML; all others are ignored, and a comment is a line whose field has no name. */
const FIELDS: ReadonlySet<string> = new Set(["event", "data", "id", "retry"]);

export class EventReader {
  /** The line that has not ended. */
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

  /** The event that the end of the text left without its empty line. HTML drops it; some servers leave the line out. */
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
