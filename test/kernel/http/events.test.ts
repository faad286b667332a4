import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { Refusal } from "../../../src/kernel/http/errors.ts";
import { type EventFeed, framesOf } from "../../../src/kernel/http/events.ts";
import type { StoredEvent as RunEvent } from "../../../src/kernel/messages/run-records.ts";
import { RUN } from "./examples.ts";
import { openTestApi } from "./test-api.ts";

interface Batch {
  events: RunEvent[];
  ended: boolean;
}

const { counts, report } = RUN;
const STANDING = { counts, reward: report.reward, turns: report.turns, usage: report.usage };
const progress = (id: number): RunEvent => ({ id, event: "run.progress", data: STANDING });
const completed = (id: number): RunEvent => ({
  id,
  event: "run.completed",
  data: { status: "completed", error: null },
});
const frame = ({ id, event, data }: RunEvent) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
const quiet: Batch = { events: [], ended: false };

/** A feed that plays these batches and then stays quiet. A read that finds nothing takes its full time. */
function feedOf(batches: Batch[]) {
  const reads: { after: number; waitMs: number }[] = [];
  const reported: unknown[] = [];
  let now = 0;
  const feed: EventFeed = {
    now: () => now,
    allowed: async () => true,
    report: (error) => reported.push(error),
    read: async (after, waitMs) => {
      reads.push({ after, waitMs });
      const batch = batches.shift() ?? quiet;
      if (batch.events.length === 0) now += waitMs;
      return batch;
    },
  };
  return { feed, reads, reported };
}

async function collect(frames: AsyncGenerator<string, void>): Promise<string[]> {
  const collected: string[] = [];
  for await (const frame of frames) collected.push(frame);
  return collected;
}

test("events are sent in order and the stream closes after the run's last one", async () => {
  const { feed, reads } = feedOf([{ events: [completed(6)], ended: true }]);
  const first = { events: [progress(4), progress(5)], ended: false };
  expect(await collect(framesOf(feed, first, 3))).toEqual([
    frame(progress(4)) + frame(progress(5)),
    frame(completed(6)),
  ]);
  expect(reads).toEqual([{ after: 5, waitMs: 2500 }]);
});

test("a quiet stream sends a comment every 15 seconds and makes the client reconnect after 5 minutes", async () => {
  const { feed, reads } = feedOf([]);
  const frames = await collect(framesOf(feed, quiet, 9));
  expect(frames.slice(0, -1)).toEqual(Array(21).fill(": still here\n\n"));
  expect(frames.at(-1)).toBe("retry: 1000\n\n");
  expect(reads.map(({ waitMs }) => waitMs)).toEqual(Array(120).fill(2500));
});

test("a stream ends within 5 s after its caller lost the permission, and sends nothing that happened since", async () => {
  const { feed, reads } = feedOf([quiet, { events: [progress(10)], ended: false }]);
  const looks = [true, false];
  const revoked: EventFeed = { ...feed, allowed: async () => looks.shift() ?? false };
  expect(await collect(framesOf(revoked, { events: [progress(9)], ended: false }, 8))).toEqual([
    frame(progress(9)),
    "retry: 1000\n\n",
  ]);
  expect(reads.length).toBe(2);
  expect(feed.now()).toBeLessThan(5000);
});

test("a stream that is never quiet still makes a bounded number of reads", async () => {
  const busy = Array.from({ length: 2000 }, (_, id) => ({
    events: [progress(id + 1)],
    ended: false,
  }));
  const { feed, reads } = feedOf(busy);
  const frames = await collect(framesOf(feed, quiet, 0));
  expect(reads.length).toBeLessThan(LIMITS.subrequests);
  expect(frames.at(-1)).toBe("retry: 1000\n\n");
});

test("a read that fails is reported and the client is told to reconnect", async () => {
  const failure = new Error("object reset");
  const { feed, reported } = feedOf([]);
  const broken: EventFeed = { ...feed, read: () => Promise.reject(failure) };
  const frames = await collect(framesOf(broken, { events: [progress(1)], ended: false }, 0));
  expect(frames.at(-1)).toBe("retry: 1000\n\n");
  expect(reported).toEqual([failure]);
});

test("deleting a run ends its streams, and is not reported as a failure", async () => {
  const { feed, reported } = feedOf([]);
  const gone = new Refusal({ code: "not_found", message: "no run run_x", param: "id" });
  const deleted: EventFeed = { ...feed, read: () => Promise.reject(gone) };
  const frames = await collect(framesOf(deleted, { events: [progress(1)], ended: false }, 0));
  expect(frames.at(-1)).toBe("retry: 1000\n\n");
  expect(reported).toEqual([]);
});

async function apiWith(batch: Batch) {
  const starts: number[] = [];
  const api = await openTestApi({
    readEvents: async (_env, _scope, _id, after) => {
      starts.push(after);
      return { ok: true, value: batch };
    },
  });
  return { ...api, starts };
}

test("the stream is an event stream over HTTP", async () => {
  const { ask } = await apiWith({ events: [completed(6)], ended: true });
  const reply = await ask("/v1/runs/run_x/events");
  expect(reply.headers.get("content-type")).toBe("text/event-stream");
  expect(await reply.text()).toBe('id: 6\nevent: run.completed\ndata: {"status":"completed","error":null}\n\n');
});

test("a client continues after the id it names, and the header takes precedence over the query", async () => {
  const { ask, starts } = await apiWith({ events: [completed(6)], ended: true });
  await ask("/v1/runs/run_x/events");
  await ask("/v1/runs/run_x/events?after=4");
  await ask("/v1/runs/run_x/events?after=4", { headers: { "last-event-id": "5" } });
  expect(starts).toEqual([0, 4, 5]);
  const reply = await ask("/v1/runs/run_x/events", { headers: { "last-event-id": "five" } });
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({ error: { param: "Last-Event-ID" } });
});

test("one organisation's open streams leave some for another, and each that ends frees its place", async () => {
  const [greedy, fair] = [await apiWith(quiet), await apiWith(quiet)];
  const open = ({ ask }: typeof greedy) => ask("/v1/runs/run_x/events");
  const streams: Response[] = [];
  for (let reply = await open(greedy); reply.status === 200; reply = await open(greedy)) streams.push(reply);
  expect(streams.length).toBeGreaterThan(1);
  expect(streams.length).toBeLessThanOrEqual(LIMITS.streamsAtOnce / 2);
  const refused = await open(greedy);
  expect(await refused.json()).toMatchObject({ error: { code: "rate_limited" } });
  const theirs = await open(fair);
  expect(theirs.status).toBe(200);
  for (const { body } of streams.splice(0, 2)) await body?.cancel();
  expect((await open(greedy)).status).toBe(200);
});

test("a client that has seen the end gets 204, which stops it from reconnecting", async () => {
  const { ask } = await apiWith({ events: [], ended: true });
  expect((await ask("/v1/runs/run_x/events?after=6")).status).toBe(204);
});

test("the events of a run that does not exist are 404, not a stream that breaks", async () => {
  const { ask } = await openTestApi({
    readEvents: async () => ({
      ok: false,
      error: { code: "not_found", message: "no such run", param: null },
    }),
  });
  expect((await ask("/v1/runs/run_x/events")).status).toBe(404);
});

test("a client that disconnects stops the reading", async () => {
  let reads = 0;
  const { ask } = await openTestApi({
    readEvents: async () => {
      reads += 1;
      return { ok: true, value: { events: [progress(reads)], ended: false } };
    },
  });
  const reader = (await ask("/v1/runs/run_x/events")).body?.getReader();
  await reader?.read();
  await reader?.cancel();
  const readsAtEnd = reads;
  await new Promise((resolve) => setImmediate(resolve));
  expect(reads).toBe(readsAtEnd);
});
