/**
 * Whether two answers are the same: structure by structure, then expression by expression.
 *
 * Sets and lists are equal in any order (in a set repetitions do not count), tuples, intervals and matrices place by
 * place. `x = 5` answers a question for `5`. An equation is any rational multiple of itself, an inequality any positive one.
 */
import { ExpressionComparison } from "./equal-expressions.ts";
import { MINUS_ONE } from "./rational.ts";
import type { Answer, Expression, Link } from "./syntax.ts";
import type { MathWork } from "./work.ts";

export class AnswerComparison {
  readonly #expressions: ExpressionComparison;

  constructor(work: MathWork) {
    this.#expressions = new ExpressionComparison(work);
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

type Rows = readonly (readonly Expression[])[];
type Unordered = Answer & { readonly kind: "set" | "list" | "union" };

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
