/**
 * Sums of products of powers: the normal form in which two expressions are compared.
 *
 * Invariants: a term is a rational coefficient times powers of atoms (`x`, `pi`, the prime 2, `exp(x)`, …) with
 * rational exponents. Terms are stored under the text of their powers, and no coefficient is 0. An atom may have a
 * relation, atom^period = value, that brings each of its exponents into [0, period): 2^(1/2) has 2^1 = 2, i has i^2 =
 * −1. Two sums that are equal through their relations are therefore the same sum. Every product of two terms is
 * counted.
 */

import type { Budget } from "./budget.ts";
import {
  add,
  floor,
  gcd,
  invert,
  isZero,
  MINUS_ONE,
  multiply,
  ONE,
  power,
  type Rational,
  rational,
  text,
  whole,
} from "./rational.ts";

type Powers = ReadonlyMap<string, Rational>;
export interface Term {
  readonly coefficient: Rational;
  /** Exponents by atom, none of them 0, in the atoms' order. */
  readonly powers: Powers;
}
/** Each term is stored under the text of its powers. */
export type Sum = ReadonlyMap<string, Term>;

interface Relation {
  readonly period: bigint;
  readonly value: Sum;
}

export class Ring {
  readonly budget: Budget;
  readonly #relations = new Map<string, Relation>();

  constructor(budget: Budget) {
    this.budget = budget;
  }

  constant(coefficient: Rational): Sum {
    return sumOf({ coefficient, powers: new Map() });
  }

  /** An atom to a power. A relation holds for the atom from its first use on. */
  atom(name: string, exponent: Rational = ONE, relation?: Relation): Sum {
    if (relation !== undefined) this.#relations.set(name, relation);
    return this.#fold({ coefficient: ONE, powers: new Map([[name, exponent]]) });
  }

  add(a: Sum, b: Sum): Sum {
    const sum = new Map(a);
    this.#addTo(sum, b);
    return sum;
  }

  subtract(a: Sum, b: Sum): Sum {
    return this.add(a, this.scale(b, MINUS_ONE));
  }

  scale(a: Sum, factor: Rational): Sum {
    return this.multiply(a, this.constant(factor));
  }

  multiply(a: Sum, b: Sum): Sum {
    const product = new Map<string, Term>();
    for (const left of a.values()) {
      for (const right of b.values()) this.#addTo(product, this.#times(left, right));
    }
    return product;
  }

  /** To a whole power, 0 or above. */
  power(a: Sum, exponent: bigint): Sum {
    const only = soleTerm(a);
    if (only !== undefined) return this.raise(only, whole(exponent));
    let [result, square, left] = [this.constant(ONE), a, exponent];
    while (left > 0n) {
      if (left % 2n === 1n) result = this.multiply(result, square);
      left /= 2n;
      if (left > 0n) square = this.multiply(square, square);
    }
    return result;
  }

  /** One term to a whole power, negative too. */
  raise(term: Term, exponent: Rational): Sum {
    const powers = [...term.powers].map(([name, own]): [string, Rational] => [
      name,
      multiply(this.budget, own, exponent),
    ]);
    const coefficient = power(this.budget, term.coefficient, exponent.over);
    return this.#fold({ coefficient, powers: new Map(powers.filter(([, own]) => !isZero(own))) });
  }

  /** Whether the inverse of this term is a term again. */
  isInvertible(term: Term): boolean {
    return [...term.powers.keys()].every((name) => {
      const value = this.#relations.get(name)?.value;
      return value === undefined || constantOf(value) !== undefined;
    });
  }

  #addTo(sum: Map<string, Term>, b: Sum): void {
    for (const [key, term] of b) {
      const other = sum.get(key);
      const coefficient = add(this.budget, term.coefficient, other?.coefficient ?? whole(0n));
      if (isZero(coefficient)) sum.delete(key);
      else sum.set(key, { coefficient, powers: term.powers });
    }
  }

  #times(a: Term, b: Term): Sum {
    this.budget.spend(1 + a.powers.size + b.powers.size);
    const powers = new Map(a.powers);
    for (const [name, exponent] of b.powers) {
      const sum = add(this.budget, exponent, powers.get(name) ?? whole(0n));
      if (isZero(sum)) powers.delete(name);
      else powers.set(name, sum);
    }
    return this.#fold({ coefficient: multiply(this.budget, a.coefficient, b.coefficient), powers });
  }

  /** The term with every exponent inside its atom's period. */
  #fold(term: Term): Sum {
    for (const [name, exponent] of term.powers) {
      const relation = this.#relations.get(name);
      if (relation === undefined) continue;
      const turns = floor({ over: exponent.over, under: exponent.under * relation.period });
      if (turns === 0n) continue;
      const rest = add(this.budget, exponent, whole(-turns * relation.period));
      const powers = new Map(term.powers);
      if (isZero(rest)) powers.delete(name);
      else powers.set(name, rest);
      const folded = this.#fold({ coefficient: term.coefficient, powers });
      return this.multiply(folded, this.#wholePower(relation.value, turns));
    }
    const ordered = new Map([...term.powers].sort(([a], [b]) => (a < b ? -1 : 1)));
    return sumOf({ coefficient: term.coefficient, powers: ordered });
  }

  #wholePower(value: Sum, exponent: bigint): Sum {
    const constant = constantOf(value);
    if (constant !== undefined) return this.constant(power(this.budget, constant, exponent));
    return this.power(value, exponent);
  }

  /** The positive rational that divides every coefficient and leaves whole numbers without a common factor. */
  content(a: Sum): Rational {
    let over = 0n;
    let under = 1n;
    for (const { coefficient } of a.values()) {
      over = gcd(this.budget, over, coefficient.over);
      under = (under * coefficient.under) / gcd(this.budget, under, coefficient.under);
    }
    return rational(this.budget, over, under);
  }

  divide(a: Sum, by: Rational): Sum {
    return this.scale(a, invert(this.budget, by));
  }
}

export function soleTerm(a: Sum): Term | undefined {
  return a.size === 1 ? a.values().next().value : undefined;
}

/** The sum as a rational; undefined if it contains an atom. */
export function constantOf(a: Sum): Rational | undefined {
  if (a.size === 0) return whole(0n);
  const only = soleTerm(a);
  return only?.powers.size === 0 ? only.coefficient : undefined;
}

/** The same text for the same sum, in whatever order it was built. */
export function keyOf(a: Sum): string {
  const terms = [...a].map(([key, { coefficient }]) => `${text(coefficient)}*${key}`);
  return terms.sort().join("+");
}

function sumOf(term: Term): Sum {
  if (isZero(term.coefficient)) return new Map();
  const factors = [...term.powers].map(([name, exponent]) => `${name}^${text(exponent)}`);
  return new Map([[factors.join("·"), term]]);
}

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

/** A name from the text, not a constant. */
export function isVariable(name: string): boolean {
  return !/[(|#]/.test(name) && name !== "pi" && name !== "e" && name !== "i";
}

/** Whether an atom is above 0 wherever it has a real value, so that a root loses no sign. */
export function isPositive(name: string): boolean {
  return (
    /^(?:#|\||\(|ln\(#|factorial\(|pi$|e$)/.test(name) || (isExponential(name) && !/i\^|iπ|ln\((?!#|pi\))/.test(name))
  );
}

/** A power of e, or of a base with a symbol in its exponent: `xⁿ` is exp(n ln x). */
export function isExponential(name: string): boolean {
  return name.startsWith("exp(");
}

/** Names of complex numbers by convention: their |z|² is not z². */
export function isComplexName(name: string): boolean {
  return /^[zw](?:_|'|$)/.test(name);
}

/** |x| to an exponent: |x|² is x². */
export function absoluteVariable(ring: Ring, name: string, exponent: Rational): Sum {
  if (isComplexName(name)) return ring.atom(`|${keyOf(ring.atom(name))}|`, exponent);
  const value = ring.atom(name, whole(2n));
  return ring.atom(`|${keyOf(ring.atom(name))}|`, exponent, { period: 2n, value });
}

/**
 * Whether an atom may be a sum of products of other atoms by a rule that is not implemented here: roots and functions
 * of sums, roots of unity (such as (−1)^n for a whole n), functions without rules. Roots of primes, π, e, variables,
 * their exponentials and logarithms are assumed to be independent.
 */
export function mayHideRelations(name: string): boolean {
  return /\+|^\(|iπ|i\^1.*pi\^|^(?!ln\b|exp\b)[a-z]+\(/.test(name);
}
