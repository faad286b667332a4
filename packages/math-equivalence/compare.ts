/**
 * Decides whether two answers are the same: structure by structure, then expression by expression.
 *
 * Sets and lists are equal in any order (a set ignores repetitions); tuples, intervals and matrices are compared place
 * by place. `x = 5` answers a question for `5`, and so does `x = \frac{10}{2} = 5`, whose sides are equal. An equation
 * equals any rational multiple of itself, an inequality any positive one. If both texts are sets of real numbers, the
 * sets are compared, however they are written. A unit may be left out, but two units must measure the same.
 */
import { approximate } from "./approximate.ts";
import type { Budget } from "./budget.ts";
import { ExpressionComparison } from "./compare-expressions.ts";
import { isDots, mayJoinAlike } from "./lists.ts";
import { distinct, sameInAnyOrder, samePlaces } from "./matching.ts";
import { namesOfTuple } from "./names.ts";
import { DEGREE } from "./parse-expression.ts";
import { inBases } from "./quantity.ts";
import { MINUS_ONE, whole } from "./rational.ts";
import { areDisjoint, type Piece, realSetOf } from "./reals.ts";
import type { Answer, Expression, Link, Side } from "./syntax.ts";
import { sameBases } from "./units.ts";

type Of<K extends Answer["kind"]> = Answer & { readonly kind: K };
type Unordered = Of<"set" | "list">;
type Joined = Of<"union" | "intersection" | "difference">;
/** A chain of equal sides: its name, if it has one, and its values, where a later one may be a rounding. */
interface Chain {
  readonly label: string | null;
  readonly values: readonly Answer[];
}

export class AnswerComparison {
  readonly #expressions: ExpressionComparison;
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
    this.#expressions = new ExpressionComparison(budget);
  }

  /** Whether there was a pair that no rule decides. */
  get undecided(): boolean {
    return this.#expressions.undecided;
  }

  equal(a: Answer, b: Answer): boolean {
    this.#budget.spend(1);
    return (this.#sameNamed(a, b) ?? (this.#sameStructure(a, b) || this.#sameVector(a, b))) || this.#sameReals(a, b);
  }

  /**
   * Compares answers that name their values, give one value in several forms, or say what their letters stand for; null
   * for anything else.
   */
  #sameNamed(a: Answer, b: Answer): boolean | null {
    if (a.kind === "choice") return this.#choice(a, b);
    if (b.kind === "choice") return this.#choice(b, a);
    const [left, right] = [recordOf(a), recordOf(b)];
    if (left !== null && right !== null) return this.#records(left, right);
    if (left !== null) return this.#recordAndValues(left, a.kind === "relation", b);
    if (right !== null) return this.#recordAndValues(right, b.kind === "relation", a);
    const [plain, other] = [withoutDomains(a), withoutDomains(b)];
    if ((plain === a) !== (other === b)) return this.equal(plain, other);
    if (isChoice(a) && !isUnordered(b)) return a.items.every((item) => this.equal(item, b));
    if (isChoice(b) && !isUnordered(a)) return b.items.every((item) => this.equal(item, a));
    return a.kind === "relation" || b.kind === "relation" ? this.#withRelation(a, b) : null;
  }

  /** The other text may give its letter or its content. */
  #choice({ letter, content }: Of<"choice">, other: Answer): boolean {
    if (other.kind === "choice") return letter === other.letter && this.equal(content, other.content);
    const isLetter = other.kind === "expression" && other.expression.kind === "symbol";
    return (isLetter && other.expression.name === letter) || this.equal(content, other);
  }

  #sameStructure(a: Answer, b: Answer): boolean {
    if (isUnordered(a) && isUnordered(b)) return this.#unordered(a, b);
    if (isMeasured(a) && isMeasured(b)) return this.#measured(a, b);
    if (a.kind === "ordered" && b.kind === "ordered") {
      return a.open === b.open && a.close === b.close && this.#inPlace(a.items, b.items);
    }
    if (a.kind === "matrix" && b.kind === "matrix") return a.fence === b.fence && this.#matrices(a, b);
    if (isJoined(a) && isJoined(b)) return a.kind === b.kind && this.#joined(a, b);
    return a.kind === "phrase" && b.kind === "phrase" && this.#phrases(a, b);
  }

  #joined(a: Joined, b: Joined): boolean {
    if (a.kind === "difference") return this.#inPlace(a.items, b.items);
    return sameInAnyOrder(a.items, b.items, (left, right) => this.equal(left, right));
  }

  /** A vector is a column or a tuple. */
  #sameVector(a: Answer, b: Answer): boolean {
    const [matrix, tuple] = a.kind === "matrix" ? [a, b] : [b, a];
    if (matrix.kind !== "matrix" || tuple.kind !== "ordered") return false;
    const isColumn = matrix.fence === "" && matrix.rows.every(({ length }) => length === 1);
    return isColumn && tuple.open === "(" && tuple.close === ")" && this.#inPlace(matrix.rows.flat(), tuple.items);
  }

  #inPlace(a: readonly Answer[], b: readonly Answer[]): boolean {
    return samePlaces(a, b, (left, right) => this.equal(left, right));
  }

  #phrases(a: Of<"phrase">, b: Of<"phrase">): boolean {
    return samePlaces(a.parts, b.parts, (left, right) => {
      if (typeof left === "string" || typeof right === "string") return left === right;
      if (left.kind === "list" && right.kind === "list" && left.joint !== right.joint) return false;
      return this.equal(left, right);
    });
  }

  #unordered(a: Unordered, b: Unordered): boolean {
    if (a.kind === "list" && b.kind === "list" && !mayJoinAlike(a, b)) return false;
    if ([...a.items, ...b.items].some(isDots)) return a.kind === b.kind && this.#inPlace(a.items, b.items);
    const same = (left: Answer, right: Answer) => this.equal(left, right);
    // A set ignores repetitions, and so does a list that is compared with one.
    const once = a.kind === "set" || b.kind === "set";
    const [left, right] = once ? [distinct(a.items, same), distinct(b.items, same)] : [a.items, b.items];
    return sameInAnyOrder(left, right, same);
  }

  #matrices(a: Of<"matrix">, b: Of<"matrix">): boolean {
    const match = a.fence === "cases" ? sameInAnyOrder<readonly Answer[]> : samePlaces<readonly Answer[]>;
    return match(a.rows, b.rows, (left, right) => this.#inPlace(left, right));
  }

  /** Numbers, numbers with units, ratios. */
  #measured(a: Of<"expression" | "quantity" | "ratio">, b: Of<"expression" | "quantity" | "ratio">): boolean {
    if (a.kind === "ratio" && b.kind === "ratio") {
      const areTimes = a.mayBeTime && b.mayBeTime;
      return areTimes
        ? samePlaces(a.terms, b.terms, (x, y) => this.#expressions.equal(x, y))
        : this.#ratios(a.terms, b.terms);
    }
    if (a.kind === "quantity" && b.kind === "quantity") return this.#quantities(a, b);
    if (a.kind === "quantity") return b.kind === "expression" && this.#withoutUnit(a, b.expression);
    if (b.kind === "quantity") return a.kind === "expression" && this.#withoutUnit(b, a.expression);
    const [left, right] = [numberOf(a), numberOf(b)];
    return left !== null && right !== null && this.#expressions.equal(left, right);
  }

  #quantities(a: Of<"quantity">, b: Of<"quantity">): boolean {
    const [left, right] = [angleOf(a), angleOf(b)];
    if (left !== null && right !== null) return this.#expressions.equal(left, right);
    if (!sameBases(a.unit, b.unit)) return false;
    const reading = { budget: this.#budget, functions: new Set<string>() };
    return this.#expressions.equal(inBases(a.expression, a.unit, reading), inBases(b.expression, b.unit, reading));
  }

  /** The question may name the unit; an angle has a value without a unit. */
  #withoutUnit(quantity: Of<"quantity">, bare: Expression): boolean {
    if (quantity.sums) return false;
    const angle = angleOf(quantity);
    return (
      this.#expressions.equal(quantity.expression, bare) || (angle !== null && this.#expressions.equal(angle, bare))
    );
  }

  #ratios(a: readonly Expression[], b: readonly Expression[]): boolean {
    const [over, under] = [a[0], b[0]];
    if (over === undefined || under === undefined) return false;
    if (samePlaces(a, b, (left, right) => this.#expressions.equal(left, right))) return true;
    // Cross products with 0 prove nothing.
    if ([...a, ...b].some((term) => this.#expressions.equal(term, ZERO))) return false;
    return samePlaces(a, b, (left, right) => this.#expressions.equal(product(left, under), product(right, over)));
  }

  #records(a: ReadonlyMap<string, Answer>, b: ReadonlyMap<string, Answer>): boolean {
    return (
      a.size === b.size &&
      [...a].every(([name, value]) => {
        const other = b.get(name);
        return other !== undefined && this.equal(value, other);
      })
    );
  }

  /** `(m, b) = (2, 3)` and `(2, 3)`; `y = 2, x = 1` and the point `(1, 2)`, or the same values in the order of names. */
  #recordAndValues(record: ReadonlyMap<string, Answer>, isTuple: boolean, values: Answer): boolean {
    const entries = isTuple ? [...record] : [...record].sort(([a], [b]) => (a < b ? -1 : 1));
    const byName = entries.map(([, value]) => value);
    if (values.kind === "ordered")
      return values.open === "(" && values.close === ")" && this.#inPlace(byName, values.items);
    if (values.kind !== "list" || values.items.some(({ kind }) => kind === "relation")) return false;
    return this.#inPlace(byName, values.items);
  }

  #withRelation(a: Answer, b: Answer): boolean {
    if (a.kind === "relation" && b.kind === "relation") {
      return this.#relations(a.links, b.links) || this.#chains(this.#chainOf(a), this.#chainOf(b));
    }
    const [relation, bare] = a.kind === "relation" ? [a, b] : [b, a];
    const chain = relation.kind === "relation" ? this.#chainOf(relation) : null;
    return chain?.values.some((value) => this.equal(value, bare)) ?? false;
  }

  #relations(a: readonly Link[], b: readonly Link[]): boolean {
    return sameInAnyOrder(a, b, (left, right) => {
      if (left.sign !== right.sign) return false;
      const [first, second] = [sidesOf(left), sidesOf(right)];
      if (first === null || second === null) return this.#sameSides(left, right);
      // Any two true statements about numbers would be proportional.
      if (approximate(first) !== null) return this.#sameSides(left, right);
      const factor = this.#expressions.factorBetween(first, second);
      return factor !== null && (isSymmetric(left) || factor.over > 0n);
    });
  }

  #sameSides(a: Link, b: Link): boolean {
    return this.equal(a.left.answer, b.left.answer) && this.equal(a.right.answer, b.right.answer);
  }

  #chains(a: Chain | null, b: Chain | null): boolean {
    if (a === null || b === null) return false;
    if (a.label !== null && b.label !== null && a.label !== b.label) return false;
    return a.values.some((left) => b.values.some((right) => this.equal(left, right)));
  }

  /**
   * The last side of a chain, and the values that it is a rounding of. The sides before must equal it, except names and
   * formulas: a side that could not be read or, after a name, one with variables. Null if they do not.
   */
  #chainOf({ links }: Of<"relation">): Chain | null {
    const [first] = links;
    if (first === undefined || !links.every(({ sign }) => sign === "=" || sign === "approx" || sign === "in"))
      return null;
    if (first.sign === "in" && links.length > 1) return null;
    const sides = [first.left, ...links.map(({ right }) => right)];
    // If all sides are names, the first is the name (S = ab); but of two single letters neither defines the other.
    const isNamed = sides.some(({ label }) => label === null);
    if (!isNamed && sides.every(({ label }) => label?.length === 1)) return null;
    const isName = (side: Side, at: number) => side.label !== null && (isNamed || at < sides.length - 1);
    const label = sides.find(isName)?.label ?? null;
    const said = sides.flatMap((side, at) =>
      isName(side, at) ? [] : [{ answer: side.answer, isRounded: links[at - 1]?.sign === "approx" }],
    );
    const values = this.#valuesOf(said, first.left.label !== null);
    return values.length === 0 ? null : { label, values };
  }

  #valuesOf(said: readonly { answer: Answer; isRounded: boolean }[], isNamed: boolean): Answer[] {
    const values: Answer[] = [];
    for (const { answer, isRounded } of said) {
      const before = values.at(-1);
      if (before === undefined) values.push(answer);
      else if (isRounded && isRounding(before, answer)) values.push(answer);
      else if (isFormula(before, isNamed) || (!isRounded && this.equal(before, answer))) values.splice(-1, 1, answer);
      else return [];
    }
    return values;
  }

  #sameReals(a: Answer, b: Answer): boolean {
    if (!canBeReals(a) || !canBeReals(b)) return false;
    const same = (x: Expression, y: Expression) => this.#expressions.equal(x, y);
    const [left, right] = [realSetOf(a, same, this.#budget), realSetOf(b, same, this.#budget)];
    if (left === null || right === null) return this.#areEmpty(a, b) || this.#areEmpty(b, a);
    if (left.name !== null && right.name !== null && left.name !== right.name) return false;
    return sameInAnyOrder(left.pieces, right.pieces, (x, y) => this.#pieces(x, y));
  }

  /** An intersection of disjoint sets equals the empty set. */
  #areEmpty(a: Answer, b: Answer): boolean {
    if (a.kind !== "intersection" || b.kind !== "set" || b.items.length > 0) return false;
    return areDisjoint(a.items, (x, y) => this.#expressions.equal(x, y), this.#budget);
  }

  #pieces(a: Piece, b: Piece): boolean {
    return ([["low"], ["high"]] as const).every(([end]) => {
      const [left, right] = [a[end], b[end]];
      if (left.closed !== right.closed) return false;
      if (left.at === null || right.at === null) return left.at === right.at;
      return this.#expressions.equal(left.at, right.at);
    });
  }
}

/** `\frac52 or 2.5` */
function isChoice(answer: Answer): answer is Of<"list"> {
  return answer.kind === "list" && answer.joint === "or";
}

function isUnordered(answer: Answer): answer is Unordered {
  return answer.kind === "set" || answer.kind === "list";
}

function isJoined(answer: Answer): answer is Joined {
  return answer.kind === "union" || answer.kind === "intersection" || answer.kind === "difference";
}

function isMeasured(answer: Answer): answer is Of<"expression" | "quantity" | "ratio"> {
  return answer.kind === "expression" || answer.kind === "quantity" || answer.kind === "ratio";
}

/** A list without the entries that only define a letter of the others: `n\pi, n \in \mathbb Z`. */
function withoutDomains(answer: Answer): Answer {
  if (answer.kind !== "list") return answer;
  const isDomain = (item: Answer) =>
    item.kind === "relation" && item.links.every(({ sign, right }) => sign === "in" && isNumberSet(right.answer));
  const isSaid = (item: Answer) =>
    item.kind === "expression" || (item.kind === "relation" && item.links.every(({ sign }) => sign === "="));
  const said = answer.items.filter((item) => !isDomain(item));
  const [only] = said;
  if (only === undefined || said.length === answer.items.length || !said.every(isSaid)) return answer;
  return said.length === 1 ? only : { ...answer, items: said };
}

function isNumberSet(answer: Answer): boolean {
  const expression = answer.kind === "expression" ? answer.expression : undefined;
  return expression?.kind === "symbol" && expression.name.startsWith("set_");
}

/** Values by name, for two names or more: `x = 1, y = 2` and `(x, y) = (1, 2)`. */
function recordOf(answer: Answer): ReadonlyMap<string, Answer> | null {
  if (answer.kind === "relation") return recordOfTuple(answer);
  if (answer.kind !== "list" || answer.joint === "or") return null;
  const entries = answer.items.map((item) => {
    const link = item.kind === "relation" ? item.links.at(-1) : undefined;
    const label = item.kind === "relation" ? item.links[0]?.left.label : null;
    return link !== undefined && (link.sign === "=" || link.sign === "approx") && typeof label === "string"
      ? ([label, link.right.answer] as const)
      : null;
  });
  const known = entries.filter((entry) => entry !== null);
  const record = new Map(known);
  return record.size > 1 && record.size === answer.items.length ? record : null;
}

function recordOfTuple({ links }: Of<"relation">): ReadonlyMap<string, Answer> | null {
  const [link, ...more] = links;
  const names = namesOfTuple(link?.left.label ?? "");
  const values = link?.right.answer;
  if (names === null || more.length > 0 || link?.sign !== "=" || values?.kind !== "ordered") return null;
  const entries = values.items.map((value, at) => [names[at] ?? "", value] as const);
  return entries.length === names.length && new Set(names).size === names.length ? new Map(entries) : null;
}

function isSymmetric({ sign }: Link): boolean {
  return sign === "=" || sign === "!=";
}

/** left − right; null if a side is not an expression. */
function sidesOf({ sign, left, right }: Link): Expression | null {
  if (sign === "in" || sign === "approx") return null;
  if (left.answer.kind !== "expression" || right.answer.kind !== "expression") return null;
  const minus: Expression = { kind: "number", value: MINUS_ONE };
  return { kind: "sum", parts: [left.answer.expression, product(minus, right.answer.expression)] };
}

function product(a: Expression, b: Expression): Expression {
  return { kind: "product", parts: [a, b] };
}

const ZERO: Expression = { kind: "number", value: whole(0n) };

/** A ratio of two terms is their quotient. */
function numberOf(answer: Of<"expression" | "ratio">): Expression | null {
  if (answer.kind === "expression") return answer.expression;
  const [over, under, ...more] = answer.terms;
  return over === undefined || under === undefined || more.length > 0 ? null : { kind: "quotient", over, under };
}

/** An angle in radians. */
function angleOf({ expression, unit }: Of<"quantity">): Expression | null {
  if (unit.bases.size !== 1) return null;
  if (unit.bases.get("degree") === 1) return product(expression, DEGREE);
  return unit.bases.get("rad") === 1 ? expression : null;
}

/** Signs that a question may ask for and the grammar does not read. */
const ASKED = /\\(?:i{0,2}int|oint|sum|prod|lim|square)\b|^\?$/;

/**
 * Whether a side only shows how the next one is computed: it could not be read, or has variables and a name before it.
 */
function isFormula(side: Answer, isNamed: boolean): boolean {
  if (side.kind === "phrase") return side.parts.length === 1 && ASKED.test(String(side.parts[0]));
  return isNamed && side.kind === "expression" && approximate(side.expression) === null;
}

/** Whether a number is another one, rounded or truncated at its last digit. */
function isRounding(exact: Answer, rounded: Answer): boolean {
  if (!isMeasured(exact) || !isMeasured(rounded) || exact.kind === "ratio" || rounded.kind === "ratio") return false;
  const [value, near] = [approximate(exact.expression), approximate(rounded.expression)];
  const digits = /^-?(\d*?)(0*)(?:\.(\d+))?$/.exec(near === null ? "" : String(near.value));
  if (value === null || near === null || digits === null) return false;
  const [, , zeros = "", decimals = ""] = digits;
  const isZero = near.value === 0;
  const step = decimals === "" ? 10 ** (isZero ? 0 : zeros.length) : 10 ** -decimals.length;
  const [gap, slack] = [Math.abs(value.value - near.value), step * 1e-9];
  const isCutOff = decimals !== "" && Math.abs(near.value) <= Math.abs(value.value) && gap < step;
  return isCutOff || gap <= step / 2 + slack;
}

/** Whether a text may be a set of real numbers; two numbers or two lists are not compared as sets. */
function canBeReals({ kind }: Answer): boolean {
  return kind !== "matrix" && kind !== "quantity" && kind !== "ratio";
}
