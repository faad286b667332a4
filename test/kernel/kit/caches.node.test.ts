/** What an isolate caches, and for how long. */
import { expect, test } from "vitest";
import { EnvError } from "../../../src/contract/errors.ts";
import { TtlCache } from "../../../src/kernel/kit/caches.ts";

/** Reads that are answered when the test says so. */
function counted() {
  const waiting: ((value: number) => void)[] = [];
  const read = () => new Promise<number>((resolve) => waiting.push(resolve));
  return { read, waiting };
}

test("a value is kept for its time and read again after it", async () => {
  const cache = new TtlCache<number>(5000);
  let reads = 0;
  const ask = (now: number) => cache.get("a", now, async () => ++reads);
  expect([await ask(0), await ask(4999), await ask(5000)]).toEqual([1, 1, 2]);
});

test("one of many callers reads again before the time is over; the others get the kept value until then", async () => {
  const cache = new TtlCache<number>(5000, 4000);
  await cache.get("a", 0, async () => 1);
  const { read, waiting } = counted();
  const renewed = cache.get("a", 4000, read);
  expect(await Promise.all([cache.get("a", 4000, read), cache.get("a", 4999, read)])).toEqual([1, 1]);
  expect(waiting).toHaveLength(1);
  const late = cache.get("a", 5000, read);
  expect(waiting).toHaveLength(2);
  waiting[0]?.(2);
  waiting[1]?.(3);
  expect([await renewed, await late]).toEqual([2, 3]);
});

test("a failed read blocks no other caller, and a value that was not renewed ends with its time", async () => {
  const cache = new TtlCache<number>(5000, 4000);
  await cache.get("a", 0, async () => 1);
  await expect(cache.get("a", 4500, () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await cache.get("a", 4999, async () => 2)).toBe(1);
  expect(await cache.get("a", 5000, async () => 2)).toBe(2);
});

test("while reads fail, the last value replaces them, up to its maximum age", async () => {
  const cache = new TtlCache<number>(5000, 4000, 60_000);
  const away = () => Promise.reject(new Error("away"));
  await cache.get("a", 0, async () => 1);
  expect([await cache.get("a", 4500, away), await cache.get("a", 59_999, away)]).toEqual([1, 1]);
  await expect(cache.get("a", 60_000, away)).rejects.toThrow("away");
});

test("a value that was read as gone is gone, although it was cached before", async () => {
  const cache = new TtlCache<number>(5000, 4000, 60_000);
  await cache.get("a", 0, async () => 1);
  const gone = () => Promise.reject(new EnvError("it was deleted"));
  await expect(cache.get("a", 5000, gone)).rejects.toThrow("it was deleted");
});
