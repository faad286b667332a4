/**
 * Streams a run's events as server-sent events.
 *
 * Invariants. Ids are integers that only grow, so `Last-Event-ID` (or `?after=`) continues an interrupted stream. A
 * quiet stream sends a comment every 15 s. A stream ends after the run's last event; or after 5 minutes, too many
 * reads, or a failed read, with a `retry:` line that makes the client reconnect. It ends within 5 s if the caller loses
 * the permission. Organisations share the streams of a process. If no event will follow, the answer is 204, which stops
 * a browser's EventSource from reconnecting.
 */
import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { wholeNumber } from "../../contract/primitives.ts";
import { RunEvent } from "../../contract/run-events.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { FairSemaphore, type Reservation } from "../kit/fair-semaphore.ts";
import { pulledStream } from "../kit/pulled-stream.ts";
import type { StoredEvent } from "../messages/run-records.ts";
import { readQuery } from "./answer.ts";
import { Refusal, unwrap } from "./errors.ts";
import { headerAs } from "./input.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";
import { sharerOf } from "./strangers.ts";

const QUIET_MS = 15_000;
const STREAM_MS = 5 * 60_000;
/** Time between two checks whether the caller still has the permission. */
export const LOOK_MS = 2500;
const COME_BACK = "retry: 1000\n\n";
const STILL_HERE = ": still here\n\n";
const TOO_MANY = "too many event streams are open: try again later";

/** Shared between organisations. A quiet stream renews its place every `QUIET_MS`. */
const streams = new FairSemaphore(LIMITS.streamsAtOnce, 2 * LIMITS.bodyPauseMs);

export const EventId = wholeNumber(0);
const EventQuery = z.strictObject({
  after: EventId.default(0).describe(
    "id of the last event seen, or the run's last_event to start from now; the Last-Event-ID header takes precedence",
  ),
});

/** Steps of reading a batch from the object of its run (about 2 ms), and of writing an event. */
const STEPS = { batch: 40_000, event: 1000 };

function stepsOfBatch(events: readonly StoredEvent[]): number {
  return STEPS.batch + STEPS.event * events.length;
}

interface Batch {
  readonly events: readonly StoredEvent[];
  readonly ended: boolean;
}

export interface EventFeed {
  /** Waits at most `waitMs` for events after `after`. */
  readonly read: (after: number, waitMs: number) => Promise<Batch>;
  /** Whether the caller still has the permission. */
  readonly allowed: () => Promise<boolean>;
  readonly now: () => number;
  readonly report: (error: unknown) => void;
}

export const eventOperations: readonly Operation[] = [
  {
    id: "streamEvents",
    route: "GET /v1/runs/{id}/events",
    permission: "runs:read",
    summary: "Stream the events of a run",
    query: EventQuery,
    headers: { "Last-Event-ID": "id of the last event seen" },
    reply: {
      description: "Server-sent events, ending with run.completed, run.failed or run.cancelled",
      contentType: "text/event-stream",
      schema: RunEvent,
      empty: "No more events: the run has ended, and you have seen the last event",
    },
    handle: streamEvents,
  },
];

/** The frames after `first`, until the run or the stream ends. */
export async function* framesOf(feed: EventFeed, first: Batch, start: number): AsyncGenerator<string, void> {
  const until = feed.now() + STREAM_MS;
  let [batch, after, quietUntil] = [first, start, feed.now()];
  // Each read is one call to the run's object, and the calls of an invocation are limited.
  for (let reads = 1; reads < LIMITS.subrequests; reads += 1) {
    after = batch.events.at(-1)?.id ?? after;
    const frames = batch.events.map(frameOf).join("");
    if (frames !== "") yield frames;
    if (batch.ended) return;
    const now = feed.now();
    if (frames === "" && now >= quietUntil) yield STILL_HERE;
    if (frames !== "" || now >= quietUntil) quietUntil = now + QUIET_MS;
    const next = await readOn(feed, after, Math.min(quietUntil, until) - now);
    if (next === null) break;
    batch = next;
  }
  yield COME_BACK;
}

/** Null if the stream must end: its time is over, its caller lost the permission, or a read failed. */
async function readOn(feed: EventFeed, after: number, leftMs: number): Promise<Batch | null> {
  if (leftMs <= 0) return null;
  try {
    const batch = await feed.read(after, Math.min(LOOK_MS, leftMs));
    return (await feed.allowed()) ? batch : null;
  } catch (error) {
    // If the run was deleted, its streams end: a client that reconnects gets a 404.
    if (!(error instanceof Refusal && error.failure.code === "not_found")) feed.report(error);
    return null;
  }
}

function frameOf({ id, event, data }: StoredEvent): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

async function streamEvents(context: ApiContext): Promise<Response> {
  const { services, now, report, stillAllowed } = context.var;
  const after = startOf(context);
  const id = pathParam(context, "id");
  const feed: EventFeed = {
    read: async (seen, waitMs) => {
      const batch = unwrap(await services.readEvents(context.env, context.var.scope, id, seen, waitMs));
      // A busy run has a new batch every few milliseconds, for each of its streams.
      if (batch.events.length > 0) await PROCESS_SCHEDULER.spend(sharerOf(context), stepsOfBatch(batch.events));
      return batch;
    },
    allowed: stillAllowed,
    now,
    report: (error) => report(error, context.var.requestId),
  };
  // Read once before answering: a missing run must give a 404, not a stream that breaks.
  const first = await feed.read(after, 0);
  if (first.ended && first.events.length === 0) return context.body(null, 204);
  const reservation = streams.take(sharerOf(context), now());
  if (reservation === null) throw new Refusal({ code: "rate_limited", message: TOO_MANY, param: null });
  return context.body(streamOf(framesOf(feed, first, after), reservation, now), 200, {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
  });
}

function streamOf(
  frames: AsyncGenerator<string, void>,
  reservation: Reservation,
  now: () => number,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return pulledStream({
    next: async () => {
      reservation.stay(now());
      const frame = await frames.next();
      return frame.done ? null : encoder.encode(frame.value);
    },
    end: async () => {
      reservation.leave();
      await frames.return();
    },
  });
}

function startOf(context: ApiContext): number {
  const { after } = readQuery(context, EventQuery);
  return headerAs(EventId, context.req.raw, "Last-Event-ID") ?? after;
}
