/** Server-sent events, read as they come. */

export interface ServerSentEvent {
  readonly id: number | null;
  readonly name: string;
  /** Empty for a block that only sets the retry delay. */
  readonly data: string;
  readonly retryMs: number | null;
}

/**
 * The events of one connection. A block cut off by the end of the stream is dropped: it comes again.
 * `heard` is told of everything that arrives, comments too.
 */
export async function* serverSentEvents(reply: Response, heard?: () => void): AsyncGenerator<ServerSentEvent> {
  let fields = new Map<string, string>();
  for await (const line of lines(reply, heard)) {
    if (line === "") {
      if (fields.size > 0) yield asEvent(fields);
      fields = new Map();
      continue;
    }
    const { name, value } = fieldOf(line);
    // A line that starts with a colon is a comment; it keeps the connection alive and says nothing.
    if (name === "") continue;
    const before = name === "data" ? fields.get("data") : undefined;
    fields.set(name, before === undefined ? value : `${before}\n${value}`);
  }
}

function fieldOf(line: string): { name: string; value: string } {
  const colon = line.indexOf(":");
  if (colon < 0) return { name: line, value: "" };
  const value = line.slice(line.startsWith(" ", colon + 1) ? colon + 2 : colon + 1);
  return { name: line.slice(0, colon), value };
}

function asEvent(fields: ReadonlyMap<string, string>): ServerSentEvent {
  const id = fields.get("id");
  const retry = fields.get("retry");
  return {
    id: id === undefined ? null : Number(id),
    name: fields.get("event") ?? "message",
    data: fields.get("data") ?? "",
    retryMs: retry === undefined ? null : Number(retry),
  };
}

/** Whole lines only, without their ends (LF or CRLF); what follows the last end is no line yet. */
async function* lines(reply: Response, heard?: () => void): AsyncGenerator<string> {
  if (reply.body === null) return;
  const reader = reply.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard?.();
      const parts = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = parts.pop() ?? "";
      yield* parts;
    }
  } finally {
    // Also when the reader of the lines leaves early: an open stream would hold the connection.
    await reader.cancel();
  }
}
