import { expect, test } from "vitest";
import { RequestPace } from "../../../src/kernel/kit/request-pace.ts";

const MINUTE = 60_000;

/** The waits of this many simultaneous requests, in milliseconds. */
function waitsOf(pace: RequestPace, org: string, requests: number, costMs: number, now = 0): (number | null)[] {
  return Array.from({ length: requests }, () => pace.enter(org, costMs, now));
}

test("an organisation that is alone never waits", () => {
  expect(new Set(waitsOf(new RequestPace(), "alone", 10_000, 50))).toEqual(new Set([0]));
});

test("next to another organisation, requests take half of the process once they are half a second ahead", () => {
  const pace = new RequestPace();
  pace.enter("other", 4, 0);
  const waits = waitsOf(pace, "greedy", 30, 50);
  expect(waits.slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
  // One request of 50 ms in every 100 ms or, while the other's own request is paid for, 150 ms.
  expect(waits[20]).toBeGreaterThanOrEqual(1500);
  expect(waits.slice(1).every((wait, at) => Number(wait) >= Number(waits[at]))).toBe(true);
  expect(pace.enter("other", 4, 0)).toBe(0);
});

test("a charge for extra work delays later requests of the same organisation, and of no other", () => {
  const pace = new RequestPace();
  pace.charge("greedy", 10_000, 0);
  expect(pace.enter("greedy", 50, 0)).toBe(0);
  pace.enter("other", 4, 0);
  pace.charge("greedy", 2000, 0);
  expect(pace.enter("greedy", 50, 0)).toBeGreaterThan(3000);
  expect(pace.enter("other", 4, 0)).toBe(0);
});

test("several organisations that want more than their share leave one share free", () => {
  const pace = new RequestPace();
  for (let round = 0; round < 40; round += 1) for (const org of ["a", "b", "c"]) pace.enter(org, 50, 0);
  // Each has requested 2 s of the process; at a quarter of the process each, that takes 8 s.
  for (const org of ["a", "b", "c"]) {
    const wait = pace.enter(org, 50, 0);
    expect(wait).toBeGreaterThan(7000);
    expect(wait).toBeLessThan(8000);
  }
  expect(pace.enter("modest", 50, 0)).toBe(0);
});

test("a request that would wait for more than ten seconds is refused, and costs nothing", () => {
  const pace = new RequestPace();
  pace.enter("other", 4, 0);
  const waits = waitsOf(pace, "greedy", 500, 50);
  const refused = waits.filter((wait) => wait === null).length;
  expect(refused).toBeGreaterThan(300);
  expect(Math.max(...waits.map(Number))).toBeLessThanOrEqual(10_000);
  // Only the accepted requests are paid for.
  expect(pace.enter("greedy", 50, 11_000)).toBe(0);
});

test("a later request waits for none of very many organisations whose requests came at one moment", () => {
  const pace = new RequestPace();
  for (let at = 0; at < 5000; at += 1) pace.enter(`org_${at}`, 50, 0);
  // Each has an equal share. Together they are paid for in the time that they take, and one share stays free.
  expect(pace.enter("org_1", 4, 0)).not.toBe(0);
  expect(pace.enter("org_1", 4, 1000 * MINUTE)).toBe(0);
  pace.enter("other", 4, 1000 * MINUTE);
  expect(waitsOf(pace, "modest", 10, 4, 1000 * MINUTE)).toEqual(Array(10).fill(0));
});

test("urgent requests wait for no other requests of their organisation, only for many urgent ones", () => {
  const pace = new RequestPace();
  pace.enter("other", 4, 0);
  expect(waitsOf(pace, "org", 300, 50, 0).at(-1)).toBeNull();
  expect(pace.enter("org", 20, 0, "urgent")).toBe(0);
  for (let request = 0; request < 40; request += 1) pace.enter("org", 20, 0, "urgent");
  expect(pace.enter("org", 20, 0, "urgent")).toBeGreaterThan(0);
});

test("an organisation that is alone does not wait for its own urgent requests", () => {
  const pace = new RequestPace();
  for (let request = 0; request < 100; request += 1) pace.enter("org", 50, 0, "urgent");
  expect(pace.enter("org", 50, 0)).toBe(0);
});

test("another organisation counts as present for five minutes after its last request", () => {
  const pace = new RequestPace();
  pace.enter("other", 4, 0);
  expect(waitsOf(pace, "greedy", 20, 50, 4 * MINUTE).at(-1)).toBeGreaterThan(0);
  expect(waitsOf(pace, "greedy", 20, 50, 6 * MINUTE).at(-1)).toBe(0);
});
