/** Solves inequalities that are linear in one variable. */
import { approximate } from "./approximate.ts";
import { MINUS_ONE, whole } from "./rational.ts";
import type { Expression } from "./syntax.ts";

/** `left < right` as a bound of the variable, and whether the variable is below it. */
export interface Bound {
  readonly name: string;
  readonly at: Expression;
  readonly isUpper: boolean;
}

const CONSTANTS = new Set(["pi", "e", "i", "infinity", "percent"]);

/** Null if the two sides do not differ by a linear function of one variable. `same` proves equalities. */
export function boundOf(
  left: Expression,
  right: Expression,
  same: (a: Expression, b: Expression) => boolean,
): Bound | null {
  const difference: Expression = { kind: "sum", parts: [left, negative(right)] };
  const [name, ...more] = namesIn(difference);
  if (name === undefined || more.length > 0) return null;
  const at = (value: bigint) => substitute(difference, name, { kind: "number", value: whole(value) });
  const slope: Expression = { kind: "sum", parts: [at(1n), negative(at(0n))] };
  const near = approximate(slope);
  if (near === null || Math.abs(near.value) <= 4 * near.error) return null;
  const line: Expression = {
    kind: "sum",
    parts: [{ kind: "product", parts: [slope, { kind: "symbol", name }] }, at(0n)],
  };
  if (!same(line, difference)) return null;
  return { name, at: { kind: "quotient", over: negative(at(0n)), under: slope }, isUpper: near.value > 0 };
}

/** The u of |u|; undefined for anything else. */
export function insideBars(expression: Expression): Expression | undefined {
  return expression.kind === "call" && expression.name === "abs" ? expression.args[0] : undefined;
}

export function negative(expression: Expression): Expression {
  return { kind: "product", parts: [{ kind: "number", value: MINUS_ONE }, expression] };
}

/** The variables of an expression, each once. */
export function namesIn(expression: Expression): Set<string> {
  const names = new Set<string>();
  visit(expression, (symbol) => {
    if (!CONSTANTS.has(symbol)) names.add(symbol);
  });
  return names;
}

function visit(expression: Expression, onSymbol: (name: string) => void): void {
  if (expression.kind === "symbol") onSymbol(expression.name);
  for (const part of partsOf(expression)) visit(part, onSymbol);
}

function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "number":
    case "symbol":
      return [];
    case "sum":
    case "product":
      return expression.parts;
    case "quotient":
      return [expression.over, expression.under];
    case "power":
      return [expression.base, expression.exponent];
    default:
      return expression.args;
  }
}

function substitute(expression: Expression, name: string, value: Expression): Expression {
  const into = (part: Expression) => substitute(part, name, value);
  switch (expression.kind) {
    case "number":
      return expression;
    case "symbol":
      return expression.name === name ? value : expression;
    case "sum":
    case "product":
      return { ...expression, parts: expression.parts.map(into) };
    case "quotient":
      return { ...expression, over: into(expression.over), under: into(expression.under) };
    case "power":
      return { ...expression, base: into(expression.base), exponent: into(expression.exponent) };
    default:
      return { ...expression, args: expression.args.map(into) };
  }
}
