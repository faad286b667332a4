/** The resources of a process that organisations share. */
import { expect, test } from "vitest";
import { FairSemaphore, GrowingMemory, type Reservation, Sums } from "../../../src/kernel/kit/fair-semaphore.ts";

/** The places that the organisation gets now. */
function takeAll(places: FairSemaphore, org: string, now = 0): Reservation[] {
  const reservation = places.take(org, now);
  return reservation === null ? [] : [reservation, ...takeAll(places, org, now)];
}

test("a place is held until it is given back, or until its holder has not renewed it for too long", () => {
  const places = new FairSemaphore(2, 100);
  const first = places.take("a", 0);
  places.take("b", 0);
  expect(places.take("c", 50)).toBeNull();
  first?.stay(90);
  expect(places.take("b", 120)).not.toBeNull();
  first?.stay(120);
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

test("kinds with a common total have no more together, and each is shared between organisations on its own", () => {
  const whole = new Sums(20);
  const one = new FairSemaphore(new Sums(12, whole), 1000);
  const other = new FairSemaphore(new Sums(12, whole), 1000);
  expect([takeAll(one, "a").length, takeAll(one, "b").length]).toEqual([6, 3]);
  expect([takeAll(other, "a").length, takeAll(other, "b").length, takeAll(other, "c").length]).toEqual([6, 3, 2]);
  expect([takeAll(one, "c").length, takeAll(other, "d").length]).toEqual([0, 0]);
  expect([whole.all, one.mostOfOne]).toEqual([20, 6]);
});

test("a place that is lost to silence in one kind is free for the other kinds of its part", () => {
  const whole = new Sums(() => 10);
  const one = new FairSemaphore(whole, 1000);
  const other = new FairSemaphore(whole, 9000);
  one.take("gone", 0, 10);
  expect(other.take("b", 500)).toBeNull();
  expect(other.take("b", 1500)).not.toBeNull();
});

test("a holder that comes again takes the place of its earlier self, which then changes nothing", () => {
  const places = new FairSemaphore(10, 1000);
  const before = places.open("a", 0, "r");
  before.grow(4, 0);
  const after = places.open("a", 0, "r");
  after.grow(5, 0);
  expect(places.held).toBe(5);
  before.stay(1);
  before.grow(1, 1);
  before.leave();
  expect(places.held).toBe(5);
  after.leave();
  expect(places.held).toBe(0);
});

test("a holder that was silent for too long and renews after all is counted again", () => {
  const places = new FairSemaphore(10, 1000);
  const silent = places.take("a", 0, 4);
  expect(places.take("b", 2000, 10)?.leave()).toBeUndefined();
  expect(places.held).toBe(0);
  silent?.stay(2000);
  expect(places.held).toBe(4);
});

test("of holders that wait for more, one of an organisation may finish, beyond what is counted, and then the next", () => {
  const memory = new GrowingMemory(new Sums(8), 1000, 2);
  const [one, other, third] = [memory.open("a", 0), memory.open("a", 0), memory.open("b", 0)];
  expect([one.grow(2, 0), other.grow(2, 0), third.grow(2, 0)]).toEqual([true, true, true]);
  expect([one.grow(9, 0), other.grow(9, 0), third.grow(9, 0)]).toEqual([true, false, true]);
  expect([one.grow(1, 0), other.grow(9, 0)]).toEqual([true, false]);
  expect(memory.bytes.held).toBe(6);
  one.leave();
  expect(other.grow(9, 0)).toBe(true);
  other.leave();
  third.leave();
  expect(memory.bytes.held).toBe(0);
});

test("only a large holder may have more than there is, so that small ones cannot keep it waiting", () => {
  const memory = new GrowingMemory(new Sums(8), 1000, 2, () => 4);
  const small = [memory.take("a", 0, 4), memory.take("b", 0, 2), memory.take("c", 0, 1)];
  expect(small).not.toContain(null);
  expect([memory.take("a", 0, 4), memory.take("a", 0, 5) === null, memory.take("a", 0, 5)]).toEqual([
    null,
    false,
    null,
  ]);
  expect(memory.take("b", 0, 100)).not.toBeNull();
});
