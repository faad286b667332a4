/**
 * Decides whether two expressions have the same value wherever both have one.
 *
 * They differ if they differ by more than their errors at one of a few seeded points. If they agree there, the normal
 * form decides: only what is proven equal is equal, so rounding never makes 0.3333 a third. Different normal forms are
 * different values, unless an atom may hide a relation to the others: then, if they agree at the points, the result is
 * undecided.
 */
import { type Approximation, approximate, type Point } from "./approximate.ts";
import type { Budget } from "./budget.ts";
import { proportion, type Quotient, sameValue, UndefinedValueError } from "./quotient.ts";
import type { Rational } from "./rational.ts";
import { mayHideRelations, Ring } from "./ring.ts";
import { seededRandom } from "./seeded-random.ts";
import { Simplifier } from "./simplify.ts";
import type { Expression } from "./syntax.ts";

const POINTS = 8;
/** The first points have small whole coordinates, at which factorials have values; */
const WHOLE_POINTS = 2;
/** up to here they are positive, so that roots and logarithms have values. */
const POSITIVE_POINTS = 5;

export class ExpressionComparison {
  readonly #ring: Ring;
  readonly #simplifier: Simplifier;
  /** Whether there was a pair that is neither proven equal nor different. */
  undecided = false;

  constructor(budget: Budget) {
    this.#ring = new Ring(budget);
    this.#simplifier = new Simplifier(this.#ring);
  }

  /** True only if equality is proven. */
  equal(a: Expression, b: Expression): boolean {
    const points = comparePoints(a, b);
    if (points.differ) return false;
    const [left, right] = [this.#normalForm(a), this.#normalForm(b)];
    if (left === null || right === null) return false;
    if (sameValue(this.#ring, left, right)) return true;
    if (points.agreed > 1 && [left, right].some(hidesRelations)) this.undecided = true;
    return false;
  }

  /** The rational factor, other than 0, with which `b` becomes `a`; null if there is none. */
  factorBetween(a: Expression, b: Expression): Rational | null {
    const [left, right] = [this.#normalForm(a), this.#normalForm(b)];
    return left && right && proportion(this.#ring, left, right);
  }

  /** Null if the expression has no value. */
  #normalForm(expression: Expression): Quotient | null {
    try {
      return this.#simplifier.of(expression);
    } catch (thrown) {
      if (thrown instanceof UndefinedValueError) return null;
      throw thrown;
    }
  }
}

function comparePoints(a: Expression, b: Expression): { differ: boolean; agreed: number } {
  let agreed = 0;
  for (let at = 0; at < POINTS; at += 1) {
    const [left, right] = [approximate(a, pointAt(at)), approximate(b, pointAt(at))];
    if (left === null || right === null) continue;
    if (differ(left, right)) return { differ: true, agreed };
    agreed += 1;
  }
  return { differ: false, agreed };
}

function differ(a: Approximation, b: Approximation): boolean {
  return Math.abs(a.value - b.value) > 4 * (a.error + b.error);
}

/** A name has the same coordinate in every comparison. */
function pointAt(at: number): Point {
  return (symbol) => {
    if (NO_VARIABLES.has(symbol)) return undefined;
    const random = seededRandom(JSON.stringify(["math probe", symbol, at]));
    if (at < WHOLE_POINTS) return 2 + Math.floor(5 * random());
    const size = 0.2 + 4 * random();
    return at >= POSITIVE_POINTS && random() < 0.7 ? -size : size;
  };
}

const NO_VARIABLES = new Set(["infinity", "i", "pi", "e"]);

function hidesRelations({ over, under }: Quotient): boolean {
  return [over, under].some((sum) => [...sum.values()].some(({ powers }) => [...powers.keys()].some(mayHideRelations)));
}
