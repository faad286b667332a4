/**
 * Quotients of sums. Invariants: the denominator is not 0; if it can be a factor of the numerator, it becomes one.
 * Nothing is cancelled: two quotients are equal if their cross products are, which needs no common divisor.
 */

import { invert, MINUS_ONE, multiply, ONE, type Rational } from "./rational.ts";
import { constantOf, keyOf, type Ring, type Sum, soleTerm } from "./ring.ts";

export interface Quotient {
  readonly over: Sum;
  readonly under: Sum;
}

/** The value is not defined: a division by 0, the logarithm of 0. */
export class UndefinedValueError extends Error {
  override readonly name = "UndefinedValueError";
}

export function fromSum(ring: Ring, over: Sum): Quotient {
  return { over, under: ring.constant(ONE) };
}

export function constant(ring: Ring, value: Rational): Quotient {
  return fromSum(ring, ring.constant(value));
}

export function quotient(ring: Ring, over: Sum, under: Sum): Quotient {
  if (under.size === 0) throw new UndefinedValueError("a division by 0");
  const only = soleTerm(under);
  if (only === undefined || !ring.isInvertible(only)) return { over, under };
  return fromSum(ring, ring.multiply(over, ring.raise(only, MINUS_ONE)));
}

export function addQuotients(ring: Ring, a: Quotient, b: Quotient): Quotient {
  if (keyOf(a.under) === keyOf(b.under)) return { over: ring.add(a.over, b.over), under: a.under };
  const over = ring.add(ring.multiply(a.over, b.under), ring.multiply(b.over, a.under));
  return quotient(ring, over, ring.multiply(a.under, b.under));
}

export function multiplyQuotients(ring: Ring, a: Quotient, b: Quotient): Quotient {
  return quotient(ring, ring.multiply(a.over, b.over), ring.multiply(a.under, b.under));
}

export function divideQuotients(ring: Ring, a: Quotient, b: Quotient): Quotient {
  return quotient(ring, ring.multiply(a.over, b.under), ring.multiply(a.under, b.over));
}

export function scaleQuotient(ring: Ring, a: Quotient, factor: Rational): Quotient {
  return { over: ring.scale(a.over, factor), under: a.under };
}

/** To a whole power, negative too. */
export function raiseQuotient(ring: Ring, a: Quotient, exponent: bigint): Quotient {
  if (exponent < 0n) {
    return raiseQuotient(ring, quotient(ring, a.under, a.over), -exponent);
  }
  return quotient(ring, ring.power(a.over, exponent), ring.power(a.under, exponent));
}

/** The quotient as a sum; undefined if its denominator remains. */
export function asSum({ over, under }: Quotient): Sum | undefined {
  return constantOf(under)?.over === 1n ? over : undefined;
}

export function rationalOf(a: Quotient): Rational | undefined {
  const sum = asSum(a);
  return sum && constantOf(sum);
}

export function sameValue(ring: Ring, a: Quotient, b: Quotient): boolean {
  const difference = ring.subtract(ring.multiply(a.over, b.under), ring.multiply(b.over, a.under));
  return difference.size === 0;
}

/** The rational factor, other than 0, with which `b` becomes `a`; null if there is none. */
export function proportion(ring: Ring, a: Quotient, b: Quotient): Rational | null {
  const [left, right] = [ring.multiply(a.over, b.under), ring.multiply(b.over, a.under)];
  const [above, below] = [left, right].map((sum) => leading(sum));
  if (above === undefined || below === undefined) return null;
  const factor = multiply(ring.budget, above, invert(ring.budget, below));
  return ring.subtract(left, ring.scale(right, factor)).size === 0 ? factor : null;
}

/** The coefficient of the term whose powers come first as text: the same term in proportional sums. */
function leading(sum: Sum): Rational | undefined {
  const first = [...sum.keys()].sort()[0];
  return first === undefined ? undefined : sum.get(first)?.coefficient;
}

/** A text for the value; one value may have two texts, but one text never stands for two values. */
export function quotientKey({ over, under }: Quotient): string {
  return `(${keyOf(over)})/(${keyOf(under)})`;
}
