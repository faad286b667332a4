/** What a text of mathematics is read into. Nothing here is ever run as code: the grammar is closed. */
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
  /** A function that only its name is known of: `f(x)`, `\bar z`. */
  | { readonly kind: "apply"; readonly name: string; readonly args: readonly Expression[] };

/** Functions by the name a text has for them. `log` takes its base as second argument. */
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
  /** With a unit. `sums`: several units were added up (`1 h 20 min`), so the number alone says nothing. */
  | { readonly kind: "quantity"; readonly expression: Expression; readonly unit: Unit; readonly sums: boolean }
  /** `mayBeTime`: it could be a time of the day too (`2:30`), and two of those are no proportion. */
  | { readonly kind: "ratio"; readonly terms: readonly Expression[]; readonly mayBeTime: boolean }
  /** A tuple or an interval: the brackets count, and so does the order. */
  | {
      readonly kind: "ordered";
      readonly open: "(" | "[";
      readonly close: ")" | "]";
      readonly items: readonly Answer[];
    }
  /** `{1, 2}`, where repetitions do not count. */
  | { readonly kind: "set"; readonly items: readonly Answer[] }
  /** `1, 2`, where they do; in neither does the order. */
  | { readonly kind: "list"; readonly joint: Joint; readonly items: readonly Answer[] }
  /** Sets joined by `\cup`, `\cap` or `\setminus`; only in the last does the order count. */
  | { readonly kind: "union" | "intersection" | "difference"; readonly items: readonly Answer[] }
  /** `fence`: "|" for a determinant, "cases" for cases, else "". */
  | { readonly kind: "matrix"; readonly fence: "" | "|" | "cases"; readonly rows: readonly (readonly Answer[])[] }
  /** `a < b = c` is two links. `>` is turned round. */
  | { readonly kind: "relation"; readonly links: readonly Link[] }
  /** An answer to choose, with its letter. */
  | { readonly kind: "choice"; readonly letter: string; readonly content: Answer }
  /** Words, and what stands between them; what could not be read stands as its own text. */
  | { readonly kind: "phrase"; readonly parts: readonly (string | Answer)[] };

/** What separates the entries of a list; a comma says no more than that there are several. */
export type Joint = "," | "and" | "or";

export interface Side {
  readonly answer: Answer;
  /** The side as text, where it only names what the other side says: `x`, `f(x)`, `\angle ABC`. */
  readonly label: string | null;
}

export interface Link {
  readonly sign: Comparison;
  readonly left: Side;
  readonly right: Side;
}

/** The text is not of the grammar. */
export class MathSyntaxError extends Error {
  override readonly name = "MathSyntaxError";
}
