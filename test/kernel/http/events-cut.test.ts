/** The stream of a real run, cut off again and again: the client gets every event, and none twice. */
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { RollcallClient, type RunEvent } from "../../../src/sdk/client.ts";
import { openPlatform, type StreamedEvent, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

const ROLLOUTS = 150;
const SEED = 20_261_121;

let platform: TestApi;
let runId = "";
/** The events that the client gave while the run was active, with connections cut after a number of bytes each. */
const live: RunEvent[] = [];
let whole: StreamedEvent[] = [];

interface Cut {
  readonly bytes: number;
  readonly breaks: boolean;
}
const Cuts = fc.array(fc.record({ bytes: fc.nat({ max: 20_000 }), breaks: fc.boolean() }), {
  maxLength: 20,
});

/** The Worker with a network that loses connections: each of the first ones is cut. */
function clientThrough(cuts: readonly Cut[]): RollcallClient {
  const coming = [...cuts];
  return new RollcallClient({
    baseUrl: "http://platform.test",
    apiKey: "the wrapper's own",
    pause: async () => undefined,
    fetch: async (input, init = {}) => {
      const { authorization: _, ...headers } = Object.fromEntries(new Headers(init.headers));
      const { pathname, search } = new URL(String(input));
      const reply = await platform.ask(pathname + search, { headers });
      const cut = coming.shift();
      return cut === undefined || reply.body === null ? reply : cutOff(reply, reply.body, cut);
    },
  });
}

function cutOff(reply: Response, body: ReadableStream<Uint8Array>, cut: Cut): Response {
  const reader = body.getReader();
  let left = cut.bytes;
  const rest = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = left > 0 ? await reader.read() : { done: false, value: undefined };
      if (done) return controller.close();
      if (value !== undefined) controller.enqueue(value.subarray(0, left));
      left -= value?.length ?? 0;
      if (left > 0) return;
      await reader.cancel();
      if (cut.breaks) controller.error(new TypeError("terminated"));
      else controller.close();
    },
    cancel: () => reader.cancel(),
  });
  return new Response(rest, { headers: reply.headers });
}

async function collect(client: RollcallClient, after?: number): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of client.runs.events(runId, { after })) events.push(event);
  return events;
}

beforeAll(async () => {
  platform = await openPlatform();
  const run = await platform.start({
    environment: "gsm8k",
    dataset: questions(ROLLOUTS),
    model: script(RIGHT),
    max_concurrent: 50,
  });
  runId = run.id;
  const cuts = Array.from({ length: 25 }, (_, index) => ({
    bytes: 1 + ((index * 379) % 3000),
    breaks: index % 2 === 0,
  }));
  live.push(...(await collect(clientThrough(cuts))));
  whole = await platform.events(runId);
});

test("following a live run through cut connections gives each of its events once, in order", () => {
  expect(whole.length).toBeGreaterThan(ROLLOUTS);
  expect(live).toEqual(whole);
});

test("an ended run gives the same events wherever its connections are cut, from any event on", async () => {
  const property = fc.asyncProperty(Cuts, fc.nat({ max: whole.length - 1 }), async (cuts, after) => {
    expect(await collect(clientThrough(cuts), after)).toEqual(whole.slice(after));
  });
  await fc.assert(property, { numRuns: 25, seed: SEED });
});

test("a reconnect with any Last-Event-ID gives exactly the later events, and 204 after the last", async () => {
  for (let after = 0; after <= whole.length; after += after < whole.length - 5 ? 7 : 1) {
    const headers = { "last-event-id": String(after) };
    const reply = await platform.ask(`/v1/runs/${runId}/events`, { headers });
    const ids = Array.from((await reply.text()).matchAll(/^id: (\d+)$/gm), ([, id]) => Number(id));
    expect(ids).toEqual(whole.slice(after).map(({ id }) => id));
    expect(reply.status).toBe(after === whole.length ? 204 : 200);
  }
});

test("nothing is lost if the cut is between the last event and the end of the stream, or inside the last event", async () => {
  const last = whole.at(-1);
  const after = whole.length - 1;
  const frame = `id: ${last?.id}\nevent: ${last?.event}\ndata: ${JSON.stringify(last?.data)}\n\n`;
  for (let bytes = frame.length - 12; bytes <= frame.length; bytes += 1) {
    for (const breaks of [true, false]) {
      expect(await collect(clientThrough([{ bytes, breaks }]), after)).toEqual([last]);
    }
  }
});

test("one snapshot replaces events that are no longer stored, wherever the connections are cut", async () => {
  const forgotten = 60;
  await platform.inRun(runId, (_run, { storage }) => {
    storage.sql.exec("delete from events where id <= ?", forgotten);
  });
  const kept = whole.slice(forgotten);
  const property = fc.asyncProperty(Cuts, fc.nat({ max: forgotten - 1 }), async (cuts, after) => {
    const events = await collect(clientThrough(cuts), after);
    const [first] = events;
    expect(first).toMatchObject({
      id: forgotten,
      event: "snapshot",
      data: { status: "completed" },
    });
    expect(events.slice(1)).toEqual(kept);
  });
  await fc.assert(property, { numRuns: 15, seed: SEED });
});
