/** Work that begins one after another. */
import { expect, test } from "vitest";
import { EventLoopYield } from "../../../src/kernel/run/event-loop-yield.ts";

test("a single caller does not wait, and further ones begin a millisecond apart", async () => {
  const apart = new EventLoopYield();
  const pauses: number[] = [];
  const waiting = { now: () => 0, pause: async (ms: number) => void pauses.push(ms) };
  for (let asked = 0; asked < 4; asked += 1) await apart.turn(waiting);
  expect(pauses).toEqual([1, 2, 3]);
});

test("a caller whose timer fires late waits again, after those that came meanwhile", async () => {
  const apart = new EventLoopYield();
  const ask = async (count: number, at: number) => {
    const still = { now: () => at, pause: async () => undefined };
    for (let asked = 0; asked < count; asked += 1) await apart.turn(still);
  };
  await ask(40, 0);
  let at = 0;
  const pauses: number[] = [];
  const pause = async (ms: number) => {
    pauses.push(ms);
    at += ms;
    if (pauses.length > 1) return;
    // The process was busy, and others came.
    at += 100;
    await ask(20, at);
  };
  await apart.turn({ now: () => at, pause });
  expect(pauses).toEqual([40, 20]);
});

test("no caller waits longer than five seconds, however slow the process is", async () => {
  const apart = new EventLoopYield();
  const still = { now: () => 0, pause: async () => undefined };
  for (let asked = 0; asked < 9000; asked += 1) await apart.turn(still);
  let at = 0;
  const pause = async (ms: number) => {
    at += ms;
  };
  await apart.turn({ now: () => at, pause });
  expect(at).toBe(5000);
});
