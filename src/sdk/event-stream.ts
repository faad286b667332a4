/**
 * A run's events over as many connections as it takes.
 *
 * Invariant. Every event comes once and in order: a connection that breaks off, falls silent or ends is opened again
 * behind the last whole event, and the server's ids only grow.
 */
import { isTerminalEvent } from "../contract/event-names.ts";
import { EventReader, type ServerSentEvent } from "../contract/event-stream.ts";
import type { RunEvent } from "../contract/run-events.ts";
import { ApiRequestError } from "./request-error.ts";
import { isBrokenConnection, type Transport } from "./transport.ts";

export interface FollowOptions {
  /** Id of the last event already seen; a run's `last_event` begins where that run was read. Absent: from the first one. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long the stream may stay silent before it is opened again; the server says something every 15 s. */
  readonly timeoutMs?: number | undefined;
}

/** Where a followed run stands between two connections. */
interface Standing {
  /** Id of the last event seen. */
  last: number | undefined;
  /** How long the server wants us to wait before we come back. */
  retryMs: number;
  ended: boolean;
}

const FIRST_RETRY_MS = 1000;
/** The server's way to say that the run has ended and every event of it was read. */
const NOTHING_MORE = 204;
/** The stream gives up after this many connections in a row that brought nothing. */
const FRUITLESS_CONNECTIONS = 30;

export async function* followEvents(
  transport: Transport,
  url: string,
  options: FollowOptions,
): AsyncGenerator<RunEvent> {
  const standing: Standing = { last: options.after, retryMs: FIRST_RETRY_MS, ended: false };
  for (let fruitless = 0; fruitless < FRUITLESS_CONNECTIONS; fruitless += 1) {
    for await (const event of connection(transport, url, standing, options)) {
      fruitless = 0;
      yield event;
    }
    if (standing.ended) return;
    await transport.pause(standing.retryMs, options.signal);
  }
  throw new DOMException(`the event stream ${url} sent nothing`, "TimeoutError");
}

/** The events of one connection, which may break off; `standing` says how far it came. */
async function* connection(
  transport: Transport,
  url: string,
  standing: Standing,
  options: FollowOptions,
): AsyncGenerator<RunEvent> {
  const patience = transport.patience(options);
  try {
    const reply = await transport.open(url, { headers: headersOf(standing) }, patience);
    standing.ended = reply.status === NOTHING_MORE;
    for await (const event of serverSentEvents(reply, () => patience.heard())) {
      if (event.retry !== null) standing.retryMs = Number(event.retry);
      if (event.data === "") continue;
      if (event.id !== null) standing.last = Number(event.id);
      const whole = { id: standing.last, event: event.name, data: JSON.parse(event.data) };
      const read = whole as RunEvent;
      standing.ended = isTerminalEvent(read.event);
      yield read;
      if (standing.ended) return;
    }
  } catch (error) {
    if (options.signal?.aborted || !mayComeBack(error)) throw error;
  } finally {
    patience.end();
  }
}

function headersOf({ last }: Standing): Record<string, string> {
  const accept = { accept: "text/event-stream" };
  return last === undefined ? accept : { ...accept, "last-event-id": String(last) };
}

/** A platform that restarts answers 5xx for a moment, and a busy one 429. */
function mayComeBack(error: unknown): boolean {
  if (!(error instanceof ApiRequestError)) return isBrokenConnection(error);
  return error.status >= 500 || error.status === 429;
}

/** The events of one connection. One cut off by the end of the stream is dropped: it comes again. */
async function* serverSentEvents(reply: Response, heard?: () => void): AsyncGenerator<ServerSentEvent> {
  if (reply.body === null) return;
  const reader = reply.body.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // Comments too: they keep the connection alive and say nothing.
      heard?.();
      yield* events.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Also when the reader of the events leaves early: an open stream would hold the connection.
    await reader.cancel();
  }
}
