/** Work that runs one pass at a time, and how long it waits after a failure. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SingleFlight } from "../../../src/kernel/kit/single-flight.ts";

beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const works = async () => undefined;
const fails = async () => {
  throw new Error("it is away");
};

/** A flight on a clock that each pass advances to when it may begin; returns how long that was. */
function flying() {
  let now = 1_000_000;
  const flight = new SingleFlight("work", () => now);
  const pass = async (work: () => Promise<void>) => {
    const at = flight.after(0) ?? 0;
    const rested = Math.max(0, at - now);
    now += rested;
    await flight.run({}, work);
    return rested;
  };
  return { flight, pass };
}

test("after a failure it waits for a second, then twice as long each time up to a minute, and a success resets that", async () => {
  const { pass } = flying();
  const rests: number[] = [];
  for (const work of [fails, fails, fails, works, works, fails, works]) rests.push(await pass(work));
  expect(rests).toEqual([0, 1000, 2000, 4000, 0, 0, 1000]);
  for (let times = 0; times < 8; times += 1) await pass(fails);
  expect(await pass(works)).toBe(60_000);
});

test("nothing starts while a pass runs or waits, and the caller gets the time to come back", async () => {
  const { flight } = flying();
  const going = Promise.withResolvers<void>();
  const first = flight.run({}, () => going.promise);
  expect([flight.run({}, works), flight.after(5), flight.after(null)]).toEqual([null, 1_001_000, null]);
  going.reject(new Error("it is away"));
  await first;
  expect([flight.run({}, works), flight.after(5)]).toEqual([null, 1_001_000]);
});

test("a pass that never ends counts as gone after a quarter of an hour, and the next one keeps others out", async () => {
  let now = 1_000_000;
  const flight = new SingleFlight("work", () => now);
  const [ended, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = flight.run({}, () => ended.promise);
  now += 15 * 60_000 - 1;
  expect(flight.run({}, works)).toBe(null);
  now += 1;
  const second = flight.run({}, () => going.promise);
  ended.resolve();
  await first;
  expect(flight.run({}, works)).toBe(null);
  going.resolve();
  await second;
  expect(flight.run({}, works)).not.toBe(null);
});
