/**
 * What one comparison may cost, and the errors that end one without a verdict.
 *
 * Work is counted before it is done and never timed, so a busy machine gives the same verdict as an idle one. Whatever
 * would go beyond a limit ends in an `OverBudgetError`.
 */

export const MATH_LIMITS = {
  /** Nodes of one parsed text, brackets included. They bound its depth too. */
  nodes: 500,
  /** Decimal digits of any whole number, written or computed. */
  digits: 2000,
  /** Term products, digits divided, factors tried: about three microseconds each. */
  steps: 100_000,
  /** A longer answer is wrong. */
  characters: 50_000,
} as const;

/** Nobody can say whether the two texts are the same. */
export class NoVerdictError extends Error {
  override readonly name: string = "NoVerdictError";
}

/** The target itself is no mathematics that can be compared. */
export class MalformedTargetError extends NoVerdictError {
  override readonly name = "MalformedTargetError";

  constructor(why: string) {
    super(`the target cannot be read: ${why}`);
  }
}

/** The comparison would take more than one of `MATH_LIMITS`. */
export class OverBudgetError extends NoVerdictError {
  override readonly name = "OverBudgetError";

  constructor(what: string) {
    super(`the comparison was given up: ${what}`);
  }
}

/** Counts the work of one comparison. `onSpend` hears of every step before it is done, and may throw. */
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

  /** The text has been read: the next one has nodes of its own. */
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
