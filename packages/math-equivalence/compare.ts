/**
 * Whether two expressions have the same value wherever both have one.
 *
 * They differ if they differ at one of a few seeded points by more than their errors. Whatever agrees there is decided
 * by the normal form: equal is only what is proven equal, so no rounding makes 0.3333 a third. Normal forms that differ
 * are different values, unless an atom may hide a relation to the others: then, agreeing at the points, nobody knows.
 */
import { type Approximation, approximate, type Point } from "./approximate.ts";
import { type Budget, UndecidedError } from "./budget.ts";
import { proportion, type Quotient, sameValue, UndefinedValueError } from "./quotient.ts";
import { MINUS_ONE, type Rational } from "./rational.ts";
import { mayHideRelations, Ring } from "./ring.ts";
import { seededRandom } from "./seeded-random.ts";
import { Simplifier } from "./simplify.ts";
import type { Answer, Expression, Link } from "./syntax.ts";

const POINTS = 8;
/** The first points have small whole coordinates, at which factorials have values; */
const WHOLE_POINTS = 2;
/** up to here they are positive, so that roots and logarithms have values. */
const POSITIVE_POINTS = 5;

class ExpressionComparison {
  readonly #ring: Ring;
  readonly #simplifier: Simplifier;

  constructor(budget: Budget) {
    this.#ring = new Ring(budget);
    this.#simplifier = new Simplifier(this.#ring);
  }

  /** Throws `UndecidedError`. */
  equal(a: Expression, b: Expression): boolean {
    const points = comparePoints(a, b);
    if (points.differ) return false;
    const [left, right] = [this.#normalForm(a), this.#normalForm(b)];
    if (left === null || right === null) return false;
    if (sameValue(this.#ring, left, right)) return true;
    if (points.agreed > 1 && [left, right].some(hidesRelations)) throw new UndecidedError();
    return false;
  }

  /** The rational that `b` times is `a`, other than 0; null when there is none. */
  factorBetween(a: Expression, b: Expression): Rational | null {
    const [left, right] = [this.#normalForm(a), this.#normalForm(b)];
    return left && right && proportion(this.#ring, left, right);
  }

  /** Null where the expression has no value. */
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

type Rows = readonly (readonly Expression[])[];
type Unordered = Answer & { readonly kind: "set" | "list" | "union" };

/**
 * Whether two answers are the same: structure by structure, then expression by expression.
 *
 * Sets and lists are equal in any order (in a set repetitions do not count), tuples, intervals and matrices place by
 * place. `x = 5` answers a question for `5`. An equation is any rational multiple of itself, an inequality any positive
 * one.
 */
export class AnswerComparison {
  readonly #expressions: ExpressionComparison;

  constructor(budget: Budget) {
    this.#expressions = new ExpressionComparison(budget);
  }

  equal(a: Answer, b: Answer): boolean {
    if (a.kind === "relation" && b.kind === "relation") return this.#relations(a.links, b.links);
    if (a.kind === "relation" || b.kind === "relation") {
      const [bareA, bareB] = [withoutName(a), withoutName(b)];
      return bareA.kind !== "relation" && bareB.kind !== "relation" && this.equal(bareA, bareB);
    }
    if (isUnordered(a) && isUnordered(b)) {
      return (a.kind === "union") === (b.kind === "union") && this.#unordered(a, b);
    }
    if (a.kind === "expression" && b.kind === "expression") return this.#expressions.equal(a.expression, b.expression);
    if (a.kind === "matrix" && b.kind === "matrix") return this.#matrices(a.rows, b.rows);
    if (a.kind === "ordered" && b.kind === "ordered") {
      return a.open === b.open && a.close === b.close && this.#inPlace(a.items, b.items);
    }
    return false;
  }

  #inPlace(a: readonly Answer[], b: readonly Answer[]): boolean {
    return samePlaces(a, b, (left, right) => this.equal(left, right));
  }

  #unordered(a: Unordered, b: Unordered): boolean {
    const same = (left: Answer, right: Answer) => this.equal(left, right);
    // A set forgets repetitions, and so does a list that is compared with one.
    const once = a.kind === "set" || b.kind === "set";
    const [left, right] = once ? [distinct(a.items, same), distinct(b.items, same)] : [a.items, b.items];
    return sameInAnyOrder(left, right, same);
  }

  #matrices(a: Rows, b: Rows): boolean {
    return samePlaces(a, b, (left, right) => samePlaces(left, right, (x, y) => this.#expressions.equal(x, y)));
  }

  #relations(a: readonly Link[], b: readonly Link[]): boolean {
    return sameInAnyOrder(a, b, (left, right) => {
      if (left.sign !== right.sign) return false;
      const factor = this.#expressions.factorBetween(sidesOf(left), sidesOf(right));
      return factor !== null && (isSymmetric(left) || factor.over > 0n);
    });
  }
}

function isUnordered(answer: Answer): answer is Unordered {
  return answer.kind === "set" || answer.kind === "list" || answer.kind === "union";
}

function isSymmetric({ sign }: Link): boolean {
  return sign === "=" || sign === "!=";
}

/** left − right */
function sidesOf({ left, right }: Link): Expression {
  const minus: Expression = { kind: "number", value: MINUS_ONE };
  return { kind: "sum", parts: [left, { kind: "product", parts: [minus, right] }] };
}

/** `x = 5` without its `x`, `f(x) = 5` without its `f(x)`; of `x = 10/2 = 5` what comes last. */
function withoutName(answer: Answer): Answer {
  if (answer.kind !== "relation") return answer;
  const [first, last] = [answer.links.at(0), answer.links.at(-1)];
  const isChain = answer.links.every(({ sign }) => sign === "=");
  if (!isChain || !first || !last || !isName(first.left)) return answer;
  return { kind: "expression", expression: last.right };
}

function isName(expression: Expression): boolean {
  if (expression.kind === "product") return expression.parts.every(isName);
  return expression.kind === "symbol";
}

function samePlaces<T>(a: readonly T[], b: readonly T[], same: (a: T, b: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  return a.every((left, at) => {
    const right = b[at];
    return right !== undefined && same(left, right);
  });
}

/** Sameness is an equivalence, so the first partner found is as good as any. */
function sameInAnyOrder<T>(a: readonly T[], b: readonly T[], same: (a: T, b: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  const left = [...b];
  return a.every((item) => {
    const at = left.findIndex((other) => same(item, other));
    if (at !== -1) left.splice(at, 1);
    return at !== -1;
  });
}

function distinct<T>(items: readonly T[], same: (a: T, b: T) => boolean): T[] {
  const kept: T[] = [];
  for (const item of items) {
    if (!kept.some((other) => same(item, other))) kept.push(item);
  }
  return kept;
}
