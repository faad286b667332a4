/**
 * Computes the value of an expression at a point, with a bound on its error: real numbers only.
 *
 * It can only show that two expressions differ. The bound is carried through every operation, to first order, so that
 * cancellation errors do not look like a difference; the caller allows for the rest. Null if a value is not real, not
 * finite or not known.
 */
import type { Rational } from "./rational.ts";
import type { CallName, Expression } from "./syntax.ts";

export interface Approximation {
  readonly value: number;
  readonly error: number;
}
export type Point = (symbol: string) => number | undefined;

const EPSILON = 2 ** -51;
/** A value with a larger relative error is useless. */
const LOOSE = 1e-3;
const CONSTANTS = new Map([
  ["pi", Math.PI],
  ["e", Math.E],
]);

/** Without a point only constants have a value. */
export function approximate(expression: Expression, point: Point = () => undefined): Approximation | null {
  return finiteOrNull(evaluate(expression, point));
}

function evaluate(expression: Expression, point: Point): Approximation | null {
  switch (expression.kind) {
    case "number":
      return numberValue(expression.value);
    case "symbol":
      return symbolValue(expression.name, point);
    case "sum":
      return combine(expression.parts, point, (parts) => parts.reduce(plus));
    case "product":
      return combine(expression.parts, point, (parts) => parts.reduce(times));
    case "quotient":
      return combine([expression.over, expression.under], point, ([over = ZERO, under = ZERO]) => divide(over, under));
    case "power": {
      const { base, exponent } = expression;
      return combine([base, exponent], point, ([value = ZERO, power = ZERO]) => toPower(value, power, exponent));
    }
    case "call":
      return combine(expression.args, point, ([first = ZERO, second = ZERO]) =>
        callValue(expression.name, first, second),
      );
    case "apply":
      return null;
  }
}

/** Applies `join` to the values of the parts; null if a part has no value. */
function combine(
  parts: readonly Expression[],
  point: Point,
  join: (values: readonly Approximation[]) => Approximation | null,
): Approximation | null {
  const values: Approximation[] = [];
  for (const part of parts) {
    const value = approximate(part, point);
    if (value === null) return null;
    values.push(value);
  }
  return join(values);
}

const ZERO: Approximation = { value: 0, error: 0 };

function symbolValue(name: string, point: Point): Approximation | null {
  const value = point(name);
  if (value !== undefined) return { value, error: 0 };
  const constant = CONSTANTS.get(name);
  return constant === undefined ? null : round(constant);
}

function plus(a: Approximation, b: Approximation): Approximation {
  return exact(round(a.value + b.value, a.error + b.error), a, b);
}

function times(a: Approximation, b: Approximation): Approximation {
  const error = Math.abs(a.value) * b.error + Math.abs(b.value) * a.error + a.error * b.error;
  return exact(round(a.value * b.value, error), a, b);
}

/** Sums and products of whole numbers are exact while they are small. */
function exact(result: Approximation, a: Approximation, b: Approximation): Approximation {
  const isExact = a.error === 0 && b.error === 0 && Number.isSafeInteger(result.value);
  return isExact ? { value: result.value, error: 0 } : result;
}

function divide(a: Approximation, b: Approximation): Approximation | null {
  const least = Math.abs(b.value) - b.error;
  if (least <= 0) return null;
  const value = a.value / b.value;
  return round(value, (a.error + Math.abs(value) * b.error) / least);
}

function toPower(base: Approximation, exponent: Approximation, written: Expression): Approximation | null {
  const isWholeNumber = exponent.error === 0 && Number.isInteger(exponent.value);
  const size = Math.abs(base.value);
  if (size <= base.error) return null;
  const sign = base.value > 0 || isWholeNumber ? 1 : signOfRoot(written);
  if (sign === null) return null;
  const value = sign === 1 && isWholeNumber ? base.value ** exponent.value : sign * size ** exponent.value;
  // d(b^x) = b^x (x db / b + ln b dx)
  const relative =
    (Math.abs(exponent.value) * base.error) / (size - base.error) + Math.abs(Math.log(size)) * exponent.error;
  return round(value, Math.abs(value) * (relative + EPSILON * Math.abs(exponent.value)));
}

/**
 * The sign of a root of a negative number, which is real if the root is odd. Null if it is not real, or if the exponent
 * is not written as a fraction.
 */
function signOfRoot(exponent: Expression): 1 | -1 | null {
  const fraction = fractionOf(exponent);
  if (fraction === null) return null;
  let { over: times, under: root } = fraction;
  for (; root % 2n === 0n && times % 2n === 0n; root /= 2n) times /= 2n;
  if (root % 2n === 0n) return null;
  return times % 2n === 0n ? 1 : -1;
}

function fractionOf(exponent: Expression): Rational | null {
  if (exponent.kind === "number") return exponent.value;
  if (exponent.kind !== "quotient") return null;
  const { over: above, under: below } = exponent;
  if (above.kind !== "number" || below.kind !== "number") return null;
  const over_ = above.value.over * below.value.under;
  return { over: over_, under: above.value.under * below.value.over };
}

/** Each function with the absolute value of its derivative. */
const FUNCTIONS: Partial<Record<CallName, readonly [(x: number) => number, (x: number) => number]>> = {
  sin: [Math.sin, () => 1],
  cos: [Math.cos, () => 1],
  tan: [Math.tan, (x) => 1 / Math.cos(x) ** 2],
  cot: [(x) => 1 / Math.tan(x), (x) => 1 / Math.sin(x) ** 2],
  sec: [(x) => 1 / Math.cos(x), (x) => Math.abs(Math.tan(x) / Math.cos(x))],
  csc: [(x) => 1 / Math.sin(x), (x) => Math.abs(1 / (Math.tan(x) * Math.sin(x)))],
  sinh: [Math.sinh, Math.cosh],
  cosh: [Math.cosh, (x) => Math.abs(Math.sinh(x))],
  tanh: [Math.tanh, () => 1],
  arcsin: [Math.asin, (x) => 1 / Math.sqrt(1 - x * x)],
  arccos: [Math.acos, (x) => 1 / Math.sqrt(1 - x * x)],
  arctan: [Math.atan, () => 1],
  ln: [Math.log, (x) => 1 / x],
  exp: [Math.exp, Math.exp],
  abs: [Math.abs, () => 1],
};

function callValue(name: CallName, first: Approximation, second: Approximation): Approximation | null {
  if (name === "log") return overLogarithms(first, second);
  if (name === "factorial") return fallingProduct(first, first);
  if (name === "binomial") return binomialValue(first, second);
  const known = FUNCTIONS[name];
  if (known === undefined) return null;
  const [fn, slope] = known;
  const derivative = slope(first.value);
  const error = derivative * first.error + EPSILON * Math.abs(derivative * first.value);
  return round(fn(first.value), error);
}

function binomialValue(n: Approximation, k: Approximation): Approximation | null {
  const [ways, orders] = [fallingProduct(n, k), fallingProduct(k, k)];
  return ways && orders && divide(ways, orders);
}

/**
 * n (n − 1) … with `count` factors, for whole numbers up to 170, whose factorial is the largest that a double holds.
 */
function fallingProduct(n: Approximation, count: Approximation): Approximation | null {
  const areWhole = [n, count].every(({ value, error }) => error === 0 && Number.isInteger(value));
  if (!areWhole || count.value < 0 || n.value > 170 || count.value > n.value) return null;
  let product: Approximation = { value: 1, error: 0 };
  for (let at = 0; at < count.value; at += 1) {
    product = times(product, { value: n.value - at, error: 0 });
  }
  return product;
}

function overLogarithms(value: Approximation, base: Approximation): Approximation | null {
  const [top, bottom] = [callValue("ln", value, ZERO), callValue("ln", base, ZERO)];
  return top && bottom && divide(top, bottom);
}

function numberValue({ over: above, under: below }: Rational): Approximation {
  const value = ratio(above, below);
  return below === 1n && Number.isSafeInteger(value) ? { value, error: 0 } : round(value);
}

/** The quotient of whole numbers of any size, to the precision of a double. */
function ratio(above: bigint, below: bigint): number {
  const excess = Math.max(String(above).length, String(below).length) - 300;
  if (excess <= 0) return Number(above) / Number(below);
  const scale = 10n ** BigInt(excess);
  return Number(above / scale) / Number(below / scale);
}

function round(value: number, error = 0): Approximation {
  return { value, error: error + Math.abs(value) * EPSILON };
}

function finiteOrNull(result: Approximation | null): Approximation | null {
  if (result === null || !Number.isFinite(result.value) || !Number.isFinite(result.error)) return null;
  return result.error > LOOSE * Math.abs(result.value) && result.error > LOOSE ? null : result;
}
