/**
 * The limits of one comparison, and the errors that end one without a result.
 *
 * Work is counted before it is done and never timed, so a busy machine gives the same result as an idle one. Work
 * beyond a limit ends with an `OverBudgetError`.
 */

export const MATH_LIMITS = {
  /** Nodes of one parsed text, including brackets. This also bounds its depth. */
  nodes: 500,
  /** Decimal digits of any whole number, written or computed. */
  digits: 2000,
  /** Term products, divided digits, tried factors: about three microseconds each. */
  steps: 100_000,
  /** A longer answer is wrong. */
  characters: 50_000,
} as const;

/** It cannot be decided whether the two texts are the same. */
export class NoVerdictError extends Error {
  override readonly name: string = "NoVerdictError";
}

/** The target itself is not mathematics that can be compared. */
export class MalformedTargetError extends NoVerdictError {
  override readonly name = "MalformedTargetError";

  constructor(why: string) {
    super(`the target cannot be read: ${why}`);
  }
}

/** The comparison would exceed one of `MATH_LIMITS`. */
export class OverBudgetError extends NoVerdictError {
  override readonly name = "OverBudgetError";

  constructor(what: string) {
    super(`the comparison was given up: ${what}`);
  }
}

/** Counts the work of one comparison. `onSpend` is called before every step, and may throw. */
export class Budget {
  readonly #onSpend: (steps: number) => void;
  #steps = 0;
  #nodes = 0;

  constructor(onSpend: (steps: number) => void) {
    this.#onSpend = onSpend;
  }

  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MATH_LIMITS.steps) throw new OverBudgetError(`more than ${MATH_LIMITS.steps} steps`);
    this.#onSpend(steps);
  }

  /** Counts one more node of the text that is being read. */
  node(): void {
    this.#nodes += 1;
    refuseNodes(this.#nodes);
  }

  /** The text has been read: nodes are counted from zero for the next one. */
  endText(): void {
    this.#nodes = 0;
  }
}

export function refuseNodes(nodes: number): void {
  if (nodes > MATH_LIMITS.nodes) throw new OverBudgetError(`more than ${MATH_LIMITS.nodes} nodes`);
}

export function refuseDigits(digits: number): void {
  if (digits > MATH_LIMITS.digits) throw new OverBudgetError(`a number of more than ${MATH_LIMITS.digits} digits`);
}
