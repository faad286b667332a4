import { expect, test } from "vitest";
import { RequestBudget } from "../../../src/runtime/account/request-budget.ts";
import { BLOCK_MS, RequestLeases } from "../../../src/runtime/account/request-leases.ts";

/** Isolates that share one counter, on one clock. */
function counter(limit: number) {
  const budget = new RequestBudget();
  const clock = { now: 1_000_000 };
  const now = () => clock.now;
  let asks = 0;
  const ask: Parameters<RequestLeases["take"]>[3] = async (asked) => {
    asks += 1;
    return budget.take(asked, clock.now);
  };
  const isolate = () => {
    const leases = new RequestLeases();
    return async () => (await leases.take("org", limit, now, ask)).refusedMs === null;
  };
  return { clock, isolate, asks: () => asks };
}

test("a block serves many requests with one call", async () => {
  const { isolate, asks, clock } = counter(60_000);
  const request = isolate();
  for (let second = 0; second < 60; second += 1) {
    for (let at = 0; at < 100; at += 1) expect(await request()).toBe(true);
    clock.now += 1000;
  }
  expect(asks()).toBeLessThan(60);
});

test("several isolates together let through the limit of a minute, and what fills meanwhile", async () => {
  const { isolate, clock } = counter(600);
  const isolates = Array.from({ length: 7 }, isolate);
  let let_in = 0;
  for (let tick = 0; tick < 120; tick += 1) {
    for (const request of isolates) for (let at = 0; at < 10; at += 1) let_in += Number(await request());
    clock.now += 1000;
  }
  // A full bucket, then 10 a second for two minutes; a request too many is paid for by later ones.
  expect(let_in).toBeGreaterThan(1500);
  expect(let_in).toBeLessThanOrEqual(600 + 120 * 10 + 7 * 10);
});

test("what an isolate did not use is given back with its next ask", async () => {
  const { isolate, clock } = counter(100);
  const request = isolate();
  for (let at = 0; at < 100; at += 1) expect(await request()).toBe(true);
  expect(await request()).toBe(false);
  clock.now += 60_000;
  for (let at = 0; at < 100; at += 1) expect(await request()).toBe(true);
});

test("after a refusal nobody is asked until something may be granted again", async () => {
  const { isolate, clock, asks } = counter(12);
  const request = isolate();
  while (await request());
  const before = asks();
  for (let at = 0; at < 1000; at += 1) expect(await request()).toBe(false);
  expect(asks()).toBe(before);
  clock.now += BLOCK_MS;
  expect(await request()).toBe(true);
});

test("a limit of none lets nothing through and says to wait", async () => {
  const leases = new RequestLeases();
  const budget = new RequestBudget();
  const taken = await leases.take(
    "key",
    0,
    () => 5,
    async (asked) => budget.take(asked, 5),
  );
  expect(taken).toMatchObject({ limit: 0, remaining: 0, refusedMs: BLOCK_MS });
});

test("while one request asks for the next block, as many go on as the last one had and no more", async () => {
  const leases = new RequestLeases();
  const budget = new RequestBudget();
  const gate = Promise.withResolvers<void>();
  const asked: number[] = [];
  const take = () =>
    leases.take(
      "org",
      1000,
      () => 5,
      async (want) => {
        asked.push(want.unused);
        if (asked.length > 1) await gate.promise;
        return budget.take(want, 5);
      },
    );
  for (let at = 0; at < 4; at += 1) await take();
  const waiting = take();
  for (let at = 0; at < 4; at += 1) expect((await take()).refusedMs).toBeNull();
  expect(asked).toEqual([0, 0]);
  gate.resolve();
  await waiting;
  while (asked.length < 3) await take();
  expect(asked[2]).toBe(0);
});
