/** Large replies of models use memory of the process while they arrive; replies without memory are not read. */
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test } from "vitest";
import { LIMITS } from "../../../src/contract/limits.ts";
import { callModel } from "../../../src/kernel/clients/inference.ts";
import { LARGE_CHARACTERS } from "../../../src/kernel/kit/fair-scheduler.ts";
import { BYTES_PER_CHARACTER } from "../../../src/kernel/kit/isolate-memory.ts";
import { replyReservation } from "../../../src/kernel/kit/reply-reservation.ts";
import { MEMORY, useMemory } from "../memory-budget.ts";

/** In characters. */
const HALF = 32 * 1024 * 1024;
useMemory(3 * 2 * HALF * BYTES_PER_CHARACTER);

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
    const openReservation = () => replyReservation(env, org);
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
    // One organisation may use half of the memory, and one reply may finish beyond it.
    const most = MEMORY.replies.bytes.mostOfOne / BYTES_PER_CHARACTER + LIMITS.completionBytes;
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
    const all = MEMORY.replies.bytes.take(org, Date.now(), MEMORY.replies.bytes.mostOfOne);
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
  const all = MEMORY.replies.bytes.take("org_small", Date.now(), MEMORY.replies.bytes.mostOfOne);
  const room = replyReservation(env, "org_small");
  expect(room.grow(LARGE_CHARACTERS, LARGE_CHARACTERS, signal)).toBeNull();
  // One of the organisation may finish, and the next waits.
  const rooms = [replyReservation(env, "org_small"), replyReservation(env, "org_small")];
  const waits = rooms.map((each) => each.grow(LARGE_CHARACTERS + 1, LIMITS.streamedBytes, signal));
  expect(waits.map((wait) => wait === null)).toEqual([true, false]);
  expect(rooms[0]?.grow(LIMITS.streamedBytes, LIMITS.streamedBytes, signal)).toBeNull();
  rooms[0]?.leave();
  await waits[1];
  for (const each of rooms) each.leave();
  all?.leave();
});

test("a reply that needs more than all replies may have is unusable", async () => {
  const { total } = MEMORY;
  onTestFinished(() => {
    MEMORY.total = total;
  });
  MEMORY.total = 3 * 1024 * 1024;
  const outcome = await new Server(false).call("org_large");
  expect(outcome).toMatchObject({ kind: "failed", error: { message: "the reply needs too much memory" } });
});
