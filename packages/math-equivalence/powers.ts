/**
 * Powers with rational exponents, in normal form.
 *
 * Conventions: roots are real if there is a real one: the cube root of −8 is −2; an even root of a negative number is
 * the principal one, √−4 = 2i. √(x²) is |x|, √x · √y is √(xy). A root of a sum stays a root, with the sum's common
 * numeric factor taken out, unless it can be resolved: √(3+2√2) is 1+√2, √(x²+2x+1) is |x+1|.
 */
import { rootOfSquare } from "./absolute.ts";
import { type Quotient, quotient, raiseQuotient } from "./quotient.ts";
import { add, factor, HALF, isWhole, multiply, negate, ONE, type Rational, rationalRoot, whole } from "./rational.ts";
import {
  absoluteVariable,
  constantOf,
  imaginary,
  isExponential,
  isPositive,
  isVariable,
  primePower,
  type Ring,
  type Sum,
  soleTerm,
  sumPower,
  type Term,
} from "./ring.ts";

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
  const half = exponent.under === 2n ? (nestedRoot(ring, sum) ?? rootOfSquare(ring, sum)) : undefined;
  if (half !== undefined) return ring.power(half, exponent.over);
  return sumPower(ring, sum, exponent);
}

function rootOfTerm(ring: Ring, { coefficient, powers }: Term, exponent: Rational): Sum {
  const isEvenRoot = exponent.under % 2n === 0n;
  const mayBeNegative = ([name, own]: [string, Rational]) => isVariable(name) && own.over % 2n !== 0n;
  // It is unknown whether √−x is real.
  if (isEvenRoot && coefficient.over < 0n && [...powers].some(mayBeNegative)) {
    const content = ring.content(ring.raise({ coefficient, powers }, ONE));
    const rest = ring.divide(ring.raise({ coefficient, powers }, ONE), content);
    return ring.multiply(rootOfNumber(ring, content, exponent), sumPower(ring, rest, exponent));
  }
  let root = rootOfNumber(ring, coefficient, exponent);
  for (const [name, own] of powers) {
    root = ring.multiply(root, rootOfAtom(ring, name, own, exponent));
  }
  return root;
}

function rootOfAtom(ring: Ring, name: string, own: Rational, exponent: Rational): Sum {
  const product = multiply(ring.budget, own, exponent);
  if (name === "i") return unity(ring, multiply(ring.budget, product, HALF));
  // The root of x^(2n) is xⁿ or −xⁿ, depending on x and n.
  if (isExponential(name) && !isPositive(name) && !isWhole(exponent))
    return sumPower(ring, ring.atom(name, own), exponent);
  // Only an even root of an even power loses a sign.
  const evenBefore = isWhole(own) && own.over % 2n === 0n && exponent.under % 2n === 0n;
  const evenAfter = isWhole(product) && product.over % 2n === 0n;
  if (!evenBefore || evenAfter || isPositive(name)) return ring.atom(name, product);
  return absoluteVariable(ring, name, product);
}

function rootOfNumber(ring: Ring, value: Rational, exponent: Rational): Sum {
  const negative = value.over < 0n;
  const size = negative ? negate(value) : value;
  let root = negative ? signPower(ring, exponent) : ring.constant(ONE);
  for (const [whole_, sign] of [[size.over, 1n] as const, [size.under, -1n] as const]) {
    for (const [prime, times] of factor(ring.budget, whole_)) {
      const own = multiply(ring.budget, whole(sign * times), exponent);
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
 * √(a + b√c) as √((a+s)/2) ± √((a−s)/2), where s² = a² − b²c is the square of a rational (Landau 1992 treats the
 * general case). Undefined if it cannot be resolved so.
 */
function nestedRoot(ring: Ring, sum: Sum): Sum | undefined {
  const terms = [...sum.values()];
  const a = terms.find(({ powers }) => powers.size === 0)?.coefficient;
  const surd = terms.find(({ powers }) => powers.size > 0);
  if (terms.length !== 2 || a === undefined || surd === undefined || a.over <= 0n) return undefined;
  const square = constantOf(ring.raise(surd, whole(2n)));
  const isReal = [...surd.powers.keys()].every((name) => name.startsWith("#"));
  if (square === undefined || !isReal) return undefined;
  const s = rationalRoot(ring.budget, add(ring.budget, multiply(ring.budget, a, a), negate(square)));
  if (s === undefined) return undefined;
  const part = (sign: Rational) => rootOfNumber(ring, multiply(ring.budget, add(ring.budget, a, sign), HALF), HALF);
  const [large, small] = [part(s), part(negate(s))];
  return surd.coefficient.over < 0n ? ring.subtract(large, small) : ring.add(large, small);
}

/**
 * Roots of unity, exp(iπq). If q is a multiple of 1/120 of the form k/8 + a/12 + b/5 they are written with square
 * roots, by the values of 15°, 22.5° and 36°; any other is an atom, of which only the powers are known.
 */
export function unity(ring: Ring, turn: Rational): Sum {
  const parts = multiply(ring.budget, turn, whole(120n));
  if (!isWhole(parts)) {
    return ring.atom("exp(iπ)", turn, { period: 1n, value: ring.constant(whole(-1n)) });
  }
  const eighth = modulo(parts.over, 2n);
  const rest = (parts.over - 15n * eighth) / 2n;
  // 60 q = 5 a + 12 b, and 12 b ≡ 2 b (mod 5).
  const fifths = modulo(3n * rest, 5n);
  const twelfths = modulo((rest - 12n * fifths) / 5n, 24n);
  const wholes = ring.multiply(ring.power(fifteenDegrees(ring), twelfths), fifthOfHalfTurn(ring, fifths));
  return eighth === 0n ? wholes : ring.multiply(wholes, eighthOfHalfTurn(ring));
}

/** exp(iπ/12) = (√6+√2)/4 + i(√6−√2)/4 */
function fifteenDegrees(ring: Ring): Sum {
  const root2 = primePower(ring, 2n, HALF);
  const root6 = ring.multiply(root2, primePower(ring, 3n, HALF));
  return complex(ring, ring.add(root6, root2), ring.subtract(root6, root2));
}

/** exp(iπ/5) = (1+√5)/4 + i√2√(5−√5)/4, to a whole power. */
function fifthOfHalfTurn(ring: Ring, times: bigint): Sum {
  if (times === 0n) return ring.constant(ONE);
  const root5 = primePower(ring, 5n, HALF);
  const nested = sumPower(ring, ring.subtract(ring.constant(whole(5n)), root5), HALF);
  const sine = ring.multiply(primePower(ring, 2n, HALF), nested);
  return ring.power(complex(ring, ring.add(ring.constant(ONE), root5), sine), times);
}

/** exp(iπ/8), whose square is (1+i)/√2. */
function eighthOfHalfTurn(ring: Ring): Sum {
  const value = ring.power(fifteenDegrees(ring), 3n);
  return ring.atom("exp(iπ/8)", ONE, { period: 2n, value });
}

/** (real + i · imaginary) / 4 */
function complex(ring: Ring, real: Sum, imaginaryPart: Sum): Sum {
  const sum = ring.add(real, ring.multiply(imaginary(ring), imaginaryPart));
  return ring.divide(sum, whole(4n));
}

function modulo(value: bigint, by: bigint): bigint {
  return ((value % by) + by) % by;
}
