import { expect, test } from "vitest";
import { seededWords } from "../../src/contract/random.ts";
import { permute, shuffledOrder } from "../../src/core/shuffle.ts";

const DRAWS = 20_000;
/** Quantile of the standard normal distribution: one value in 10,000 is beyond it. */
const Z = 3.719;

/**
 * The value that a chi-square with so many degrees of freedom exceeds once in 10,000: Wilson and Hilferty's
 * approximation.
 */
function critical(freedom: number): number {
  const spread = 2 / (9 * freedom);
  return freedom * (1 - spread + Z * Math.sqrt(spread)) ** 3;
}

function chiSquare(counts: Iterable<number>, expected: number): number {
  return [...counts].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

type Draw = (length: number, seed: number) => readonly number[];
const product: Draw = (length, seed) => shuffledOrder(length, seededWords("test", seed));
const ofADataset: Draw = (length, seed) => Array.from({ length }, (_, position) => permute(position, length, seed));

/** Chi-square of every item at every position. The sums of rows and columns are fixed: (n − 1)² degrees of freedom. */
function cells(length: number) {
  const counts = new Array<number>(length * length).fill(0);
  for (let seed = 0; seed < DRAWS; seed += 1) {
    for (const [position, item] of product(length, seed).entries()) {
      const cell = position * length + item;
      counts[cell] = (counts[cell] ?? 0) + 1;
    }
  }
  const expected = DRAWS / length;
  const statistic = (chiSquare(counts, expected) * (length - 1)) / length;
  return { statistic, least: critical((length - 1) ** 2) };
}

/** How many different orders were drawn, and whether equally often. */
function ordersOf(length: number, draw: Draw): { orders: number; even: boolean } {
  const counts = new Map<string, number>();
  for (let seed = 0; seed < DRAWS; seed += 1) {
    const order = draw(length, seed).join();
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  const orders = Array.from({ length }, (_, at) => at + 1).reduce((all, each) => all * each, 1);
  const missing = new Array<number>(orders - counts.size).fill(0);
  const statistic = chiSquare([...counts.values(), ...missing], DRAWS / orders);
  return { orders: counts.size, even: statistic < critical(orders - 1) };
}

test.each([2, 3, 4, 5, 6, 7, 8])("with %i items, each is equally likely at every position", (length) => {
  const { statistic, least } = cells(length);
  expect(statistic).toBeLessThan(least);
});

test.each([
  [2, 2],
  [3, 6],
  [4, 24],
  [5, 120],
  [6, 720],
])("with %i items, each of the %i orders is equally likely", (length, orders) => {
  expect(ordersOf(length, product)).toEqual({ orders, even: true });
});

test("the same test finds that the computed order of a dataset is not uniform for few rows", () => {
  expect(ordersOf(5, ofADataset).even).toBe(false);
});

test("an order is a permutation that depends only on the drawn words", () => {
  expect(product(8, 7)).toEqual(product(8, 7));
  expect([...product(400, 1)].sort((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, at) => at));
  expect(product(1, 3)).toEqual([0]);
  expect(product(0, 3)).toEqual([]);
});

test("a word that would favour the small numbers is drawn again", () => {
  const words = [2 ** 32 - 1, 2, 0];
  expect(shuffledOrder(3, () => words.shift() ?? Number.NaN)).toEqual([1, 2, 0]);
  expect(words).toEqual([]);
});
