/** Scheduling turns in a process that organisations share. */
import { expect, test } from "vitest";
import { FairTurns, PASS_STEPS } from "../../../src/kernel/kit/fair-turns.ts";
import { countingTurns, longestPass } from "../turns.ts";

/** Computes `steps` steps, `times` times in sequence. */
async function loop(turns: FairTurns, org: string, times: number, steps: number): Promise<void> {
  for (let time = 0; time < times; time += 1) await turns.spend(org, steps);
}

test("no pass of the event loop exceeds its steps by more than what is counted at once, however many compute", async () => {
  const { turns, seen } = countingTurns();
  const steps = PASS_STEPS / 10;
  await Promise.all(Array.from({ length: 20 }, (_, at) => loop(turns, `org_${at % 4}`, 25, steps)));
  expect(seen.filter((one) => one !== "loop")).toHaveLength(500);
  expect(longestPass(seen)).toBeLessThanOrEqual(PASS_STEPS + steps);
});

test("light work waits for nothing if nothing else waits", async () => {
  let waits = 0;
  const wait = async () => {
    waits += 1;
  };
  await loop(new FairTurns({ now: () => 0, wait }), "org", 100, PASS_STEPS / 100);
  expect(waits).toBe(0);
});

/** Scheduling turns on a clock that only waits advance. */
function clockedTurns(): { turns: FairTurns; clock: { now: number } } {
  const clock = { now: 0 };
  const wait = async (ms: number) => {
    await new Promise(setImmediate);
    clock.now += ms;
  };
  return { turns: new FairTurns({ now: () => clock.now, wait }), clock };
}

test("an organisation rests for work beyond a pass only after the work is computed", async () => {
  const { turns, clock } = clockedTurns();
  await turns.spend("greedy", 6 * PASS_STEPS);
  // At 50 ns for each step, it is computed now.
  clock.now += 300;
  await turns.spend("greedy", 1);
  expect(clock.now).toBeGreaterThanOrEqual(300 + 250);
});

test("another organisation does not wait for that rest, nor for an estimate that was too high", async () => {
  const { turns, clock } = clockedTurns();
  await turns.spend("greedy", 6 * PASS_STEPS);
  clock.now += 20;
  await turns.spend("other", 1);
  expect(clock.now).toBeLessThanOrEqual(20 + 12);
});

test("work that is computed later is paid for by the share of its organisation, and nobody rests from it", async () => {
  const { turns } = clockedTurns();
  turns.charge("greedy", 100 * PASS_STEPS);
  expect(turns.restOf("greedy")).toBe(0);
  turns.notePresence("other");
  expect(turns.restOf("other")).toBe(0);
  // 5 s of work at half of the process, less what may be ahead of the share.
  expect(turns.restOf("greedy")).toBe(9500);
});

/** Milliseconds until an organisation has computed so many passes of 50 ms. */
async function timeOf(passes: number, { turns, clock }: ReturnType<typeof clockedTurns>): Promise<number> {
  const from = clock.now;
  for (let pass = 0; pass < passes; pass += 1) {
    await turns.spend("greedy", PASS_STEPS);
    clock.now += 50;
  }
  return clock.now - from;
}

test("while another organisation is present and does not wait, one gets half of the process", async () => {
  const clocked = clockedTurns();
  expect(await timeOf(20, clocked)).toBeLessThanOrEqual(20 * 62);
  clocked.turns.notePresence("other");
  expect(await timeOf(20, clocked)).toBeGreaterThanOrEqual(18 * 100);
  clocked.clock.now += 60_001;
  expect(await timeOf(20, clocked)).toBeLessThanOrEqual(20 * 62);
});

test("two organisations that always wait get half each, however many loops each has and however they divide their work", async () => {
  const { turns, seen } = countingTurns();
  const heavy = Promise.all(Array.from({ length: 10 }, () => loop(turns, "heavy", 10, PASS_STEPS)));
  const light = Promise.all(Array.from({ length: 3 }, () => loop(turns, "light", 100, PASS_STEPS / 10)));
  await light;
  const had = (org: string) => seen.reduce((sum, one) => sum + (one !== "loop" && one.org === org ? one.steps : 0), 0);
  expect(had("light")).toBe(30 * PASS_STEPS);
  expect(had("heavy")).toBeLessThanOrEqual(34 * PASS_STEPS);
  await heavy;
  expect(had("heavy")).toBe(100 * PASS_STEPS);
});

test("work that holds up other organisations begins before other work of its organisation", async () => {
  const { turns } = clockedTurns();
  const giveBack = await turns.take("org");
  const begun: string[] = [];
  const take = async (name: string, first?: boolean) => {
    const back = await turns.take("org", first);
    begun.push(name);
    back(1);
  };
  const waiting = [take("object"), take("object"), take("consumer", true)];
  giveBack(1);
  await Promise.all(waiting);
  expect(begun).toEqual(["consumer", "object", "object"]);
});

test("an organisation that was idle gets no more than its half afterwards", async () => {
  const { turns, seen } = countingTurns();
  await loop(turns, "busy", 50, PASS_STEPS);
  const begun = seen.length;
  await Promise.all([loop(turns, "busy", 10, PASS_STEPS), loop(turns, "idle", 10, PASS_STEPS)]);
  const order = seen.slice(begun).flatMap((one) => (one === "loop" ? [] : [one.org]));
  const first = order.slice(0, 10).filter((org) => org === "busy").length;
  expect(first).toBeGreaterThanOrEqual(4);
});

test("no other work runs while a turn is held, until it is given back or its holder is gone", async () => {
  let now = 0;
  const wait = async (ms: number) => {
    now += ms;
  };
  const turns = new FairTurns({ now: () => now, wait });
  await turns.take("gone");
  await turns.spend("other", 1);
  expect(now).toBeGreaterThanOrEqual(60_000);
  const giveBack = await turns.take("org");
  const from = now;
  giveBack(5);
  await turns.spend("other", 1);
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
  const turns = new FairTurns({ now: () => now, wait });
  await turns.spend("other", 10 * PASS_STEPS);
  turns.spend("dropped", 1).catch(() => undefined);
  await turns.spend("other", 1);
  expect(now).toBeGreaterThan(5000);
  expect(now).toBeLessThan(6000);
});

test("beyond 10,000 organisations the one whose last work is the longest ago is forgotten, not the one that came first", async () => {
  const turns = new FairTurns({ now: () => 0, wait: async () => undefined });
  await turns.spend("first", 1);
  for (let at = 1; at < 10_000; at += 1) await turns.spend(`org_${at}`, 1);
  await turns.spend("first", 1000);
  await turns.spend("last", 1);
  expect(turns.levelOf("first") - turns.levelOf("nobody")).toBe(1000);
});
