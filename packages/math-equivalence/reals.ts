/**
 * Sets of real numbers as pieces of the line, so that `2 \le x < 5`, `[2, 5)` and `x \ge 2, x < 5` are one set.
 *
 * Invariants: if all ends can be placed on the line, the pieces are in order and do not touch. If some ends contain
 * symbols and cannot be placed, there is a set only if no order is needed to define it.
 */
import { approximate } from "./approximate.ts";
import type { Budget } from "./budget.ts";
import { boundOf, insideBars, namesIn, negative } from "./linear.ts";
import { isRealLine } from "./parse-answer.ts";
import type { Answer, Expression, Link, Side } from "./syntax.ts";

interface End {
  /** Null if the line continues. */
  readonly at: Expression | null;
  readonly closed: boolean;
}
export interface Piece {
  readonly low: End;
  readonly high: End;
}
export interface RealSet {
  /** The name of the numbers; null if the text gives none. */
  readonly name: string | null;
  readonly pieces: readonly Piece[];
}

const OPEN: End = { at: null, closed: false };
const LINE: Piece = { low: OPEN, high: OPEN };
/** More pieces would take too many comparisons. */
const MOST_PIECES = 40;
/** The most steps for placing two ends on the line. */
const ORDER_STEPS = 20;

/** Decides whether two constants are the same when their decimals are too close to tell them apart. */
export type SameValue = (a: Expression, b: Expression) => boolean;

/** The set of real numbers that an answer describes; null if it describes none, or if that is unclear. */
export function realSetOf(answer: Answer, same: SameValue, budget: Budget): RealSet | null {
  const set = new Line(same, budget).read(answer);
  return set !== null && set.pieces.length > 0 ? set : null;
}

/** Whether sets of real numbers, none of them empty, have no number in common. */
export function areDisjoint(sets: readonly Answer[], same: SameValue, budget: Budget): boolean {
  const shared = new Line(same, budget).read({ kind: "intersection", items: sets });
  return shared?.pieces.length === 0 && sets.every((set) => realSetOf(set, same, budget) !== null);
}

class Line {
  readonly #same: SameValue;
  readonly #budget: Budget;

  constructor(same: SameValue, budget: Budget) {
    this.#same = same;
    this.#budget = budget;
  }

  read(answer: Answer): RealSet | null {
    switch (answer.kind) {
      case "ordered":
        return this.#interval(answer);
      case "expression":
        return isRealLine(answer) ? { name: null, pieces: [LINE] } : null;
      case "phrase":
        return /^(?:all )?real(?: number)?s$/.test(answer.parts.join(" ")) ? { name: null, pieces: [LINE] } : null;
      case "set":
        return this.#points(answer.items);
      case "relation":
        return this.#relation(answer.links);
      case "union":
        return this.#join(
          answer.items.map((item) => this.read(item)),
          "or",
        );
      case "intersection":
        return this.#join(
          answer.items.map((item) => this.read(item)),
          "and",
        );
      case "difference":
        return this.#difference(answer.items);
      case "list":
        return this.#list(answer);
      default:
        return null;
    }
  }

  /** Adjacent conditions hold together if they can, otherwise one of them holds. */
  #list({ joint, items }: Answer & { kind: "list" }): RealSet | null {
    const sets = items.map((item) => this.read(item));
    if (joint !== ",") return this.#join(sets, joint);
    const both = this.#join(sets, "and");
    return both?.pieces.length === 0 ? this.#join(sets, "or") : both;
  }

  #interval({ open, close, items }: Answer & { kind: "ordered" }): RealSet | null {
    const [low, high, ...more] = items;
    if (low?.kind !== "expression" || high?.kind !== "expression" || more.length > 0) return null;
    const from = endAt(low.expression, open === "[", -1);
    const to = endAt(high.expression, close === "]", 1);
    return from && to && this.#set(null, [{ low: from, high: to }]);
  }

  #points(items: readonly Answer[]): RealSet | null {
    const points = items.map((item) => (item.kind === "expression" ? pointAt(item.expression) : null));
    return points.some((point) => point === null)
      ? null
      : this.#set(
          null,
          points.filter((point) => point !== null),
        );
  }

  #difference(items: readonly Answer[]): RealSet | null {
    const [from, ...taken] = items.map((item) => this.read(item));
    const holes = taken.map((set) => set && this.#complement(set));
    return this.#join([from ?? null, ...holes], "and");
  }

  /** The parts of the line between the pieces. */
  #complement({ name, pieces }: RealSet): RealSet | null {
    const parts = pieces.map(({ low, high }): RealSet => {
      const below: Piece = { low: OPEN, high: { at: low.at, closed: !low.closed } };
      const above: Piece = { low: { at: high.at, closed: !high.closed }, high: OPEN };
      return { name, pieces: [...(low.at === null ? [] : [below]), ...(high.at === null ? [] : [above])] };
    });
    return this.#join(parts, "and");
  }

  #relation(links: readonly Link[]): RealSet | null {
    return this.#join(
      links.map((link) => this.#link(link)),
      "and",
    );
  }

  #link({ sign, left, right }: Link): RealSet | null {
    if (sign === "in") return left.label === null ? null : named(this.read(right.answer), left.label);
    if (sign === "approx" || left.answer.kind !== "expression" || right.answer.kind !== "expression") return null;
    const [variable, bound] = variableOf(left, right) ?? [];
    const name = variable?.label ?? null;
    const expression = bound?.answer.kind === "expression" ? bound.answer.expression : undefined;
    if (name === null || expression === undefined || namesIn(expression).has(name)) {
      const isInequality = sign === "<" || sign === "<=";
      return isInequality ? this.#inequality(left.answer.expression, right.answer.expression, sign === "<=") : null;
    }
    if (sign === "=") return { name, pieces: [pointAt(expression)] };
    if (sign === "!=") return this.#complement({ name, pieces: [pointAt(expression)] });
    return halfLine(name, expression, sign === "<=", variable === left);
  }

  /** `2x + 1 < 5`, `|x - 2| < 3`, `3 < |x|`: the left side is below the right one. */
  #inequality(left: Expression, right: Expression, closed: boolean): RealSet | null {
    const [small, large] = [insideBars(left), insideBars(right)];
    if (small !== undefined && namesIn(right).size === 0) {
      return this.#join([this.#linear(small, right, closed), this.#linear(negative(right), small, closed)], "and");
    }
    if (large !== undefined && namesIn(left).size === 0) {
      return this.#join([this.#linear(large, negative(left), closed), this.#linear(left, large, closed)], "or");
    }
    return this.#linear(left, right, closed);
  }

  #linear(left: Expression, right: Expression, closed: boolean): RealSet | null {
    const bound = boundOf(left, right, this.#same);
    return bound && halfLine(bound.name, bound.at, closed, bound.isUpper);
  }

  #join(sets: readonly (RealSet | null)[], joint: "and" | "or"): RealSet | null {
    const [first, ...rest] = sets;
    return rest.reduce<RealSet | null>((a, b) => {
      if (a === null || b === null || (a.name !== null && b.name !== null && a.name !== b.name)) return null;
      const name = a.name ?? b.name;
      if (a.pieces.length + b.pieces.length > MOST_PIECES) return null;
      if (joint === "or") return this.#set(name, [...a.pieces, ...b.pieces]);
      const common = a.pieces.flatMap((one) => b.pieces.map((other) => this.#common(one, other)));
      return common.includes(null)
        ? null
        : this.#set(name, common.filter((piece) => piece !== null && piece !== "none") as Piece[]);
    }, first ?? null);
  }

  /** "none" if they have nothing in common. Null if that is unknown. */
  #common(a: Piece, b: Piece): Piece | "none" | null {
    const low = this.#tighter(a.low, b.low, 1);
    const high = this.#tighter(a.high, b.high, -1);
    if (low === null || high === null) return null;
    return this.#isEmpty({ low, high }) ? "none" : { low, high };
  }

  /** The higher of two lower ends (`side` 1), the lower of two upper ends (−1). */
  #tighter(a: End, b: End, side: 1 | -1): End | null {
    if (a.at === null) return b;
    if (b.at === null) return a;
    const order = this.#order(a.at, b.at);
    if (order === null) return null;
    if (order === 0) return { at: a.at, closed: a.closed && b.closed };
    return order === side ? a : b;
  }

  #isEmpty({ low, high }: Piece): boolean {
    if (low.at === null || high.at === null) return false;
    const order = this.#order(low.at, high.at);
    return order === 1 || (order === 0 && !(low.closed && high.closed));
  }

  /** In order, and joined where they touch; unchanged if their order is unknown. Null if one is empty. */
  #set(name: string | null, pieces: readonly Piece[]): RealSet | null {
    if (pieces.some((piece) => this.#isEmpty(piece))) return null;
    const ends = pieces.flatMap(({ low, high }) => [low.at, high.at]).filter((at) => at !== null);
    if (pieces.length > 1 && !ends.every((at) => approximate(at) !== null)) return { name, pieces };
    const sorted = [...pieces].sort((a, b) => (position(a.low) < position(b.low) ? -1 : 1));
    const joined: Piece[] = [];
    for (const piece of sorted) {
      const last = joined.at(-1);
      const merged = last && this.#merge(last, piece);
      if (merged === null) return null;
      if (merged === undefined || merged === "apart") joined.push(piece);
      else joined[joined.length - 1] = merged;
    }
    return { name, pieces: joined };
  }

  /** The union of two pieces, where the second does not start below the first; null if their order is unknown. */
  #merge(a: Piece, b: Piece): Piece | "apart" | null {
    const gap = a.high.at === null || b.low.at === null ? 1 : this.#order(a.high.at, b.low.at);
    if (gap === null) return null;
    if (gap === -1 || (gap === 0 && !a.high.closed && !b.low.closed)) return "apart";
    const high = this.#wider(a.high, b.high);
    const starts = a.low.at === null || b.low.at === null ? -1 : this.#order(a.low.at, b.low.at);
    if (high === null || starts === null) return null;
    return { low: starts === 0 ? { at: a.low.at, closed: a.low.closed || b.low.closed } : a.low, high };
  }

  /** The higher of two upper ends. */
  #wider(a: End, b: End): End | null {
    if (a.at === null || b.at === null) return OPEN;
    const order = this.#order(a.at, b.at);
    if (order === null) return null;
    if (order === 0) return { at: a.at, closed: a.closed || b.closed };
    return order === 1 ? a : b;
  }

  #order(a: Expression, b: Expression): -1 | 0 | 1 | null {
    this.#budget.spend(ORDER_STEPS);
    const [left, right] = [approximate(a), approximate(b)];
    if (left === null || right === null) return null;
    const gap = left.value - right.value;
    if (Math.abs(gap) > 4 * (left.error + right.error)) return gap > 0 ? 1 : -1;
    return this.#same(a, b) ? 0 : null;
  }
}

/** The side that is a name, then the other; of two names the later one in the alphabet: `a < x`. */
function variableOf(left: Side, right: Side): readonly [Side, Side] | undefined {
  const isParameter = ({ label }: Side) => label !== null && /^[a-m]$/.test(label);
  if (left.label === null || right.label === null) {
    if (left.label === right.label) return undefined;
    return left.label === null ? [right, left] : [left, right];
  }
  if (isParameter(left) === isParameter(right)) return undefined;
  return isParameter(left) ? [right, left] : [left, right];
}

function position({ at }: End): number {
  return at === null ? Number.NEGATIVE_INFINITY : (approximate(at)?.value ?? 0);
}

function halfLine(name: string, at: Expression, closed: boolean, isUpper: boolean): RealSet | null {
  const end = endAt(at, closed, isUpper ? 1 : -1);
  return end && { name, pieces: [isUpper ? { low: OPEN, high: end } : { low: end, high: OPEN }] };
}

/** Open for infinity on this `side` (−1 below, 1 above); null for infinity on the other side, or if it is closed. */
function endAt(expression: Expression, closed: boolean, side: -1 | 1): End | null {
  const sign = signOfInfinity(expression);
  if (sign === 0) return { at: expression, closed };
  return sign === side && !closed ? OPEN : null;
}

function pointAt(expression: Expression): Piece {
  const end = { at: expression, closed: true };
  return { low: end, high: end };
}

/** 1 and −1 for ∞ and −∞, 0 for anything else: arithmetic with infinity is not supported. */
function signOfInfinity(expression: Expression): -1 | 0 | 1 {
  if (expression.kind === "symbol") return expression.name === "infinity" ? 1 : 0;
  const isInfinite = expression.kind === "product" && expression.parts.some((part) => signOfInfinity(part) !== 0);
  return isInfinite ? -1 : 0;
}

function named(set: RealSet | null, name: string): RealSet | null {
  return set && { name, pieces: set.pieces };
}
