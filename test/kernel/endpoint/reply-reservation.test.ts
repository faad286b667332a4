/** Large replies of models use memory of the process while they arrive; replies without memory are not read. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { callModel } from "../../../src/kernel/clients/inference.ts";
import { REPLIES_HELD, replyReservation } from "../../../src/kernel/endpoint/reply-reservation.ts";
import { LARGE_CHARACTERS } from "../../../src/kernel/kit/fair-scheduler.ts";

const PIECE = 100_000;
const PIECES = 39;
const CALLS = 16;
const CALL = { base_url: "https://m.example/v1", api_key: null, model: "m", messages: [], tools: [], sampling: {} };

/** A server whose replies have 39 pieces. A reply ends only after `mayEnd`. */
class Server {
  /** Characters that were read from it. */
  sent = 0;
  ended = 0;
  readonly #told: boolean;
  readonly #mayEnd: Promise<void>;

  constructor(told: boolean, mayEnd: Promise<void> = Promise.resolve()) {
    this.#told = told;
    this.#mayEnd = mayEnd;
  }

  readonly send = async (): Promise<Response> => {
    const begin = '{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"';
    const pieces = [begin, ...Array<string>(PIECES).fill("x".repeat(PIECE))];
    const end = '"}}]}';
    const length = pieces.join("").length + end.length;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const next = pieces.shift();
      if (next === undefined) {
        await this.#mayEnd;
        this.ended += 1;
      }
      this.sent += next?.length ?? 0;
      controller.enqueue(new TextEncoder().encode(next ?? end));
      if (next === undefined) controller.close();
    };
    const body = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
    const headers = { "content-type": "application/json", ...(this.#told && { "content-length": String(length) }) };
    return new Response(body, { headers });
  };

  call(org: string, signal = new AbortController().signal) {
    const openReservation = () => replyReservation(org);
    return callModel({ ...CALL, idempotency_key: "k", signal, send: this.send, openReservation });
  }
}

/** Waits until nothing was sent for many turns of the event loop. */
async function settled(server: Server): Promise<number> {
  for (let quiet = 0, seen = -1; quiet < 20; quiet += 1) {
    if (seen !== server.sent) quiet = 0;
    seen = server.sent;
    await scheduler.wait(5);
  }
  return server.sent;
}

for (const told of [true, false]) {
  test(`many large replies are read no further than memory allows, ${told ? "told" : "unknown"} length`, async () => {
    const org = `org_many_${told}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    const server = new Server(told, promise);
    const calls = Array.from({ length: CALLS }, () => server.call(org));
    const sent = await settled(server);
    // One organisation may use half of the memory, and half of the replies that may finish.
    const most = LIMITS.repliesCharacters / 2 + (LIMITS.repliesToEnd / 2) * LIMITS.completionBytes;
    expect(sent).toBeGreaterThan(most / 3);
    // Each waiting reply has one piece that was read and is not kept.
    expect(sent).toBeLessThan(most + CALLS * PIECE);
    // Another organisation gets memory meanwhile.
    const other = new Server(told);
    expect((await other.call(`${org}_other`)).kind).toBe("answered");
    resolve();
    const outcomes = await Promise.all(calls);
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["answered"]));
    expect(server.ended).toBe(CALLS);
    const all = REPLIES_HELD.take(org, Date.now(), LIMITS.repliesCharacters / 2);
    expect(all).not.toBeNull();
    all?.leave();
  });
}

test("a reply that waits for memory ends with its call's time", async () => {
  const org = "org_late";
  const { promise, resolve } = Promise.withResolvers<void>();
  const server = new Server(true, promise);
  const calls = Array.from({ length: 12 }, () => server.call(org));
  await settled(server);
  const late = new AbortController();
  const waiting = server.call(org, late.signal);
  late.abort();
  expect(await waiting).toEqual({ kind: "aborted" });
  expect(server.ended).toBe(0);
  resolve();
  expect((await Promise.all(calls)).map(({ kind }) => kind)).toEqual(Array(12).fill("answered"));
});

test("a small reply needs no reservation, and a large one may finish although others hold all memory", async () => {
  const signal = new AbortController().signal;
  const all = REPLIES_HELD.take("org_small", Date.now(), LIMITS.repliesCharacters / 2);
  const room = replyReservation("org_small");
  expect(room.grow(LARGE_CHARACTERS, LARGE_CHARACTERS, signal)).toBeNull();
  // Two of one organisation may finish, and the third waits.
  const rooms = [replyReservation("org_small"), replyReservation("org_small"), replyReservation("org_small")];
  const waits = rooms.map((each) => each.grow(LARGE_CHARACTERS + 1, LIMITS.streamedBytes, signal));
  expect(waits.map((wait) => wait === null)).toEqual([true, true, false]);
  expect(rooms[0]?.grow(LIMITS.streamedBytes, LIMITS.streamedBytes, signal)).toBeNull();
  rooms[1]?.leave();
  await waits[2];
  for (const each of rooms) each.leave();
  all?.leave();
});
