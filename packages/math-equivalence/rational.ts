/**
 * Exact rationals. Invariants: lowest terms, denominator above 0, no number with more digits than the budget allows.
 * Every function that divides, factors or multiplies counts its work.
 */
import { type Budget, MATH_LIMITS, refuseDigits } from "./budget.ts";

export interface Rational {
  readonly over: bigint;
  readonly under: bigint;
}

export const ONE: Rational = { over: 1n, under: 1n };
export const HALF: Rational = { over: 1n, under: 2n };
export const MINUS_ONE: Rational = { over: -1n, under: 1n };

const BOUND = 10n ** BigInt(MATH_LIMITS.digits);
/** A division of numbers below 2^64 is one step; longer ones cost more. */
const WORD = 1n << 64n;

/** A rational in lowest terms; throws `RangeError` for a denominator of 0. */
export function rational(budget: Budget, over: bigint, under = 1n): Rational {
  if (under === 0n) throw new RangeError("division by zero");
  const divisor = under === 1n ? 1n : gcd(budget, over, under);
  const sign = under < 0n ? -1n : 1n;
  return { over: checkDigits((sign * over) / divisor), under: checkDigits((sign * under) / divisor) };
}

export function whole(value: bigint): Rational {
  return { over: checkDigits(value), under: 1n };
}

export function add(budget: Budget, a: Rational, b: Rational): Rational {
  budget.spend(1);
  if (a.under === b.under) return rational(budget, a.over + b.over, a.under);
  return rational(budget, a.over * b.under + b.over * a.under, a.under * b.under);
}

export function multiply(budget: Budget, a: Rational, b: Rational): Rational {
  budget.spend(1);
  return rational(budget, a.over * b.over, a.under * b.under);
}

export function negate(a: Rational): Rational {
  return { over: -a.over, under: a.under };
}

export function invert(budget: Budget, a: Rational): Rational {
  return rational(budget, a.under, a.over);
}

/** `a` to a whole power. Its size is checked before it is computed. */
export function power(budget: Budget, a: Rational, exponent: bigint): Rational {
  if (exponent < 0n) return power(budget, invert(budget, a), -exponent);
  if (exponent === 0n) return ONE;
  const size = larger(abs(a.over), a.under);
  if (size === 1n) return a.over === -1n && exponent % 2n === 0n ? ONE : a;
  // Each factor adds its digits less one, and at least as many as a factor of 2.
  refuseDigits(Math.max(String(size).length - 1, 0.3) * Number(exponent));
  budget.spend(1 + Number(exponent) / 64);
  return { over: checkDigits(a.over ** exponent), under: checkDigits(a.under ** exponent) };
}

/** The largest whole number not above `a`. */
export function floor(a: Rational): bigint {
  const cut = a.over / a.under;
  return a.over < 0n && cut * a.under !== a.over ? cut - 1n : cut;
}

export function isZero(a: Rational): boolean {
  return a.over === 0n;
}

export function isWhole(a: Rational): boolean {
  return a.under === 1n;
}

export function same(a: Rational, b: Rational): boolean {
  return a.over === b.over && a.under === b.under;
}

export function text(a: Rational): string {
  return a.under === 1n ? String(a.over) : `${a.over}/${a.under}`;
}

export function gcd(budget: Budget, a: bigint, b: bigint): bigint {
  let [x, y] = [abs(a), abs(b)];
  while (y !== 0n) {
    budget.spend(y < WORD ? 1 : 4);
    [x, y] = [y, x % y];
  }
  return x;
}

function abs(a: bigint): bigint {
  return a < 0n ? -a : a;
}

function larger(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

function checkDigits(value: bigint): bigint {
  if (value >= BOUND || value <= -BOUND) refuseDigits(MATH_LIMITS.digits + 1);
  return value;
}

/** Numbers up to the square of this are factored completely. */
const LARGEST_FACTOR = 2000n;

/**
 * Exponent by prime, for a number above 0, by trial division: a large remaining factor counts as one prime, or as a
 * square.
 */
export function factor(budget: Budget, value: bigint): Map<bigint, bigint> {
  const primes = new Map<bigint, bigint>();
  let rest = value;
  for (let prime = 2n; prime <= LARGEST_FACTOR && prime * prime <= rest; prime += prime === 2n ? 1n : 2n) {
    budget.spend(1);
    while (rest % prime === 0n) {
      budget.spend(1);
      rest /= prime;
      primes.set(prime, (primes.get(prime) ?? 0n) + 1n);
    }
  }
  if (rest === 1n) return primes;
  const root = squareRoot(budget, rest);
  if (root * root === rest) primes.set(root, (primes.get(root) ?? 0n) + 2n);
  else primes.set(rest, (primes.get(rest) ?? 0n) + 1n);
  return primes;
}

/** The largest whole number whose square is not above `value`, by Newton's method. */
function squareRoot(budget: Budget, value: bigint): bigint {
  let guess = 1n << BigInt(Math.ceil(value.toString(2).length / 2));
  for (;;) {
    budget.spend(4);
    const next = (guess + value / guess) / 2n;
    if (next >= guess) return guess;
    guess = next;
  }
}

/** The square root if it is rational. */
export function rationalRoot(budget: Budget, value: Rational): Rational | undefined {
  if (value.over < 0n) return undefined;
  if (isZero(value)) return value;
  const root = rational(budget, squareRoot(budget, value.over), squareRoot(budget, value.under));
  return same(multiply(budget, root, root), value) ? root : undefined;
}
