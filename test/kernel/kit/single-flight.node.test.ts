/** Work that is done one pass at a time, and how long it rests after it failed. */
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

/** One flight on a clock, which each pass turns on to when it may begin; how long that was away. */
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

test("after a failure it rests for a second, then twice as long each time up to a minute, and one success ends that", async () => {
  const { pass } = flying();
  const rests: number[] = [];
  for (const work of [fails, fails, fails, works, works, fails, works]) rests.push(await pass(work));
  expect(rests).toEqual([0, 1000, 2000, 4000, 0, 0, 1000]);
  for (let times = 0; times < 8; times += 1) await pass(fails);
  expect(await pass(works)).toBe(60_000);
});

test("nothing is begun while a pass goes on or rests, and whoever asks is told when to come back", async () => {
  const { flight } = flying();
  const going = Promise.withResolvers<void>();
  const first = flight.run({}, () => going.promise);
  expect([flight.run({}, works), flight.after(5), flight.after(null)]).toEqual([null, 1_001_000, null]);
  going.reject(new Error("it is away"));
  await first;
  expect([flight.run({}, works), flight.after(5)]).toEqual([null, 1_001_000]);
});
