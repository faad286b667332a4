/**
 * Counts work whose size depends on data or a model, before it is done.
 *
 * Invariants. Work is counted, never timed: in a deployed Worker the clock does not advance during computation, and
 * under load a time limit would make a right answer wrong. The same texts take the same number of steps everywhere.
 * Work that would exceed the limit throws `WorkBudgetError` before it is done: the score is unknown, so it is null, and
 * never 0.
 */
import { NoScoreError } from "./score-value.ts";

/** A step is about 50 ns of one core. */
export const WORK_LIMITS = {
  /** Maximum of one score, or of one check of a value against a JSON Schema: a third of a second. */
  scoreSteps: 6_000_000,
  /** Maximum of all scores of one scoring group (a rollout or a group) in one pass. */
  scoringGroupSteps: 100_000_000,
} as const;

/** The score cannot be computed within the budget: there is no score. */
export class WorkBudgetError extends NoScoreError {
  override readonly name = "WorkBudgetError";

  constructor(message: string) {
    super("scorer", message);
  }
}

interface Budget {
  /** What the budget is for, in the words of an error. */
  readonly of: string;
  readonly steps: number;
  /** A larger budget that this one is part of, if any. */
  readonly within?: Work | undefined;
}

export class Work {
  /** Yields to other work if enough time has passed; null if nothing else waits. */
  breathe: (() => Promise<void>) | null = null;
  readonly #budget: Budget;
  #steps = 0;
  #exceeded = false;

  /** Steps counted so far. */
  get steps(): number {
    return this.#steps;
  }

  /** True once work was refused because it exceeded the budget. */
  get exceeded(): boolean {
    return this.#exceeded;
  }

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** The steps that it permits. */
  get limit(): number {
    return this.#budget.steps;
  }

  /** Counts work that was done elsewhere. */
  count(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#budget.steps) this.#exceeded = true;
  }

  /** Counts work before it is done. `doing` is part of the error: "comparing 40,000 with 60,000 characters". */
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

/** The key of the group's budget among the arguments of a scoring function. */
export const WORK: unique symbol = Symbol("work");

/** Arguments of a scoring function; those written by a test may have no budget. */
export interface Budgeted {
  readonly [WORK]?: Work | undefined;
}

/** The shared budget of the running checks. They are synchronous, so no other check can run in between. */
let checking: Work | undefined;

/** The budget of one score, or of one check. Its work also counts for the group, if there is one. */
export function scoreWork(args: Budgeted = {}): Work {
  return new Work({ of: "one score", steps: WORK_LIMITS.scoreSteps, within: args[WORK] ?? checking });
}

/** The shared budget for checking an environment's arguments, in which patterns and schemas are compiled. */
export function argumentsWork(): Work {
  return new Work({ of: "the arguments of an environment", steps: WORK_LIMITS.scoreSteps });
}

/** `check` is synchronous; its work is counted on `work`. */
export function checkWithin<T>(check: () => T, work: Work = argumentsWork()): T {
  const before = checking;
  checking = work;
  try {
    return check();
  } finally {
    checking = before;
  }
}

/** For a scoring function that computes in pieces: call it between two pieces, so that other work can run. */
export async function pauseWork(args: Budgeted): Promise<void> {
  await args[WORK]?.breathe?.();
}

export function scoringGroupWork(steps: number = WORK_LIMITS.scoringGroupSteps): Work {
  return new Work({ of: "the scores of one scoring group", steps });
}

/** Counts work for one score, with the arguments of its function, before it is done. Throws `WorkBudgetError`. */
export function spendWork(args: Budgeted, steps: number, doing: string): void {
  scoreWork(args).spend(steps, doing);
}

/** 12345 as "12,345". */
export function withThousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
