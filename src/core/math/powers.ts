/**
 * Powers with rational exponents, in normal form.
 *
 * Conventions. Roots are real where there is one: the cube root of −8 is −2; an even root of a negative number is the
 * principal one, √−4 = 2i. √(x²) is |x|, √x · √y is √(xy). A root of a sum stays a root, with the sum's common numeric
 * factor taken out, unless it comes apart: √(3+2√2) is 1+√2.
 */
import { absoluteVariable, isVariable, primePower, sumPower } from "./atoms.ts";
import { factor, squareRoot } from "./factor.ts";
import { type Quotient, quotient, raiseQuotient } from "./quotient.ts";
import { add, HALF, isWhole, isZero, multiply, negate, ONE, type Rational, rational, same, whole } from "./rational.ts";
import { constantOf, type Ring, type Sum, soleTerm, type Term } from "./ring.ts";
import { unity } from "./unity.ts";

/** `base` to a rational exponent. */
export function rationalPower(ring: Ring, base: Quotient, exponent: Rational): Quotient {
  if (isWhole(exponent)) return raiseQuotient(ring, base, exponent.over);
  if (exponent.over < 0n) {
    const root = rationalPower(ring, base, negate(exponent));
    return quotient(ring, root.under, root.over);
  }
  return quotient(ring, rootOf(ring, base.over, exponent), rootOf(ring, base.under, exponent));
}

function rootOf(ring: Ring, sum: Sum, exponent: Rational): Sum {
  if (sum.size === 0) return sum;
  const only = soleTerm(sum);
  if (only !== undefined) return rootOfTerm(ring, only, exponent);
  const content = ring.content(sum);
  const primitive = ring.divide(sum, content);
  return ring.multiply(rootOfNumber(ring, content, exponent), rootOfSum(ring, primitive, exponent));
}

function rootOfSum(ring: Ring, sum: Sum, exponent: Rational): Sum {
  const half = exponent.under === 2n ? nestedRoot(ring, sum) : undefined;
  if (half !== undefined) return ring.power(half, exponent.over);
  return sumPower(ring, sum, exponent);
}

function rootOfTerm(ring: Ring, { coefficient, powers }: Term, exponent: Rational): Sum {
  let root = rootOfNumber(ring, coefficient, exponent);
  for (const [name, own] of powers) {
    root = ring.multiply(root, rootOfAtom(ring, name, own, exponent));
  }
  return root;
}

function rootOfAtom(ring: Ring, name: string, own: Rational, exponent: Rational): Sum {
  const product = multiply(ring.work, own, exponent);
  if (name === "i") return unity(ring, multiply(ring.work, product, HALF));
  // Only an even root of an even power loses a sign.
  const evenBefore = isWhole(own) && own.over % 2n === 0n && exponent.under % 2n === 0n;
  const evenAfter = isWhole(product) && product.over % 2n === 0n;
  if (!evenBefore || evenAfter || !isVariable(name)) return ring.atom(name, product);
  return absoluteVariable(ring, name, product);
}

function rootOfNumber(ring: Ring, value: Rational, exponent: Rational): Sum {
  const negative = value.over < 0n;
  const size = negative ? negate(value) : value;
  let root = negative ? signPower(ring, exponent) : ring.constant(ONE);
  for (const [whole_, sign] of [[size.over, 1n] as const, [size.under, -1n] as const]) {
    for (const [prime, times] of factor(ring.work, whole_)) {
      const own = multiply(ring.work, whole(sign * times), exponent);
      root = ring.multiply(root, primePower(ring, prime, own));
    }
  }
  return root;
}

/** (−1) to a power that is not whole: real for an odd root. */
function signPower(ring: Ring, exponent: Rational): Sum {
  if (exponent.under % 2n === 0n) return unity(ring, exponent);
  return ring.constant(whole(exponent.over % 2n === 0n ? 1n : -1n));
}

/**
 * √(a + b√c) as √((a+s)/2) ± √((a−s)/2), where s² = a² − b²c is the square of a rational (Landau 1992 treats the general
 * case). Undefined when it does not come apart so.
 */
function nestedRoot(ring: Ring, sum: Sum): Sum | undefined {
  const terms = [...sum.values()];
  const a = terms.find(({ powers }) => powers.size === 0)?.coefficient;
  const surd = terms.find(({ powers }) => powers.size > 0);
  if (terms.length !== 2 || a === undefined || surd === undefined || a.over <= 0n) return undefined;
  const square = constantOf(ring.raise(surd, whole(2n)));
  const isReal = [...surd.powers.keys()].every((name) => name.startsWith("#"));
  if (square === undefined || !isReal) return undefined;
  const s = rationalRoot(ring, add(ring.work, multiply(ring.work, a, a), negate(square)));
  if (s === undefined) return undefined;
  const part = (sign: Rational) => rootOfNumber(ring, multiply(ring.work, add(ring.work, a, sign), HALF), HALF);
  const [large, small] = [part(s), part(negate(s))];
  return surd.coefficient.over < 0n ? ring.subtract(large, small) : ring.add(large, small);
}

function rationalRoot(ring: Ring, value: Rational): Rational | undefined {
  if (value.over < 0n) return undefined;
  if (isZero(value)) return value;
  const root = rational(ring.work, squareRoot(ring.work, value.over), squareRoot(ring.work, value.under));
  return same(multiply(ring.work, root, root), value) ? root : undefined;
}
