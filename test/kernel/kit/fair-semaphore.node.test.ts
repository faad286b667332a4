/** The resources of a process that organisations share. */
import { expect, test } from "vitest";
import { FairSemaphore, type Reservation } from "../../../src/kernel/kit/fair-semaphore.ts";

/** The places that the organisation gets now. */
function takeAll(places: FairSemaphore, org: string, now = 0): Reservation[] {
  const reservation = places.take(org, now);
  return reservation === null ? [] : [reservation, ...takeAll(places, org, now)];
}

test("a place is held until it is given back, or until its holder has not renewed it for too long", () => {
  const places = new FairSemaphore(2, 100);
  const first = places.take("a", 0);
  const second = places.take("b", 0);
  expect(places.take("c", 50)).toBeNull();
  first?.stay(90);
  expect(places.take("b", 120)).not.toBeNull();
  first?.stay(120);
  second?.stay(120);
  expect(places.take("c", 130)).toBeNull();
  first?.leave();
  first?.leave();
  expect(places.take("c", 130)).not.toBeNull();
  expect(places.take("d", 130)).toBeNull();
});

test("a waiter gets the place that becomes free, or none when its time is over", async () => {
  const places = new FairSemaphore(1, 1000);
  const held = places.take("a", 0);
  let now = 0;
  const pause = async (ms: number) => {
    now += ms;
    if (now > 150) held?.leave();
  };
  expect(await places.wait("a", 100, { now: () => now, pause })).toBeNull();
  expect(now).toBe(100);
  expect(await places.wait("a", 100, { now: () => now, pause })).not.toBeNull();
});

test("an organisation that is alone gets half of the places, and each later one finds one", () => {
  const places = new FairSemaphore(10, 1000);
  const counts = ["a", "b", "c", "d"].map((org) => takeAll(places, org).length);
  expect(counts).toEqual([5, 3, 1, 1]);
  expect(places.take("e", 0)).toBeNull();
});

test("an organisation that gives places back frees them for all, including itself", () => {
  const places = new FairSemaphore(10, 1000);
  const [first, second] = takeAll(places, "a");
  const others = takeAll(places, "b");
  expect(takeAll(places, "a")).toEqual([]);
  first?.leave();
  second?.leave();
  for (const other of others) other.leave();
  expect(takeAll(places, "a")).toHaveLength(2);
});

test("a place can grow into what a silent holder lost", () => {
  const places = new FairSemaphore(100, 1000);
  places.take("gone", 0, 50);
  const one = places.take("a", 0, 20);
  one?.stay(900);
  expect([one?.grow(20, 1000), one?.grow(20, 1001)]).toEqual([false, true]);
});

test("a place can grow only while others find the rest", () => {
  const places = new FairSemaphore(100, 1000);
  const large = places.take("a", 0, 30);
  expect(large?.grow(20, 0)).toBe(true);
  expect(large?.grow(1, 0)).toBe(false);
  const small = places.take("b", 0, 25);
  expect(small).not.toBeNull();
  expect(small?.grow(1, 0)).toBe(false);
  large?.leave();
  expect(small?.grow(1, 0)).toBe(true);
});
