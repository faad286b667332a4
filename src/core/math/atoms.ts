/** Atoms with a relation: the imaginary unit, primes and sums under a root. */
import { ONE, type Rational, whole } from "./rational.ts";
import { keyOf, type Ring, type Sum } from "./ring.ts";

/** i, with i² = −1. */
export function imaginary(ring: Ring): Sum {
  return ring.atom("i", ONE, { period: 2n, value: ring.constant(whole(-1n)) });
}

export function primePower(ring: Ring, prime: bigint, exponent: Rational): Sum {
  const relation = { period: 1n, value: ring.constant(whole(prime)) };
  return ring.atom(`#${prime}`, exponent, relation);
}

/** A sum of several terms to an exponent above 0. */
export function sumPower(ring: Ring, sum: Sum, exponent: Rational): Sum {
  return ring.atom(`(${keyOf(sum)})`, exponent, { period: 1n, value: sum });
}

/** Only a variable may be negative; what else is an atom has no sign to lose. */
export function isVariable(name: string): boolean {
  return /^[A-Za-z]+(_\w*)?$/.test(name) && name !== "pi" && name !== "e" && name !== "i";
}

/** |x| to an exponent: |x|² is x². */
export function absoluteVariable(ring: Ring, name: string, exponent: Rational): Sum {
  const value = ring.atom(name, whole(2n));
  return ring.atom(`|${keyOf(ring.atom(name))}|`, exponent, { period: 2n, value });
}

/**
 * Whether an atom may be a sum of products of others by a rule that is not known here: roots and functions of sums, roots of
 * unity (of which (−1)^n is one for a whole n), functions without rules. Roots of primes, π, e, variables, their exponentials
 * and logarithms are taken for independent.
 */
export function mayHideRelations(name: string): boolean {
  return /\+|iπ|i\^1.*pi\^|^(?!ln\b|exp\b)[a-z]+\(/.test(name);
}
