/**
 * Exponentials and logarithms in normal form.
 *
 * exp of a sum is the product of the exps of its terms, each an atom to the power of its coefficient: e^(x+1) = e·e^x,
 * e^(2x) = (e^x)². A power with a symbol in its exponent is exp(exponent · ln base). ln of a product is the sum of the
 * logarithms of its factors, down to primes; symbols are assumed to be positive.
 */

import { rationalPower, unity } from "./powers.ts";
import {
  addQuotients,
  asSum,
  fromSum,
  multiplyQuotients,
  type Quotient,
  quotientKey,
  rationalOf,
  scaleQuotient,
  UndefinedValueError,
} from "./quotient.ts";
import { factor, HALF, invert, isWhole, MINUS_ONE, negate, ONE, type Rational, same, whole } from "./rational.ts";
import { imaginary, isExponential, isPositive, keyOf, type Ring, type Sum, soleTerm, type Term } from "./ring.ts";

/** Whether it is a sum of products of counting letters (n, k, m, …) and whole numbers. */
function isWholeByCustom(exponent: Quotient): boolean {
  const terms = asSum(exponent);
  return (
    terms !== undefined &&
    [...terms.values()].every(
      ({ coefficient, powers }) =>
        isWhole(coefficient) &&
        [...powers].every(([name, own]) => /^[j-npq](?:_|$)/.test(name) && isWhole(own) && own.over > 0n),
    )
  );
}

/** Whether its ln can be resolved for any exponent: one letter, or a value above 0. */
function hasPlainLogarithm(sum: Sum): boolean {
  const only = soleTerm(sum);
  if (only === undefined) return true;
  const signed = [...only.powers].filter(([name]) => !isPositive(name));
  const [first] = signed;
  if (first === undefined) return true;
  return signed.length === 1 && only.coefficient.over > 0n && same(first[1], ONE) && !isExponential(first[0]);
}

/** The key of iπ: its multiples are the exponents of roots of unity. */
const IMAGINARY_PI = "1*i^1·pi^1";

/** Exponentials and logarithms of one ring: each remembers the values of its atoms, so that one undoes the other. */
export class Exponentials {
  readonly #ring: Ring;
  /** By the atom's name: the argument of `ln(…)`, and the argument of `exp(…)`. */
  readonly #numeri = new Map<string, Quotient>();
  readonly #exponents = new Map<string, Quotient>();

  constructor(ring: Ring) {
    this.#ring = ring;
  }

  /** `base` to any exponent. */
  power(base: Quotient, exponent: Quotient): Quotient {
    const constant = rationalOf(exponent);
    if (constant !== undefined) return rationalPower(this.#ring, base, constant);
    return this.exp(multiplyQuotients(this.#ring, exponent, this.#lnOfBase(base, exponent)));
  }

  /**
   * If the base is a power or may be below 0, its logarithm is resolved only for whole exponents: (x²)^(1/a) is not
   * x^(2/a). Counting letters are whole by convention, so (x²)ⁿ is x²ⁿ.
   */
  #lnOfBase(base: Quotient, exponent: Quotient): Quotient {
    if (isWholeByCustom(exponent) || [base.over, base.under].every(hasPlainLogarithm)) return this.ln(base);
    const key = quotientKey(base);
    const atom = this.#ring.atom(`ln(${key}+0)`);
    this.#numeri.set(keyOf(atom), base);
    return fromSum(this.#ring, atom);
  }

  exp(exponent: Quotient): Quotient {
    const ring = this.#ring;
    const sum = asSum(exponent);
    if (sum === undefined) {
      const content = ring.content(exponent.over);
      const rest = scaleQuotient(ring, exponent, invert(ring.budget, content));
      return fromSum(ring, this.#expAtom(quotientKey(rest), rest, content));
    }
    let product = fromSum(ring, ring.constant(ONE));
    for (const term of sum.values()) {
      product = multiplyQuotients(ring, product, this.#expTerm(term));
    }
    return product;
  }

  #expTerm({ coefficient, powers }: Term): Quotient {
    const ring = this.#ring;
    if (powers.size === 0) return fromSum(ring, ring.atom("e", coefficient));
    const monomial: Sum = ring.raise({ coefficient: ONE, powers }, ONE);
    const name = keyOf(monomial);
    const numerus = this.#numeri.get(name);
    if (numerus !== undefined) return rationalPower(ring, numerus, coefficient);
    if (name === IMAGINARY_PI) return fromSum(ring, unity(ring, coefficient));
    return fromSum(ring, this.#expAtom(name, fromSum(ring, monomial), coefficient));
  }

  #expAtom(key: string, exponent: Quotient, power: Rational): Sum {
    const name = `exp(${key})`;
    this.#exponents.set(name, exponent);
    return this.#ring.atom(name, power);
  }

  ln(numerus: Quotient): Quotient {
    const under = scaleQuotient(this.#ring, this.#lnSum(numerus.under), MINUS_ONE);
    return addQuotients(this.#ring, this.#lnSum(numerus.over), under);
  }

  #lnSum(sum: Sum): Quotient {
    const ring = this.#ring;
    if (sum.size === 0) throw new UndefinedValueError("the logarithm of 0");
    const only = soleTerm(sum);
    if (only !== undefined) return this.#lnTerm(only);
    const content = ring.content(sum);
    const rest = this.#lnAtom(`(${keyOf(ring.divide(sum, content))})`, ring.divide(sum, content));
    return addQuotients(ring, this.#lnNumber(content), fromSum(ring, rest));
  }

  #lnTerm({ coefficient, powers }: Term): Quotient {
    let sum = this.#lnNumber(coefficient);
    for (const [name, exponent] of powers) {
      sum = addQuotients(this.#ring, sum, scaleQuotient(this.#ring, this.#lnOf(name), exponent));
    }
    return sum;
  }

  #lnNumber(value: Rational): Quotient {
    const ring = this.#ring;
    const size = value.over < 0n ? negate(value) : value;
    let sum: Sum = value.over < 0n ? this.#halfTurn() : new Map();
    for (const [number, sign] of [[size.over, 1n] as const, [size.under, -1n] as const]) {
      for (const [prime, times] of factor(ring.budget, number)) {
        const log = this.#lnAtom(`#${prime}`, ring.constant(whole(prime)));
        sum = ring.add(sum, ring.scale(log, whole(sign * times)));
      }
    }
    return fromSum(ring, sum);
  }

  #lnOf(name: string): Quotient {
    const ring = this.#ring;
    if (name === "e") return fromSum(ring, ring.constant(ONE));
    if (name === "i") return fromSum(ring, ring.scale(this.#halfTurn(), HALF));
    const exponent = this.#exponents.get(name);
    if (exponent !== undefined) return exponent;
    const prime = /^#(\d+)$/.exec(name)?.[1];
    const value = prime === undefined ? ring.atom(name) : ring.constant(whole(BigInt(prime)));
    return fromSum(ring, this.#lnAtom(name, value));
  }

  #lnAtom(key: string, numerus: Sum): Sum {
    const atom = this.#ring.atom(`ln(${key})`);
    this.#numeri.set(keyOf(atom), fromSum(this.#ring, numerus));
    return atom;
  }

  /** iπ, the logarithm of −1. */
  #halfTurn(): Sum {
    return this.#ring.multiply(imaginary(this.#ring), this.#ring.atom("pi"));
  }
}
