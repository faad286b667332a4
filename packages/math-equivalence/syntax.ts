/** What a text of mathematics is read into. Nothing here is ever run as code: the grammar is closed. */
import type { Rational } from "./rational.ts";

export type Expression =
  | { readonly kind: "number"; readonly value: Rational }
  /** A variable or a constant: `x`, `x_1`, `pi`, `e`, `i`, `infinity`, `percent`, or a whole word. */
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "sum" | "product"; readonly parts: readonly Expression[] }
  | { readonly kind: "quotient"; readonly over: Expression; readonly under: Expression }
  | { readonly kind: "power"; readonly base: Expression; readonly exponent: Expression }
  | { readonly kind: "call"; readonly name: CallName; readonly args: readonly Expression[] };

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

export type Comparison = "=" | "!=" | "<" | "<=";

/** An answer: an expression, or a structure of answers. */
export type Answer =
  | { readonly kind: "expression"; readonly expression: Expression }
  /** A tuple or an interval: the brackets count, and so does the order. */
  | {
      readonly kind: "ordered";
      readonly open: "(" | "[";
      readonly close: ")" | "]";
      readonly items: readonly Answer[];
    }
  /** `{1, 2}`, where repetitions do not count, or `1, 2`, where they do; in neither does the order. */
  | { readonly kind: "set" | "list"; readonly items: readonly Answer[] }
  /** Intervals and sets joined by `\cup`. */
  | { readonly kind: "union"; readonly items: readonly Answer[] }
  | { readonly kind: "matrix"; readonly rows: readonly (readonly Expression[])[] }
  /** `a < b = c` is two links. `>` is turned round. */
  | { readonly kind: "relation"; readonly links: readonly Link[] };

export interface Link {
  readonly sign: Comparison;
  readonly left: Expression;
  readonly right: Expression;
}

/** The text is not of the grammar. */
export class MathSyntaxError extends Error {
  override readonly name = "MathSyntaxError";
}
