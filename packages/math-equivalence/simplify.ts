/**
 * The normal form of an expression: a quotient of two sums of one ring.
 *
 * sin and cos are written with exp(iu), sinh and cosh with exp(u). Then exp(a+b) = exp(a)·exp(b) is enough to derive
 * sin² + cos² = 1, the formulas for sums and multiples of angles, and the values at fractions of π. An operation
 * without a rule becomes an atom that is named after its normal form and equals only itself.
 */
import { absoluteOf, conjugateOf, leadsNegative } from "./absolute.ts";
import { approximate } from "./approximate.ts";
import { MATH_LIMITS, refuseDigits } from "./budget.ts";
import { Exponentials } from "./exponentials.ts";
import { samePlaces } from "./matching.ts";
import {
  addQuotients,
  asSum,
  constant,
  divideQuotients,
  fromSum,
  multiplyQuotients,
  type Quotient,
  quotientKey,
  rationalOf,
  sameValue,
  scaleQuotient,
  UndefinedValueError,
} from "./quotient.ts";
import { floor, HALF, isWhole, MINUS_ONE, multiply, ONE, type Rational, rational, whole } from "./rational.ts";
import { imaginary, type Ring, type Sum } from "./ring.ts";
import type { CallName, Expression } from "./syntax.ts";

export class Simplifier {
  readonly #ring: Ring;
  readonly #exponentials: Exponentials;
  readonly #opaques: { readonly name: string; readonly args: readonly Quotient[]; readonly atom: Quotient }[] = [];

  constructor(ring: Ring) {
    this.#ring = ring;
    this.#exponentials = new Exponentials(ring);
  }

  /** Throws `UndefinedValueError` if the expression has no value, `OverBudgetError` if it would cost too much. */
  of(expression: Expression): Quotient {
    const ring = this.#ring;
    switch (expression.kind) {
      case "number":
        return constant(ring, expression.value);
      case "symbol":
        return fromSum(ring, expression.name === "i" ? imaginary(ring) : ring.atom(expression.name));
      case "sum":
        return this.#fold(expression.parts, addQuotients);
      case "product":
        return this.#fold(expression.parts, multiplyQuotients);
      case "quotient":
        return divideQuotients(ring, this.of(expression.over), this.of(expression.under));
      case "power":
        return this.#exponentials.power(this.of(expression.base), this.of(expression.exponent));
      case "call":
        return this.#call(expression.name, expression.args);
      case "apply":
        return this.#opaque(`@${expression.name}`, ...expression.args.map((arg) => this.of(arg)));
    }
  }

  #fold(parts: readonly Expression[], join: (ring: Ring, a: Quotient, b: Quotient) => Quotient): Quotient {
    const [first, ...rest] = parts.map((part) => this.of(part));
    return rest.reduce((a, b) => join(this.#ring, a, b), first ?? constant(this.#ring, ONE));
  }

  #call(name: CallName, args: readonly Expression[]): Quotient {
    const ring = this.#ring;
    const [first = constant(ring, ONE), second = first] = args.map((arg) => this.of(arg));
    switch (name) {
      case "exp":
        return this.#exponentials.exp(first);
      case "ln":
        return this.#exponentials.ln(first);
      case "log":
        return divideQuotients(ring, this.#exponentials.ln(first), this.#exponentials.ln(second));
      case "arcsin":
      case "arccos":
      case "arctan":
        return this.#inverse(name, first);
      case "abs":
        return this.#abs(first, args[0]);
      case "floor":
      case "ceil":
        return this.#round(name, first, args[0]);
      case "factorial":
        return this.#factorial(first);
      case "binomial":
        return this.#binomial(first, second);
      default:
        return this.#circular(name, first);
    }
  }

  #circular(name: CallName, angle: Quotient): Quotient {
    const ring = this.#ring;
    switch (name) {
      case "tan":
        return divideQuotients(ring, this.#sine(angle), this.#cosine(angle));
      case "cot":
        return divideQuotients(ring, this.#cosine(angle), this.#sine(angle));
      case "sec":
        return divideQuotients(ring, constant(ring, ONE), this.#cosine(angle));
      case "csc":
        return divideQuotients(ring, constant(ring, ONE), this.#sine(angle));
      case "cos":
        return this.#cosine(angle);
      case "sinh":
        return this.#halfSum(angle, MINUS_ONE);
      case "cosh":
        return this.#halfSum(angle, ONE);
      case "tanh":
        return divideQuotients(ring, this.#halfSum(angle, MINUS_ONE), this.#halfSum(angle, ONE));
      default:
        return this.#sine(angle);
    }
  }

  /** sin u = sinh(iu) / i */
  #sine(angle: Quotient): Quotient {
    const turn = fromSum(this.#ring, imaginary(this.#ring));
    const imaginarySine = this.#halfSum(multiplyQuotients(this.#ring, angle, turn), MINUS_ONE);
    return divideQuotients(this.#ring, imaginarySine, turn);
  }

  #cosine(angle: Quotient): Quotient {
    const turn = fromSum(this.#ring, imaginary(this.#ring));
    return this.#halfSum(multiplyQuotients(this.#ring, angle, turn), ONE);
  }

  /** (exp(u) ± exp(−u)) / 2 */
  #halfSum(exponent: Quotient, sign: typeof ONE): Quotient {
    const ring = this.#ring;
    const there = this.#exponentials.exp(exponent);
    const back = this.#exponentials.exp(scaleQuotient(ring, exponent, MINUS_ONE));
    return scaleQuotient(ring, addQuotients(ring, there, scaleQuotient(ring, back, sign)), HALF);
  }

  /** The angle, if it is a multiple of 15°. Otherwise arccos u is π/2 − arcsin u. */
  #inverse(name: "arcsin" | "arccos" | "arctan", value: Quotient): Quotient {
    const ring = this.#ring;
    // Such an angle has a value that consists only of whole numbers and roots of primes.
    const [first, last] = isAlgebraic(value) ? INVERSE_RANGES[name] : [1n, 0n];
    for (let steps = first; steps <= last; steps += 1n) {
      const angle = fromSum(ring, ring.scale(ring.atom("pi"), rational(ring.budget, steps, 12n)));
      const direct = this.#circular(INVERSE_OF[name], angle);
      if (sameValue(ring, direct, value)) return angle;
    }
    if (name !== "arccos") return this.#oddInverse(name, value);
    const rightAngle = fromSum(ring, ring.scale(ring.atom("pi"), HALF));
    const sine = scaleQuotient(ring, this.#oddInverse("arcsin", value), MINUS_ONE);
    return addQuotients(ring, rightAngle, sine);
  }

  #oddInverse(name: "arcsin" | "arctan", value: Quotient): Quotient {
    if (!leadsNegative(value.over)) return this.#opaque(name, value);
    const mirrored = this.#opaque(name, scaleQuotient(this.#ring, value, MINUS_ONE));
    return scaleQuotient(this.#ring, mirrored, MINUS_ONE);
  }

  #abs(value: Quotient, expression: Expression | undefined): Quotient {
    const ring = this.#ring;
    const near = expression && approximate(expression);
    if (near && Math.abs(near.value) > near.error) {
      return near.value < 0 ? scaleQuotient(ring, value, MINUS_ONE) : value;
    }
    const sum = asSum(value);
    if (sum === undefined) return this.#opaque("abs", value);
    const mirrored = conjugateOf(ring, sum);
    if (mirrored === undefined || ring.subtract(sum, mirrored).size === 0) return fromSum(ring, absoluteOf(ring, sum));
    return this.#exponentials.power(fromSum(ring, ring.multiply(sum, mirrored)), constant(ring, HALF));
  }

  #round(name: "floor" | "ceil", value: Quotient, expression: Expression | undefined): Quotient {
    const ring = this.#ring;
    const exact = rationalOf(value);
    const sign = name === "floor" ? 1n : -1n;
    if (exact !== undefined) {
      const signed = { over: exact.over * sign, under: exact.under };
      return constant(ring, whole(sign * floor(signed)));
    }
    const near = expression && approximate(expression);
    const round = name === "floor" ? Math.floor : Math.ceil;
    const rounded = near && round(near.value - near.error);
    if (near && Number.isSafeInteger(rounded) && rounded === round(near.value + near.error)) {
      return constant(ring, whole(BigInt(rounded ?? 0)));
    }
    return this.#opaque(name, value);
  }

  /** (u + n)! is u! times the n factors above it, where u has no whole part. */
  #factorial(value: Quotient): Quotient {
    const ring = this.#ring;
    const known = factorial(ring, rationalOf(value));
    if (known !== null) return known;
    const sum = asSum(value);
    const offset = sum === undefined ? 0n : floor(constantTerm(sum));
    if (sum === undefined || offset === 0n || offset > MOST_FACTORS || -offset > MOST_FACTORS) {
      return this.#opaque("factorial", value);
    }
    const rest = ring.subtract(sum, ring.constant(whole(offset)));
    const root = this.#opaque("factorial", fromSum(ring, rest));
    const product = fromSum(ring, risingProduct(ring, rest, offset));
    const join = offset > 0n ? multiplyQuotients : divideQuotients;
    return join(ring, root, product);
  }

  /** n! / (k! (n − k)!) */
  #binomial(n: Quotient, k: Quotient): Quotient {
    const ring = this.#ring;
    const [ways, among] = [rationalOf(n), rationalOf(k)];
    const known = binomial(ring, ways, among);
    if (known !== null) return known;
    if (ways !== undefined && among !== undefined) return this.#opaque("binomial", n, k);
    const left = addQuotients(ring, n, scaleQuotient(ring, k, MINUS_ONE));
    const orders = multiplyQuotients(ring, this.#factorial(k), this.#factorial(left));
    return divideQuotients(ring, this.#factorial(n), orders);
  }

  /** A separate atom for each value of the arguments, however they are written. */
  #opaque(name: string, ...args: readonly Quotient[]): Quotient {
    const ring = this.#ring;
    const known = this.#opaques.find(
      (other) => other.name === name && samePlaces(other.args, args, (a, b) => sameValue(ring, a, b)),
    );
    if (known !== undefined) return known.atom;
    const atom = fromSum(ring, ring.atom(`${name}(${args.map(quotientKey).join(",")})`));
    this.#opaques.push({ name, args, atom });
    return atom;
  }
}

const INVERSE_OF = { arcsin: "sin", arccos: "cos", arctan: "tan" } as const;
/** More factors stay an atom: their product would be long. */
const MOST_FACTORS = 50n;

/** (u + 1) … (u + n), or u (u − 1) … with −n factors. */
function risingProduct(ring: Ring, u: Sum, n: bigint): Sum {
  let product = ring.constant(ONE);
  for (let at = n > 0n ? 1n : n + 1n; at <= (n > 0n ? n : 0n); at += 1n) {
    product = ring.multiply(product, ring.add(u, ring.constant(whole(at))));
  }
  return product;
}

function constantTerm(sum: Sum): Rational {
  const terms = [...sum.values()];
  return terms.find(({ powers }) => powers.size === 0)?.coefficient ?? whole(0n);
}

/** In steps of 15°. */
const INVERSE_RANGES = {
  arcsin: [-6n, 6n],
  arccos: [0n, 12n],
  arctan: [-5n, 5n],
} as const;

function isAlgebraic({ over, under }: Quotient): boolean {
  const terms = [...over.values(), ...under.values()];
  return terms.every(({ powers }) => [...powers.keys()].every((name) => name.startsWith("#")));
}

/** Factorials and binomial coefficients of whole numbers; null without a rule. */
function factorial(ring: Ring, n: Rational | undefined): Quotient | null {
  if (n === undefined || !isWhole(n)) return null;
  if (n.over < 0n) throw new UndefinedValueError("the factorial of a negative number");
  // 1000! has 2,568 digits.
  if (n.over > 1000n) refuseDigits(MATH_LIMITS.digits + 1);
  let product = ONE;
  for (let factor = 2n; factor <= n.over; factor += 1n) {
    product = multiply(ring.budget, product, whole(factor));
  }
  return constant(ring, product);
}

function binomial(ring: Ring, n: Rational | undefined, k: Rational | undefined): Quotient | null {
  if (n === undefined || k === undefined || !isWhole(n) || !isWhole(k) || n.over < 0n) return null;
  if (k.over < 0n || k.over > n.over) return constant(ring, whole(0n));
  const chosen = k.over * 2n > n.over ? n.over - k.over : k.over;
  let ways = ONE;
  for (let at = 1n; at <= chosen; at += 1n) {
    ways = multiply(ring.budget, ways, rational(ring.budget, n.over - chosen + at, at));
  }
  return constant(ring, ways);
}
