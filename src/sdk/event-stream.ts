/**
 * Follows a run's events over as many connections as necessary.
 *
 * Invariant. Every event comes once and in order: if a connection breaks, is silent or ends, a new one starts after the
 * last complete event. The server's ids only grow.
 */
import { isTerminalEvent } from "../contract/event-names.ts";
import { EventReader, type ServerSentEvent } from "../contract/event-stream.ts";
import type { RunEvent } from "../contract/run-events.ts";
import { ApiRequestError } from "./request-error.ts";
import { isBrokenConnection, type Transport } from "./transport.ts";

export interface FollowOptions {
  /**
   * Id of the last event already seen; a run's `last_event` is the one when the run was read. Absent: from the first
   * one.
   */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Maximal silence before the stream is opened again; the server sends something every 15 s. */
  readonly timeoutMs?: number | undefined;
}

/** The state of a followed run between two connections. */
interface Standing {
  /** Id of the last event seen. */
  last: number | undefined;
  /** The server's reconnection delay. */
  retryMs: number;
  ended: boolean;
}

const FIRST_RETRY_MS = 1000;
/** The server's status if the run has ended and all its events were read. */
const NOTHING_MORE = 204;
/** The stream ends with an error after this many consecutive connections without an event. */
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

/** The events of one connection, which may break; `standing` records its progress. */
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
    for await (const event of serverSentEvents(reply, () => patience.received())) {
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

/** Whether a retry may help: a restarting platform replies 5xx for a moment, a busy one 429. */
function mayComeBack(error: unknown): boolean {
  if (!(error instanceof ApiRequestError)) return isBrokenConnection(error);
  return error.status >= 500 || error.status === 429;
}

/** The events of one connection. An incomplete event at the end of the stream is dropped: the server sends it again. */
async function* serverSentEvents(reply: Response, received?: () => void): AsyncGenerator<ServerSentEvent> {
  if (reply.body === null) return;
  const reader = reply.body.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // Also for comments, which only keep the connection alive.
      received?.();
      yield* events.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Also if the reader stops early: an open stream would keep the connection.
    await reader.cancel();
  }
}
