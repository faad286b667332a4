import { expect, test } from "vitest";
import { Arena } from "../gemm.ts";
import { KvCache, type KvSlot, kvCapacity } from "../kv-cache.ts";

const shape = { context: 8, width: 8, layers: 1 };

function cacheOf(slots: number): KvCache {
  return new KvCache(shape, new Arena(kvCapacity(shape, slots)), slots);
}

/** Runs a sequence over these tokens, and ends it. */
function hold(cache: KvCache, tokens: readonly number[], salt: string | null = null): KvSlot {
  const slot = cache.acquire([...tokens, 0], salt);
  const held = slot.tokens.length;
  for (const token of tokens.slice(held)) slot.tokens.push(token);
  slot.keys.fill(tokens.length);
  cache.release(slot);
  return slot;
}

test("a sequence that continues takes over the slot of the one before", () => {
  const cache = cacheOf(3);
  const before = hold(cache, [1, 2, 3]);
  const slot = cache.acquire([1, 2, 3, 4], null);
  expect(slot).toBe(before);
  expect(slot.tokens).toEqual([1, 2, 3]);
});

test("a sequence with the same beginning gets a copy, and the original stays", () => {
  const cache = cacheOf(3);
  const before = hold(cache, [1, 2, 3]);
  const slot = cache.acquire([1, 2, 7, 7], null);
  expect(slot).not.toBe(before);
  expect(slot.tokens).toEqual([1, 2]);
  expect(slot.keys).toEqual(before.keys);
  expect(cache.acquire([1, 2, 3, 4], null)).toBe(before);
});

test("a running sequence's slot is copied for others", () => {
  const cache = cacheOf(2);
  const running = cache.acquire([1, 2, 3], null);
  running.tokens.push(1, 2, 3);
  const other = cache.acquire([1, 2, 3, 4], null);
  expect(other).not.toBe(running);
  expect(other.tokens).toEqual([1, 2, 3]);
});

test("the last token of a prompt is never taken from the cache", () => {
  const cache = cacheOf(2);
  hold(cache, [1, 2, 3]);
  expect(cache.acquire([1, 2, 3], null).tokens).toEqual([1, 2]);
});

test("nothing is shared between salts", () => {
  const cache = cacheOf(4);
  hold(cache, [1, 2, 3], "mine");
  expect(cache.acquire([1, 2, 3, 4], null).tokens).toEqual([]);
  expect(cache.acquire([1, 2, 3, 4], "yours").tokens).toEqual([]);
  expect(cache.acquire([1, 2, 3, 4], "mine").tokens).toEqual([1, 2, 3]);
});

test("the least recently used slot is reused first", () => {
  const cache = cacheOf(2);
  hold(cache, [1, 1, 1]);
  hold(cache, [2, 2, 2]);
  hold(cache, [1, 1, 1, 1]);
  hold(cache, [3, 3, 3]);
  expect(cache.acquire([1, 1, 1, 1, 1], null).tokens).toEqual([1, 1, 1, 1]);
  expect(cache.acquire([2, 2, 2, 2], null).tokens).toEqual([]);
});

test("after a change of weights no earlier entry is reused, not even from a sequence still running", () => {
  const cache = cacheOf(4);
  hold(cache, [1, 2, 3]);
  const running = cache.acquire([5, 6], null);
  running.tokens.push(5, 6);
  cache.invalidate();
  expect(cache.acquire([1, 2, 3, 4], null).tokens).toEqual([]);
  expect(cache.acquire([5, 6, 7], null).tokens).toEqual([]);
  cache.release(running);
  expect(cache.acquire([5, 6, 7], null).tokens).toEqual([]);
});

test("usage is the share of slots that run, and one sequence too many is refused", () => {
  const cache = cacheOf(2);
  expect(cache.usage).toBe(0);
  const slot = cache.acquire([1], null);
  expect(cache.usage).toBe(0.5);
  cache.acquire([1], null);
  expect(() => cache.acquire([1], null)).toThrow("in use");
  cache.release(slot);
  expect(cache.usage).toBe(0.5);
});
