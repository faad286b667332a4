/**
 * A seeded shuffle that is never written down: where each position goes is computed on its own, in constant memory.
 *
 * A Feistel network permutes the smallest domain of 4^b numbers that holds `length`; a number that lands beyond
 * `length` is sent through again until it lands inside (cycle walking: fewer than four passes on average). A Feistel
 * network is a bijection whatever its round function, so every seed gives a permutation of 0..length−1.
 */
import { seededRandom } from "../contract/random.ts";

const ROUNDS = 6;

/** The place in [0, length) that `position` of the shuffled order holds. `length` is at most 2^52. */
export function permute(position: number, length: number, seed: number): number {
  const bits = halfBits(length);
  const random = seededRandom("shuffle", seed, length);
  const keys = Array.from({ length: ROUNDS }, () => Math.floor(random() * 2 ** 32));
  let place = position;
  do {
    place = feistel(place, bits, keys);
  } while (place >= length);
  return place;
}

function feistel(value: number, bits: number, keys: readonly number[]): number {
  const size = 2 ** bits;
  let left = Math.floor(value / size);
  let right = value % size;
  for (const key of keys) {
    [left, right] = [right, left ^ (mix(right ^ key) % size)];
  }
  return left * size + right;
}

/** Bits of each half: the smallest b ≥ 1 with 4^b ≥ length. */
function halfBits(length: number): number {
  let bits = 1;
  while (4 ** bits < length) bits += 1;
  return bits;
}

/** The finalizer of MurmurHash3: every bit of the word moves every bit of the result. */
function mix(word: number): number {
  let mixed = word;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

// An order of a few things, by chance: Fisher and Yates' shuffle. Every order is as likely as any other, as far as the
// words it draws from are; for places of a dataset, which are never all written down, see `permute`.

/**
 * The numbers 0..length−1 in the order that `word` decides, a stream of unsigned 32-bit words. `length` is below 2^32.
 */
export function shuffledOrder(length: number, word: () => number): number[] {
  const order = Array.from({ length }, (_, at) => at);
  for (let left = length; left > 1; left -= 1) {
    const taken = order.splice(drawnBelow(left, word), 1);
    order.push(...taken);
  }
  return order;
}

/** Words that would make the small numbers likelier are drawn again: one in two at most. */
function drawnBelow(bound: number, word: () => number): number {
  const most = 2 ** 32 - (2 ** 32 % bound);
  for (;;) {
    const drawn = word();
    if (drawn < most) return drawn % bound;
  }
}
