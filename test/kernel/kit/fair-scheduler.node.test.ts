/** Scheduling turns in a process that organisations share. */
import { expect, test } from "vitest";
import { FairScheduler, PASS_STEPS } from "../../../src/kernel/kit/fair-scheduler.ts";
import { countingScheduler, longestPass } from "../counting-scheduler.ts";

/** Computes `steps` steps, `times` times in sequence. */
async function loop(scheduler: FairScheduler, org: string, times: number, steps: number): Promise<void> {
  for (let time = 0; time < times; time += 1) await scheduler.spend(org, steps);
}

test("no pass of the event loop exceeds its steps by more than what is counted at once, however many compute", async () => {
  const { scheduler, seen } = countingScheduler();
  const steps = PASS_STEPS / 10;
  await Promise.all(Array.from({ length: 20 }, (_, at) => loop(scheduler, `org_${at % 4}`, 25, steps)));
  expect(seen.filter((one) => one !== "loop")).toHaveLength(500);
  expect(longestPass(seen)).toBeLessThanOrEqual(PASS_STEPS + steps);
});

test("light work waits for nothing if nothing else waits", async () => {
  let waits = 0;
  const wait = async () => {
    waits += 1;
  };
  await loop(new FairScheduler({ now: () => 0, wait }), "org", 100, PASS_STEPS / 100);
  expect(waits).toBe(0);
});

/** Scheduling turns on a clock that only waits advance. */
function clockedScheduler(): { scheduler: FairScheduler; clock: { now: number } } {
  const clock = { now: 0 };
  const wait = async (ms: number) => {
    await new Promise(setImmediate);
    clock.now += ms;
  };
  return { scheduler: new FairScheduler({ now: () => clock.now, wait }), clock };
}

test("an organisation rests for work beyond a pass only after the work is computed", async () => {
  const { scheduler, clock } = clockedScheduler();
  await scheduler.spend("greedy", 6 * PASS_STEPS);
  // At 50 ns for each step, it is computed now.
  clock.now += 300;
  await scheduler.spend("greedy", 1);
  expect(clock.now).toBeGreaterThanOrEqual(300 + 250);
});

test("another organisation does not wait for that rest, nor for an estimate that was too high", async () => {
  const { scheduler, clock } = clockedScheduler();
  await scheduler.spend("greedy", 6 * PASS_STEPS);
  clock.now += 20;
  await scheduler.spend("other", 1);
  expect(clock.now).toBeLessThanOrEqual(20 + 12);
});

test("work that is computed later is paid for by the share of its organisation, and nobody rests from it", async () => {
  const { scheduler } = clockedScheduler();
  scheduler.charge("greedy", 100 * PASS_STEPS);
  expect(scheduler.restOf("greedy")).toBe(0);
  scheduler.notePresence("other");
  expect(scheduler.restOf("other")).toBe(0);
  // 5 s of work at half of the process, less what may be ahead of the share.
  expect(scheduler.restOf("greedy")).toBe(9500);
});

test("neither work that is computed later nor the turn of another organisation ends an organisation's rest early", async () => {
  const { scheduler, clock } = clockedScheduler();
  await scheduler.spend("greedy", 6 * PASS_STEPS);
  const rest = scheduler.restOf("greedy");
  expect(rest).toBeGreaterThanOrEqual(300 + 250);
  scheduler.charge("greedy", 1);
  expect(scheduler.restOf("greedy")).toBe(rest);
  // Another organisation's turn ends the rest of the process, and nobody else's.
  clock.now += 20;
  await scheduler.spend("other", 1);
  expect(scheduler.restOf("greedy")).toBe(rest - clock.now);
});

/** Milliseconds until an organisation has computed so many passes of 50 ms. */
async function timeOf(passes: number, { scheduler, clock }: ReturnType<typeof clockedScheduler>): Promise<number> {
  const from = clock.now;
  for (let pass = 0; pass < passes; pass += 1) {
    await scheduler.spend("greedy", PASS_STEPS);
    clock.now += 50;
  }
  return clock.now - from;
}

test("while another organisation is present and does not wait, one gets half of the process", async () => {
  const clocked = clockedScheduler();
  expect(await timeOf(20, clocked)).toBeLessThanOrEqual(20 * 62);
  clocked.scheduler.notePresence("other");
  expect(await timeOf(20, clocked)).toBeGreaterThanOrEqual(18 * 100);
  clocked.clock.now += 60_001;
  expect(await timeOf(20, clocked)).toBeLessThanOrEqual(20 * 62);
});

test("two organisations that always wait get half each, however many loops each has and however they divide their work", async () => {
  const { scheduler, seen } = countingScheduler();
  const heavy = Promise.all(Array.from({ length: 10 }, () => loop(scheduler, "heavy", 10, PASS_STEPS)));
  const light = Promise.all(Array.from({ length: 3 }, () => loop(scheduler, "light", 100, PASS_STEPS / 10)));
  await light;
  const had = (org: string) => seen.reduce((sum, one) => sum + (one !== "loop" && one.org === org ? one.steps : 0), 0);
  expect(had("light")).toBe(30 * PASS_STEPS);
  expect(had("heavy")).toBeLessThanOrEqual(34 * PASS_STEPS);
  await heavy;
  expect(had("heavy")).toBe(100 * PASS_STEPS);
});

test("work that holds up other organisations begins before other work of its organisation", async () => {
  const { scheduler } = clockedScheduler();
  const giveBack = await scheduler.take("org");
  const begun: string[] = [];
  const take = async (name: string, first?: boolean) => {
    const back = await scheduler.take("org", first);
    begun.push(name);
    back(1);
  };
  const waiting = [take("object"), take("object"), take("consumer", true)];
  giveBack(1);
  await Promise.all(waiting);
  expect(begun).toEqual(["consumer", "object", "object"]);
});

test("an organisation that was idle gets no more than its half afterwards", async () => {
  const { scheduler, seen } = countingScheduler();
  await loop(scheduler, "busy", 50, PASS_STEPS);
  const begun = seen.length;
  await Promise.all([loop(scheduler, "busy", 10, PASS_STEPS), loop(scheduler, "idle", 10, PASS_STEPS)]);
  const order = seen.slice(begun).flatMap((one) => (one === "loop" ? [] : [one.org]));
  const first = order.slice(0, 10).filter((org) => org === "busy").length;
  expect(first).toBeGreaterThanOrEqual(4);
});

test("no other work runs while a turn is held, until it is given back or its holder is gone", async () => {
  let now = 0;
  const wait = async (ms: number) => {
    now += ms;
  };
  const scheduler = new FairScheduler({ now: () => now, wait });
  await scheduler.take("gone");
  await scheduler.spend("other", 1);
  expect(now).toBeGreaterThanOrEqual(2000);
  expect(now).toBeLessThan(3000);
  const giveBack = await scheduler.take("org");
  const from = now;
  giveBack(5);
  await scheduler.spend("other", 1);
  expect(now).toBe(from);
});

test("a waiter that disappears without notice blocks no other", async () => {
  let now = 0;
  const { promise: never } = Promise.withResolvers<void>();
  let waits = 0;
  const wait = async (ms: number) => {
    waits += 1;
    if (waits === 1) await never;
    now += ms;
  };
  const scheduler = new FairScheduler({ now: () => now, wait });
  await scheduler.spend("other", 10 * PASS_STEPS);
  scheduler.spend("dropped", 1).catch(() => undefined);
  await scheduler.spend("other", 1);
  expect(now).toBeGreaterThan(5000);
  expect(now).toBeLessThan(6000);
});

test("beyond 10,000 organisations the one whose last work is the longest ago is forgotten, not the one that came first", async () => {
  const scheduler = new FairScheduler({ now: () => 0, wait: async () => undefined });
  await scheduler.spend("first", 1);
  for (let at = 1; at < 10_000; at += 1) await scheduler.spend(`org_${at}`, 1);
  await scheduler.spend("first", 1000);
  await scheduler.spend("last", 1);
  expect(scheduler.levelOf("first") - scheduler.levelOf("nobody")).toBe(1000);
});
