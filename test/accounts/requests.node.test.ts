import { expect, test } from "vitest";
import { RequestBudget } from "../../src/accounts/request-budget.ts";
import { RequestLeases } from "../../src/accounts/request-leases.ts";
import type { RequestsAsk } from "../../src/accounts/rpc.ts";

/** A clock that moves to the next awaited time once there is nothing else to do. */
function newClock() {
  const clock = { now: 1_000_000 };
  const timers: { at: number; ring: () => void }[] = [];
  const advance = () => {
    timers.sort((a, b) => a.at - b.at);
    const next = timers.shift();
    if (next === undefined) return;
    clock.now = Math.max(clock.now, next.at);
    next.ring();
    if (timers.length > 0) setImmediate(advance);
  };
  const pause = (ms: number) => {
    if (timers.length === 0) setImmediate(advance);
    return new Promise<void>((ring) => timers.push({ at: clock.now + ms, ring }));
  };
  return { clock, times: { now: () => clock.now, pause } };
}

/** Isolates that share one counter. */
function counter(limit: number, askMs = 0) {
  const budget = new RequestBudget();
  const { clock, times } = newClock();
  let asks = 0;
  const ask: Parameters<RequestLeases["take"]>[3] = async (asked) => {
    asks += 1;
    if (askMs > 0) await times.pause(askMs);
    return budget.take(asked, clock.now);
  };
  const isolate = () => {
    const leases = new RequestLeases();
    return async () => (await leases.take("org", limit, times, ask)).refusedMs === null;
  };
  return { clock, times, isolate, asks: () => asks };
}

const letIn = (answers: readonly boolean[]) => answers.filter((one) => one).length;

test("one call gets a block for many requests", async () => {
  const { isolate, asks, clock } = counter(60_000);
  const request = isolate();
  for (let second = 0; second < 60; second += 1) {
    for (let at = 0; at < 100; at += 1) expect(await request()).toBe(true);
    clock.now += 1000;
  }
  expect(asks()).toBeLessThan(60);
});

test.each([0, 40])(
  "a whole minute's requests at once are allowed, and no more, when an ask takes %i ms",
  async (askMs) => {
    for (const limit of [60, 600]) {
      const { isolate, clock, asks } = counter(limit, askMs);
      const request = isolate();
      const crowd = async () => {
        const begun = clock.now;
        const admitted = letIn(await Promise.all(Array.from({ length: limit + 20 }, request)));
        expect(admitted).toBeGreaterThanOrEqual(limit);
        expect(admitted).toBeLessThanOrEqual(limit + Math.ceil(((clock.now - begun) * limit) / 60_000));
      };
      await crowd();
      expect(asks()).toBeLessThan(limit / 2);
      clock.now += 61_000;
      await crowd();
    }
  },
);

test("a block lasts five seconds: its rest is not used afterwards and is given back with the next ask", async () => {
  const { times, clock } = counter(600);
  const asked: RequestsAsk[] = [];
  const leases = new RequestLeases();
  const take = () =>
    leases.take("org", 600, times, async (ask) => {
      asked.push(ask);
      return { granted: 10, remaining: 590, retryMs: 0, resetMs: 1000 };
    });
  await take();
  clock.now += 4999;
  expect((await take()).refusedMs).toBeNull();
  expect(asked).toHaveLength(1);
  clock.now += 1;
  expect((await take()).refusedMs).toBeNull();
  expect(asked.map(({ unused }) => unused)).toEqual([0, 8]);
});

test("after a refusal nobody asks before something may be granted, or for at most five seconds", async () => {
  for (const [retryMs, waits] of [
    [1, 250],
    [900, 900],
    [60_000, 5000],
  ] as const) {
    const { times, clock } = counter(600);
    let asks = 0;
    const leases = new RequestLeases();
    const take = () =>
      leases.take("org", 600, times, async () => {
        asks += 1;
        return { granted: 0, remaining: 0, retryMs, resetMs: 60_000 };
      });
    expect((await take()).refusedMs).toBe(waits);
    clock.now += waits - 1;
    expect([(await take()).refusedMs, asks]).toEqual([1, 1]);
    clock.now += 1;
    expect([(await take()).refusedMs, asks]).toEqual([waits, 2]);
  }
});

test("several isolates together never allow more than the limit and what fills meanwhile", async () => {
  const { isolate, clock } = counter(600);
  const isolates = Array.from({ length: 7 }, isolate);
  const begun = clock.now;
  let admitted = 0;
  for (let tick = 0; tick < 120; tick += 1) {
    const crowd = isolates.flatMap((request) => Array.from({ length: 10 }, request));
    admitted += letIn(await Promise.all(crowd));
    clock.now += 1000;
  }
  const filled = 600 + ((clock.now - begun) / 1000) * 10;
  expect(admitted).toBeLessThanOrEqual(filled);
  expect(admitted).toBeGreaterThan(filled * 0.9);
});

test("what an isolate did not use is given back with its next ask", async () => {
  const { isolate, clock } = counter(100);
  const request = isolate();
  for (let at = 0; at < 100; at += 1) expect(await request()).toBe(true);
  expect(await request()).toBe(false);
  clock.now += 60_000;
  for (let at = 0; at < 100; at += 1) expect(await request()).toBe(true);
});

test("a flood beyond the limit costs few asks", async () => {
  const { isolate, clock, asks } = counter(600);
  const request = isolate();
  while (await request());
  const before = asks();
  for (let second = 0; second < 10; second += 1) {
    for (let at = 0; at < 1000; at += 1) {
      await request();
      clock.now += 1;
    }
  }
  expect(asks() - before).toBeLessThan(120);
});

test("a small limit is shared: no isolate takes more than it needs at first", async () => {
  const { isolate } = counter(6);
  const isolates = Array.from({ length: 6 }, isolate);
  for (const request of isolates) expect(await request()).toBe(true);
  for (const request of isolates) expect(await request()).toBe(false);
});

test("a limit of 0 allows nothing and says how long to wait", async () => {
  const budget = new RequestBudget();
  const { times } = counter(0);
  const taken = await new RequestLeases().take("key", 0, times, async (asked) => budget.take(asked, 5));
  expect(taken).toMatchObject({ limit: 0, remaining: 0, refusedMs: 5000 });
});

test("an ask that never returns delays nobody for more than 2 s", async () => {
  const { times } = counter(100);
  const budget = new RequestBudget();
  const leases = new RequestLeases();
  let asks = 0;
  const ask: Parameters<RequestLeases["take"]>[3] = (asked) => {
    asks += 1;
    return asks <= 2 ? new Promise(() => undefined) : Promise.resolve(budget.take(asked, times.now()));
  };
  for (let at = 0; at < 2; at += 1) void leases.take("org", 100, times, ask);
  const begun = times.now();
  expect(await leases.take("org", 100, times, ask)).toMatchObject({ refusedMs: null });
  expect(times.now() - begun).toBeLessThan(2100);
});
