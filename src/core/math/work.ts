/**
 * What one comparison may cost: limits of its own within the budget of a score. Whatever would go beyond ends in a
 * `WorkBudgetError` before it is computed.
 */
import { Work, WorkBudgetError } from "../rubrics/work.ts";

export const MATH_LIMITS = {
  /** Nodes of one parsed text, brackets included: with them the depth is bounded. */
  nodes: 500,
  /** Decimal digits of any whole number, written or computed. */
  digits: 2000,
  /** Term products, digits divided, factors tried: about three microseconds each. */
  steps: 100_000,
  /** Of an answer; a longer one is wrong. */
  characters: 50_000,
} as const;

/** Steps of a score's budget that one step here takes. */
const SCORE_STEPS = 60;

export class MathWork extends Work {
  readonly #score: Work | undefined;
  #nodes = 0;

  constructor(score?: Work) {
    super({ of: "a comparison", steps: MATH_LIMITS.steps });
    this.#score = score;
  }

  /** Counts work about to be done. */
  override spend(steps: number): void {
    super.spend(steps, "");
    this.#score?.spend(steps * SCORE_STEPS, "comparing two expressions");
  }

  /** Counts one more node of the text that is being read. */
  node(): void {
    this.#nodes += 1;
    if (this.#nodes > MATH_LIMITS.nodes) throw givenUp(`more than ${MATH_LIMITS.nodes} nodes`);
  }

  /** A text has been read: the next one has nodes of its own. */
  endText(): void {
    this.#nodes = 0;
  }

  protected override refusal(): WorkBudgetError {
    return givenUp(`more than ${MATH_LIMITS.steps} steps`);
  }
}

export function refuseDigits(digits: number): void {
  if (digits > MATH_LIMITS.digits) {
    throw givenUp(`a number of more than ${MATH_LIMITS.digits} digits`);
  }
}

export function givenUp(what: string): WorkBudgetError {
  return new WorkBudgetError(`the comparison was given up: ${what}`);
}
