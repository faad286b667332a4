/** Event streams that are cut at any place: the client misses no event and repeats none. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type EventFeed, framesOf } from "../../src/kernel/http/events.ts";
import type { StoredEvent as SentEvent } from "../../src/kernel/messages/run-records.ts";
import type { RunEvent } from "../../src/sdk/client.ts";
import { RUN } from "../kernel/http/examples.ts";
import { type Answer, collect, recorded, refusal } from "./recording-fetch.ts";

const FINISHED = {
  rollout_id: "ro_1",
  example_id: 1,
  outcome: "failed",
  reason: "é😀\u2028: not a line\r",
  reward: null,
  turns: 1,
  stop_condition: null,
};

/** A run with so many events; it keeps the newest `kept`, as a run's object does. */
function runOf(count: number, kept = count) {
  const events: SentEvent[] = Array.from({ length: count }, (_, index) =>
    index === count - 1
      ? { id: count, event: "run.completed", data: { status: "completed", error: null } }
      : { id: index + 1, event: "rollout.finished", data: { ...FINISHED, turns: index } },
  );
  /** The events after `after`, once `happened` events have happened. */
  const after = (seen: number, happened: number): SentEvent[] => {
    const oldest = Math.max(1, happened - kept + 1);
    const rest = events.slice(Math.max(seen, oldest - 1), happened);
    if (seen >= oldest - 1) return rest;
    const data = { status: "running", counts: RUN.counts };
    return [{ id: oldest - 1, event: "snapshot", data }, ...rest];
  };
  return { events, after };
}

/** The bytes of one connection, by the server's own code, if so many events have happened and no more come. */
async function wireOf(rest: SentEvent[], ended: boolean): Promise<Uint8Array> {
  const [head, tail] = [rest.slice(0, 5), rest.slice(5)];
  const batches = [{ events: tail, ended }];
  const feed: EventFeed = {
    now: () => 0,
    allowed: async () => true,
    report: () => undefined,
    read: async () => batches.shift() ?? Promise.reject(new Error("the platform goes down")),
  };
  let text = "";
  const first = { events: head, ended: ended && tail.length === 0 };
  for await (const frame of framesOf(feed, first, 0)) text += frame;
  return new TextEncoder().encode(text);
}

/** A body with these bytes in pieces of this size, which then ends regularly or as a broken connection. */
function bodyOf(bytes: Uint8Array, piece: number, breaks: boolean): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream({
    pull(controller) {
      if (sent < bytes.length) controller.enqueue(bytes.subarray(sent, sent + piece));
      else if (breaks) controller.error(new TypeError("terminated"));
      else controller.close();
      sent += piece;
    },
  });
}

const lastSeen = (headers: Headers) => Number(headers.get("last-event-id") ?? 0);

test("a stream cut at any byte, broken or ended, continues after the last complete event", async () => {
  const { events, after } = runOf(3);
  const wires = await Promise.all([0, 1, 2].map((seen) => wireOf(after(seen, 3), true)));
  const whole = wires[0] ?? new Uint8Array();
  for (let cut = 0; cut <= whole.length; cut += 1) {
    const { client } = recorded(({ headers }, index) => {
      if (index === 0) return new Response(bodyOf(whole.subarray(0, cut), 50, cut % 2 === 0));
      const rest = wires[lastSeen(headers)];
      return rest === undefined ? new Response(null, { status: 204 }) : new Response(rest.slice());
    });
    expect(await collect<RunEvent>(client.runs.events("run_1")), `cut at ${cut}`).toEqual(events);
  }
});

/** The behaviour of one connection. `grows`: events since the previous one. */
const Connection = fc.record({
  grows: fc.nat({ max: 60 }),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
  piece: fc.integer({ min: 1, max: 400 }),
  end: fc.constantFrom("breaks", "ends", "refused", "unreachable", "silent"),
});

test("whatever happens to the connections, every event of a running run comes once and in order", async () => {
  const property = fc.asyncProperty(
    fc.array(Connection, { maxLength: 25 }),
    fc.integer({ min: 2, max: 400 }),
    async (connections, count) => {
      const { events, after } = runOf(count);
      let happened = 0;
      const { client, waits } = recorded(async ({ headers }, index) => {
        const plan = connections[index];
        happened = plan === undefined ? count : Math.min(count, happened + plan.grows);
        return await answerOf(plan, after(lastSeen(headers), happened), happened === count);
      });
      expect(await collect<RunEvent>(client.runs.events("run_1"))).toEqual(events);
      expect(waits.length).toBeLessThanOrEqual(connections.length);
    },
  );
  await fc.assert(property, { numRuns: 60, seed: 20_261_121 });
});

test("a client that is further behind than the kept events gets a snapshot, and then every event", async () => {
  const property = fc.asyncProperty(
    fc.array(Connection, { maxLength: 20 }),
    fc.integer({ min: 50, max: 300 }),
    async (connections, count) => {
      const { events, after } = runOf(count, 20);
      let happened = 0;
      const { client } = recorded(async ({ headers }, index) => {
        const plan = connections[index];
        happened = plan === undefined ? count : Math.min(count, happened + plan.grows);
        return await answerOf(plan, after(lastSeen(headers), happened), happened === count);
      });
      let last = 0;
      for await (const event of client.runs.events("run_1")) {
        if (event.event === "snapshot") expect(event.id).toBeGreaterThan(last);
        else expect([event.id, event]).toEqual([last + 1, events[last]]);
        last = event.id;
      }
      expect(last).toBe(count);
    },
  );
  await fc.assert(property, { numRuns: 40, seed: 20_261_121 });
});

async function answerOf(
  plan: { share: number; piece: number; end: string } | undefined,
  rest: SentEvent[],
  ended: boolean,
): Promise<Response> {
  if (rest.length === 0 && ended) return new Response(null, { status: 204 });
  const wire = await wireOf(rest, ended);
  if (plan === undefined) return new Response(bodyOf(wire, 1000, false));
  if (plan.end === "refused") return refusal(503, "internal");
  if (plan.end === "unreachable") throw new TypeError("fetch failed");
  const cut = wire.subarray(0, Math.round(plan.share * wire.length));
  if (plan.end === "silent") throw new DOMException("silent", "TimeoutError");
  return new Response(bodyOf(cut, plan.piece, plan.end === "breaks"));
}

test("a silent stream is opened again", async () => {
  const { events, after } = runOf(3);
  const wire = await wireOf(after(0, 2), false);
  const silent: Answer = ({ signal }) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(wire);
        signal?.addEventListener("abort", () => controller.error(signal.reason));
      },
    });
    return new Response(body);
  };
  const { client, asked } = recorded(async (request, index) =>
    index === 0
      ? await silent(request, 0)
      : new Response(bodyOf(await wireOf(after(lastSeen(request.headers), 3), true), 50, false)),
  );
  expect(await collect(client.runs.events("run_1", { timeoutMs: 5 }))).toEqual(events);
  expect(asked.map(({ headers }) => lastSeen(headers))).toEqual([0, 2]);
});

test("the wait before the next connection is the one that the server requests", async () => {
  const { client, waits } = recorded((_asked, index) =>
    index === 0
      ? new Response(": here\n\nretry: 40\n\n")
      : new Response('id: 1\nevent: run.cancelled\ndata: {"status":"cancelled","error":null}\n\n'),
  );
  expect((await collect(client.runs.events("run_1"))).map(({ event }) => event)).toEqual(["run.cancelled"]);
  expect(waits).toEqual([40]);
});

test("after 30 connections without an event the client gives up", async () => {
  const { client, asked } = recorded(() => {
    throw new TypeError("fetch failed");
  });
  await expect(collect(client.runs.events("run_1"))).rejects.toMatchObject({
    name: "TimeoutError",
    message: expect.stringContaining("sent nothing"),
  });
  expect(asked.length).toBe(30);
});
