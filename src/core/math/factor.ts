/** Whole numbers as products of primes, by trial division up to a bound: what is left counts as one prime. */
import type { MathWork } from "./work.ts";

/** Numbers up to its square are factored to the end. */
const BOUND = 2000n;

/** Exponent by prime, for a number above 0. A large rest that is a square is told as one. */
export function factor(work: MathWork, value: bigint): Map<bigint, bigint> {
  const primes = new Map<bigint, bigint>();
  let rest = value;
  for (let prime = 2n; prime <= BOUND && prime * prime <= rest; prime += prime === 2n ? 1n : 2n) {
    work.spend(1);
    while (rest % prime === 0n) {
      work.spend(1);
      rest /= prime;
      primes.set(prime, (primes.get(prime) ?? 0n) + 1n);
    }
  }
  if (rest === 1n) return primes;
  const root = squareRoot(work, rest);
  if (root * root === rest) primes.set(root, (primes.get(root) ?? 0n) + 2n);
  else primes.set(rest, (primes.get(rest) ?? 0n) + 1n);
  return primes;
}

/** The largest whole number whose square is not above `value`, by Newton's method. */
export function squareRoot(work: MathWork, value: bigint): bigint {
  let guess = 1n << BigInt(Math.ceil(value.toString(2).length / 2));
  for (;;) {
    work.spend(4);
    const next = (guess + value / guess) / 2n;
    if (next >= guess) return guess;
    guess = next;
  }
}
