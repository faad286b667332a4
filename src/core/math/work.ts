/**
 * What one comparison may cost, counted in work and never in time: a clock stands still in a deployed Worker, and under
 * load it would make a right answer wrong. Whatever would go beyond ends in a `WorkBudgetError` before it is computed.
 */
import { NoScoreError } from "../rubrics/score-value.ts";

export const MATH_LIMITS = {
  /** Nodes of one parsed text, brackets included: with them the depth is bounded. */
  nodes: 500,
  /** Decimal digits of any whole number, written or computed. */
  digits: 2000,
  /** Term products, digits divided, factors tried: about a microsecond each. */
  steps: 100_000,
  /** Of an answer; a longer one is wrong. */
  characters: 50_000,
} as const;

/** Nobody can say whether the answer is right within the budget: no score. */
export class WorkBudgetError extends NoScoreError {
  override readonly name = "WorkBudgetError";

  constructor(what: string) {
    super("scorer", `the comparison was given up: ${what}`);
  }
}

export class Work {
  #steps = 0;
  #nodes = 0;

  /** Counts work about to be done. */
  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MATH_LIMITS.steps) {
      throw new WorkBudgetError(`more than ${MATH_LIMITS.steps} steps`);
    }
  }

  /** Counts one more node of the text that is being read. */
  node(): void {
    this.#nodes += 1;
    if (this.#nodes > MATH_LIMITS.nodes) {
      throw new WorkBudgetError(`more than ${MATH_LIMITS.nodes} nodes`);
    }
  }

  /** A text has been read: the next one has nodes of its own. */
  endText(): void {
    this.#nodes = 0;
  }
}

export function refuseDigits(digits: number): void {
  if (digits > MATH_LIMITS.digits) {
    throw new WorkBudgetError(`a number of more than ${MATH_LIMITS.digits} digits`);
  }
}
