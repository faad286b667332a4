/** Factorials and binomial coefficients of whole numbers; null where there is no rule. */
import { constant, type Quotient, UndefinedValueError } from "./quotient.ts";
import { isWhole, multiply, ONE, type Rational, rational, whole } from "./rational.ts";
import type { Ring } from "./ring.ts";
import { MATH_LIMITS, refuseDigits } from "./work.ts";

export function factorial(ring: Ring, n: Rational | undefined): Quotient | null {
  if (n === undefined || !isWhole(n)) return null;
  if (n.over < 0n) throw new UndefinedValueError("the factorial of a negative number");
  // 1000! has 2,568 digits.
  if (n.over > 1000n) refuseDigits(MATH_LIMITS.digits + 1);
  let product = ONE;
  for (let factor = 2n; factor <= n.over; factor += 1n) {
    product = multiply(ring.work, product, whole(factor));
  }
  return constant(ring, product);
}

export function binomial(ring: Ring, n: Rational | undefined, k: Rational | undefined): Quotient | null {
  if (n === undefined || k === undefined || !isWhole(n) || !isWhole(k) || n.over < 0n) return null;
  if (k.over < 0n || k.over > n.over) return constant(ring, whole(0n));
  const chosen = k.over * 2n > n.over ? n.over - k.over : k.over;
  let ways = ONE;
  for (let at = 1n; at <= chosen; at += 1n) {
    ways = multiply(ring.work, ways, rational(ring.work, n.over - chosen + at, at));
  }
  return constant(ring, ways);
}
