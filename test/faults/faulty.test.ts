/** The faulty queues and stores of the Worker produce exactly the faults that are configured. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Desk, openDesk } from "./desk.ts";
import { losingReplies } from "./faulty-objects.ts";
import { FaultyQueue } from "./faulty-queue.ts";
import { failing } from "./faulty-store.ts";
import { CALM, Knobs } from "./knobs.ts";

let desk: Desk;
let noted: unknown[];

beforeEach(async () => {
  desk = await openDesk(CALM);
  noted = [];
  vi.spyOn(console, "log").mockImplementation((line) => noted.push(line));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await desk.stop();
});

/** New ones have no settings yet: they request them from the server first. */
const knobs = () => new Knobs(`${desk.url}/knobs`);

class Recorder {
  readonly batches: unknown[][] = [];
  metrics = () => Promise.reject(new Error("not asked for"));
  send = () => Promise.reject(new Error("not asked for"));

  async sendBatch(messages: Iterable<MessageSendRequest>): Promise<QueueSendBatchResponse> {
    this.batches.push([...messages].map(({ body, delaySeconds }) => [body, delaySeconds ?? 0]));
    return { metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } };
  }
}

async function sent(count: number): Promise<Recorder> {
  const recorder = new Recorder();
  const messages = Array.from({ length: count }, (_, body) => ({ body }));
  await new FaultyQueue(recorder, "rollout-groups-2", knobs()).sendBatch(messages);
  return recorder;
}

test("a queue without faults passes everything on unchanged", async () => {
  expect((await sent(3)).batches).toEqual([
    [
      [0, 0],
      [1, 0],
      [2, 0],
    ],
  ]);
  expect(noted).toEqual([]);
});

test("a queue drops, doubles, delays and reorders, each with a line in the log", async () => {
  desk.turn({ drop: 1 });
  expect((await sent(2)).batches).toEqual([]);
  desk.turn({ drop: 0, duplicate: 1 });
  expect((await sent(1)).batches.flat()).toEqual([
    [0, 0],
    [0, 0],
  ]);
  expect((await sent(60)).batches.map((batch) => batch.length)).toEqual([100, 20]);
  desk.turn({ duplicate: 0, delay: 1 });
  expect((await sent(1)).batches.flat()).toEqual([[0, 1]]);
  desk.turn({ delay: 0, reorder: 1 });
  const order = (await sent(50)).batches.flat();
  expect(order).toHaveLength(50);
  expect(order).not.toEqual(order.toSorted());
  expect(noted.slice(0, 4)).toEqual(
    ["dropped", "dropped", "duplicated", "duplicated"].map((kind) => `fault ${kind} rollout-groups-2`),
  );
  expect(noted.at(-1)).toBe("fault delayed rollout-groups-2");
});

test("a failing store refuses, or does the work and reports a failure; statements fail when they are run", async () => {
  let runs = 0;
  const statement = {
    bind: () => statement,
    run: async () => {
      runs += 1;
      return "done";
    },
  };
  const store = { prepare: () => statement };
  const run = () => failing(store, "DB", knobs()).prepare().bind().run();
  expect(await run()).toBe("done");
  desk.turn({ failing: ["STORE"] });
  expect(await run()).toBe("done");
  desk.turn({ failing: ["DB"] });
  const shared = failing(store, "DB", knobs()).prepare().bind();
  for (let call = 0; call < 20; call += 1) {
    await expect(shared.run()).rejects.toThrow("DB fails by plan");
  }
  expect(runs).toBeGreaterThan(2);
  expect(runs).toBeLessThan(22);
  expect(noted).toEqual(Array(20).fill("fault store"));
});

test("an answer between objects is lost after the request has taken effect", async () => {
  const count = { asked: 0 };
  const counter = {
    add: async (by: number) => {
      count.asked += by;
      return count.asked;
    },
  };
  const objects = () => losingReplies({ getByName: (_name: string) => counter }, knobs());
  expect(await objects().getByName("one").add(2)).toBe(2);
  desk.turn({ lose_reply: 1 });
  await expect(objects().getByName("one").add(3)).rejects.toThrow("the answer to add is lost");
  expect(count.asked).toBe(5);
  expect(noted).toEqual(["fault reply"]);
});
