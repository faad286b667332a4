/**
 * What data or a model can make large is counted before it is done.
 *
 * Invariants. Work is counted, never timed: a clock stands still in a deployed Worker, and under load it would make a
 * right answer wrong. The same texts take the same number of steps everywhere. Whatever would go beyond the limit ends
 * in a `WorkBudgetError` before it is computed: nobody knows the score, so there is none, and never a 0.
 */
import { NoScoreError } from "./score-value.ts";

/** A step is about 50 ns of one core. */
export const WORK_LIMITS = {
  /** One score, or one check of a value against a JSON Schema, may take so many: a third of a second. */
  scoreSteps: 6_000_000,
  /** All scores of one unit (a rollout or a group) may take so many in one pass. */
  unitSteps: 100_000_000,
} as const;

/** Nobody can say what the score is within the budget: no score. */
export class WorkBudgetError extends NoScoreError {
  override readonly name = "WorkBudgetError";

  constructor(message: string) {
    super("scorer", message);
  }
}

interface Budget {
  /** What it is the budget of, as an error says it. */
  readonly of: string;
  readonly steps: number;
  /** A larger budget that this one draws on, if there is one. */
  readonly within?: Work | undefined;
}

export class Work {
  /** Lets others compute, where it has taken long enough; null where nobody waits. */
  breathe: (() => Promise<void>) | null = null;
  readonly #budget: Budget;
  #steps = 0;
  #exceeded = false;

  /** Counted so far. */
  get steps(): number {
    return this.#steps;
  }

  /** True once something was refused for what it would take. */
  get exceeded(): boolean {
    return this.#exceeded;
  }

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Counts work about to be done. `doing` stands in the error: "comparing 40,000 with 60,000 characters". */
  spend(steps: number, doing: string): void {
    this.#steps += steps;
    if (this.#steps > this.#budget.steps) {
      this.#exceeded = true;
      throw this.refusal(doing);
    }
    this.#budget.within?.spend(steps, doing);
  }

  protected refusal(doing: string): WorkBudgetError {
    const { of, steps } = this.#budget;
    return new WorkBudgetError(
      `${doing} would exceed the limit of ${withThousands(steps)} steps of work for ${of}: make it smaller`,
    );
  }
}

/** The key of the unit's budget among the arguments of a scoring function. */
export const WORK: unique symbol = Symbol("work");

/** Arguments of a scoring function, of which some have no budget: those that a test wrote. */
export interface Budgeted {
  readonly [WORK]?: Work | undefined;
}

/** What the checks under way draw on together. They compute at once, so no other can come between. */
let checking: Work | undefined;

/** The budget of one score, or of one check; what it takes counts for the unit too, where there is one. */
export function scoreWork(args: Budgeted = {}): Work {
  return new Work({ of: "one score", steps: WORK_LIMITS.scoreSteps, within: args[WORK] ?? checking });
}

/** What checking an environment's arguments may take together: patterns and schemas are compiled. */
export function argumentsWork(): Work {
  return new Work({ of: "the arguments of an environment", steps: WORK_LIMITS.scoreSteps });
}

/** `check` computes at once; what it checks draws on `work`. */
export function checkWithin<T>(check: () => T, work: Work = argumentsWork()): T {
  const before = checking;
  checking = work;
  try {
    return check();
  } finally {
    checking = before;
  }
}

/** For a scoring function that computes in pieces: call it between two of them, so that others are not held up. */
export async function pauseWork(args: Budgeted): Promise<void> {
  await args[WORK]?.breathe?.();
}

export function unitWork(steps: number = WORK_LIMITS.unitSteps): Work {
  return new Work({ of: "the scores of one scoring group", steps });
}

/** Counts work about to be done for one score, with the arguments its function was given. Throws `WorkBudgetError`. */
export function spendWork(args: Budgeted, steps: number, doing: string): void {
  scoreWork(args).spend(steps, doing);
}

/** 12345 as "12,345". */
export function withThousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
