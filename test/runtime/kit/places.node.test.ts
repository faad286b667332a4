/** How many do the same at once. */
import { expect, test } from "vitest";
import { Semaphore } from "../../../src/runtime/kit/places.ts";

test("a place is held until it is left, or its holder is silent for too long", () => {
  const places = new Semaphore(2, 100);
  const first = places.take(0);
  const second = places.take(0);
  expect(places.take(50)).toBeNull();
  first?.stay(90);
  expect(places.take(120)).not.toBeNull();
  second?.stay(120);
  expect(places.take(130)).toBeNull();
  first?.leave();
  first?.leave();
  expect(places.take(130)).not.toBeNull();
  expect(places.take(130)).toBeNull();
});

test("whoever waits for a place gets the one that is left, or none when its time is over", async () => {
  const places = new Semaphore(1, 1000);
  const held = places.take(0);
  let now = 0;
  const pause = async (ms: number) => {
    now += ms;
    if (now > 150) held?.leave();
  };
  expect(await places.wait(100, { now: () => now, pause })).toBeNull();
  expect(now).toBe(100);
  expect(await places.wait(100, { now: () => now, pause })).not.toBeNull();
});
