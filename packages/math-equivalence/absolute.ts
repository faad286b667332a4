/** Absolute values of sums, and square roots of squares of sums. */
import { HALF, invert, isWhole, multiply, negate, ONE, type Rational, rationalRoot, whole } from "./rational.ts";
import {
  absoluteVariable,
  isComplexName,
  isPositive,
  isVariable,
  keyOf,
  type Ring,
  type Sum,
  soleTerm,
  type Term,
} from "./ring.ts";

/** |u|; if u is real, computed from |u|² = u². In a product, each variable has its own bars: |xy| is |x|·|y|. */
export function absoluteOf(ring: Ring, sum: Sum): Sum {
  const mirrored = conjugateOf(ring, sum);
  if (mirrored === undefined || ring.subtract(sum, mirrored).size > 0) return ring.atom(`|${keyOf(sum)}|`);
  if (sum.size === 0 || [...sum.values()].every(isNeverNegative)) return sum;
  const content = ring.content(sum);
  const scale = leadsNegative(sum) ? negate(content) : content;
  return ring.scale(ofPrimitive(ring, ring.scale(sum, invert(ring.budget, scale))), content);
}

/**
 * The complex conjugate. Each atom must be i, real, or a power of e with an imaginary exponent; if one may be another
 * complex number, the result is undefined.
 */
export function conjugateOf(ring: Ring, sum: Sum): Sum | undefined {
  let conjugate: Sum = new Map();
  for (const { coefficient, powers } of sum.values()) {
    let term = ring.constant(powers.has("i") ? negate(coefficient) : coefficient);
    for (const [name, exponent] of powers) {
      // Its conjugate is its inverse.
      const isImaginaryPower = /^exp\(1\*i\^1(?:·[^+()]*)?\)$|^exp\(iπ\)$/.test(name);
      const isImaginary = name !== "i" && /i\^|iπ/.test(name);
      if (isComplexName(name) || (isImaginary && !isImaginaryPower)) return undefined;
      term = ring.multiply(term, ring.atom(name, isImaginaryPower ? negate(exponent) : exponent));
    }
    conjugate = ring.add(conjugate, term);
  }
  return conjugate;
}

function ofPrimitive(ring: Ring, primitive: Sum): Sum {
  const factors = [...(soleTerm(primitive)?.powers ?? [])];
  if (factors.length > 0 && factors.every(([name]) => isVariable(name) || isPositive(name))) {
    const bars = factors.map(([name, exponent]) =>
      // An even root is never negative.
      isVariable(name) && exponent.under % 2n !== 0n
        ? absoluteVariable(ring, name, exponent)
        : ring.atom(name, exponent),
    );
    return bars.reduce((a, b) => ring.multiply(a, b));
  }
  return ring.atom(`|${keyOf(primitive)}|`, ONE, { period: 2n, value: ring.power(primitive, 2n) });
}

function isNeverNegative({ coefficient, powers }: Term): boolean {
  const isEven = (exponent: Rational) => isWhole(exponent) && exponent.over % 2n === 0n;
  const factors = [...powers];
  return coefficient.over > 0n && factors.every(([name, own]) => isPositive(name) || (isVariable(name) && isEven(own)));
}

/** True for exactly one of `u` and −u, always the same one. */
export function leadsNegative(sum: Sum): boolean {
  const [first] = [...sum].sort(([a], [b]) => (a < b ? -1 : 1));
  return first !== undefined && first[1].coefficient.over < 0n;
}

/** A root with more terms is not found. */
const MOST_TERMS = 12;

/** √(u²) = |u| for a polynomial u of several terms; undefined if the sum is not such a square. */
export function rootOfSquare(ring: Ring, square: Sum): Sum | undefined {
  const names = [...new Set([...square.values()].flatMap(({ powers }) => [...powers.keys()]))].sort();
  const isPolynomial = [...square.values()].every(({ powers }) =>
    [...powers].every(([name, exponent]) => isVariable(name) && isWhole(exponent) && exponent.over > 0n),
  );
  const lead = leadingTerm(square, names);
  if (!isPolynomial || lead === undefined) return undefined;
  const coefficient = rationalRoot(ring.budget, lead.coefficient);
  if (coefficient === undefined || [...lead.powers.values()].some(({ over }) => over % 2n !== 0n)) return undefined;
  const first = powersTimes(ring, lead, HALF);
  let root = ring.scale(first, coefficient);
  const divisor = ring.raise(soleTerm(ring.scale(root, whole(2n))) ?? lead, whole(-1n));
  for (let terms = 1; terms <= MOST_TERMS; terms += 1) {
    const rest = ring.subtract(square, ring.multiply(root, root));
    if (rest.size === 0) return absoluteOf(ring, root);
    const next = leadingTerm(rest, names);
    root = next === undefined ? root : ring.add(root, ring.multiply(ring.raise(next, ONE), divisor));
  }
  return undefined;
}

function powersTimes(ring: Ring, { powers }: Term, factor: Rational): Sum {
  const scaled = [...powers].map(([name, own]) => ring.atom(name, multiply(ring.budget, own, factor)));
  return scaled.reduce((a, b) => ring.multiply(a, b), ring.constant(ONE));
}

/** The largest term. Terms are compared by their exponent of the first name, then of the second, and so on. */
function leadingTerm(sum: Sum, names: readonly string[]): Term | undefined {
  const exponents = ({ powers }: Term) => names.map((name) => powers.get(name)?.over ?? 0n);
  const isGreater = (a: readonly bigint[], b: readonly bigint[]) => {
    const at = a.findIndex((own, place) => own !== b[place]);
    return at !== -1 && (a[at] ?? 0n) > (b[at] ?? 0n);
  };
  return [...sum.values()].reduce<Term | undefined>(
    (best, term) => (best === undefined || isGreater(exponents(term), exponents(best)) ? term : best),
    undefined,
  );
}
