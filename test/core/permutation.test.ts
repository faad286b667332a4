import fc from "fast-check";
import { expect, test } from "vitest";
import { permute } from "../../src/core/shuffle.ts";

function order(length: number, seed: number): number[] {
  return Array.from({ length }, (_, position) => permute(position, length, seed));
}

test("for any seed and length every place comes exactly once", () => {
  const lengths = fc.integer({ min: 1, max: 300 });
  const seeds = fc.integer({ min: 0, max: 0xffff_ffff });
  fc.assert(
    fc.property(lengths, seeds, (length, seed) => {
      expect(new Set(order(length, seed)).size).toBe(length);
      expect(Math.max(...order(length, seed))).toBe(length - 1);
    }),
    { numRuns: 60 },
  );
});

test("the order depends only on length and seed, and never changes", () => {
  expect(order(8, 7)).toEqual([6, 0, 7, 4, 3, 5, 1, 2]);
});

test("another seed gives another order", () => {
  expect(order(100, 1)).not.toEqual(order(100, 2));
});

test("every place is about equally likely at the first position", () => {
  const counts = new Array<number>(10).fill(0);
  for (let seed = 0; seed < 10_000; seed += 1) {
    const place = permute(0, 10, seed);
    counts[place] = (counts[place] ?? 0) + 1;
  }
  expect(Math.min(...counts)).toBeGreaterThan(850);
  expect(Math.max(...counts)).toBeLessThan(1150);
});

test("a place of a very long order is computed without the whole order", () => {
  const length = 2 ** 40 + 1;
  const places = Array.from({ length: 500 }, (_, position) => permute(position, length, 3));
  expect(new Set(places).size).toBe(500);
  expect(places.every((place) => Number.isInteger(place) && place >= 0 && place < length)).toBe(true);
});
