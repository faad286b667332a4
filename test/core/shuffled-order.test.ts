import { expect, test } from "vitest";
import { seededWords } from "../../src/contract/random.ts";
import { permute, shuffledOrder } from "../../src/core/shuffle.ts";

const DRAWS = 20_000;
/** Of the standard normal distribution: one in 10,000 is beyond it. */
const Z = 3.719;

/** What a chi-square of so many degrees of freedom exceeds once in 10,000 times: Wilson and Hilferty's approximation. */
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

/** Of every item at every position. Rows and columns add up, which leaves (n − 1)² degrees of freedom. */
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

/** How many orders came up, and whether as often as each other. */
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

test.each([2, 3, 4, 5, 6, 7, 8])("of %i things each is equally likely at every position", (length) => {
  const { statistic, least } = cells(length);
  expect(statistic).toBeLessThan(least);
});

test.each([
  [2, 2],
  [3, 6],
  [4, 24],
  [5, 120],
  [6, 720],
])("of %i things each of the %i orders is equally likely", (length, orders) => {
  expect(ordersOf(length, product)).toEqual({ orders, even: true });
});

test("the same test finds that the order of a dataset, which is never written down, is not even for few", () => {
  expect(ordersOf(5, ofADataset).even).toBe(false);
});

test("an order is a permutation, decided by the words it is drawn from", () => {
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
