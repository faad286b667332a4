/** The syntax trees of mathematical text. Nothing here is ever run as code: the grammar is closed. */
import type { Rational } from "./rational.ts";
import type { Unit } from "./units.ts";

export type Expression =
  | { readonly kind: "number"; readonly value: Rational }
  /** A variable or a constant: `x`, `x_1`, `pi`, `e`, `i`, `infinity`, `percent`, or a whole word. */
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "sum" | "product"; readonly parts: readonly Expression[] }
  | { readonly kind: "quotient"; readonly over: Expression; readonly under: Expression }
  | { readonly kind: "power"; readonly base: Expression; readonly exponent: Expression }
  | { readonly kind: "call"; readonly name: CallName; readonly args: readonly Expression[] }
  /** A function of which only the name is known: `f(x)`, `\bar z`. */
  | { readonly kind: "apply"; readonly name: string; readonly args: readonly Expression[] };

/** Functions by their name in a text. `log` takes its base as second argument. */
export const FUNCTIONS = [
  "sin",
  "cos",
  "tan",
  "cot",
  "sec",
  "csc",
  "sinh",
  "cosh",
  "tanh",
  "arcsin",
  "arccos",
  "arctan",
  "ln",
  "log",
  "exp",
] as const;
export type CallName = (typeof FUNCTIONS)[number] | "abs" | "floor" | "ceil" | "factorial" | "binomial";

export type Comparison = "=" | "approx" | "in" | "!=" | "<" | "<=";

/** An answer: an expression, or a structure of answers. */
export type Answer =
  | { readonly kind: "expression"; readonly expression: Expression }
  /** With a unit. `sums`: several units were added up (`1 h 20 min`), so the number alone means nothing. */
  | { readonly kind: "quantity"; readonly expression: Expression; readonly unit: Unit; readonly sums: boolean }
  /** `mayBeTime`: it may also be a time of day (`2:30`), and two of those are not a proportion. */
  | { readonly kind: "ratio"; readonly terms: readonly Expression[]; readonly mayBeTime: boolean }
  /** A tuple or an interval: the brackets and the order count. */
  | {
      readonly kind: "ordered";
      readonly open: "(" | "[";
      readonly close: ")" | "]";
      readonly items: readonly Answer[];
    }
  /** `{1, 2}`; repetitions do not count, nor does the order. */
  | { readonly kind: "set"; readonly items: readonly Answer[] }
  /** `1, 2`; repetitions count, the order does not. */
  | { readonly kind: "list"; readonly joint: Joint; readonly items: readonly Answer[] }
  /** Sets joined by `\cup`, `\cap` or `\setminus`; the order counts only for a difference. */
  | { readonly kind: "union" | "intersection" | "difference"; readonly items: readonly Answer[] }
  /** `fence`: "|" for a determinant, "cases" for cases, else "". */
  | { readonly kind: "matrix"; readonly fence: "" | "|" | "cases"; readonly rows: readonly (readonly Answer[])[] }
  /** `a < b = c` is two links. `>` is reversed. */
  | { readonly kind: "relation"; readonly links: readonly Link[] }
  /** A multiple-choice answer with its letter. */
  | { readonly kind: "choice"; readonly letter: string; readonly content: Answer }
  /** Words, and the answers between them; a part that could not be read is its own text. */
  | { readonly kind: "phrase"; readonly parts: readonly (string | Answer)[] };

/** The separator of a list's entries; a comma only shows that there are several. */
export type Joint = "," | "and" | "or";

export interface Side {
  readonly answer: Answer;
  /** The side as text, if it is only a name for the other side: `x`, `f(x)`, `\angle ABC`. */
  readonly label: string | null;
}

export interface Link {
  readonly sign: Comparison;
  readonly left: Side;
  readonly right: Side;
}

/** The text is outside the grammar. */
export class MathSyntaxError extends Error {
  override readonly name = "MathSyntaxError";
}
