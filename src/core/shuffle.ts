/**
 * A seeded shuffle that is never stored: each position is computed on its own, in constant memory.
 *
 * A Feistel network permutes the smallest domain of 4^b numbers that includes `length`; a result outside of `length` is
 * permuted again until it is inside (cycle walking: fewer than four passes on average). A Feistel network is a
 * bijection whatever its round function, so every seed gives a permutation of 0..length−1.
 */
import { seededRandom } from "../contract/random.ts";

const ROUNDS = 6;

/** The number in [0, length) at `position` of the shuffled order. `length` is at most 2^52. */
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

// A random order of a few items: Fisher and Yates' shuffle. Every order is equally likely, as far as the given random
// words are uniform. For rows of a dataset, whose order is never stored, see `permute`.

/**
 * The numbers 0..length−1 in an order determined by `word`, a stream of unsigned 32-bit words. `length` is below 2^32.
 */
export function shuffledOrder(length: number, word: () => number): number[] {
  const order = Array.from({ length }, (_, at) => at);
  for (let left = length; left > 1; left -= 1) {
    const taken = order.splice(drawnBelow(left, word), 1);
    order.push(...taken);
  }
  return order;
}

/** Words that would make small numbers more likely are drawn again: at most one in two. */
function drawnBelow(bound: number, word: () => number): number {
  const most = 2 ** 32 - (2 ** 32 % bound);
  for (;;) {
    const drawn = word();
    if (drawn < most) return drawn % bound;
  }
}
