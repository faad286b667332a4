/**
 * pass@k and pass^k: the probabilities that at least one of k attempts at a task passes, and that all of them do.
 *
 * Both are unbiased estimates from the n scored attempts of a task, of which c passed: 1 − C(n−c, k)/C(n, k) and
 * C(c, k)/C(n, k) (Chen et al. 2021, "Evaluating large language models trained on code"; Yao et al. 2024, "τ-bench").
 * They are undefined for n < k: such a task is left out, and counted.
 */
import { Spread } from "./spread.ts";

/** The reward from which on an attempt passes (verifiers' threshold). */
export const PASS_THRESHOLD = 0.5;

/** Figures about pass@k and pass^k for one k. */
export interface PassBasis {
  /** Tasks with at least k scored attempts: those the means are over. */
  readonly n_tasks: number;
  /** Tasks with fewer, left out. */
  readonly n_too_few: number;
  /** Standard errors over tasks; null for fewer than two. */
  readonly at_se: number | null;
  readonly hat_se: number | null;
}

/** Tables by k, as text. A mean is null if no task has k scored attempts. */
export interface PassTables {
  readonly pass_at_k: Record<string, number | null>;
  readonly pass_hat_k: Record<string, number | null>;
  readonly pass_k: Record<string, PassBasis>;
}

/** The probability that at least one of k attempts, drawn from n of which c passed, passes. 1 ≤ k ≤ n. */
export function passAtK(n: number, c: number, k: number): number {
  return 1 - allOf(n, n - c, k);
}

/** The probability that all of k attempts, drawn from n of which c passed, pass. 1 ≤ k ≤ n. */
export function passHatK(n: number, c: number, k: number): number {
  return allOf(n, c, k);
}

/** C(c, k) / C(n, k), as a product that cannot overflow. */
function allOf(n: number, c: number, k: number): number {
  if (c < k) return 0;
  let share = 1;
  for (let drawn = 0; drawn < k; drawn += 1) share *= (c - drawn) / (n - drawn);
  return share;
}

/** Tasks of `attempts` attempts each: k = 1, 2, 4, … below that number, and the number itself. */
export class PassTally {
  readonly #attempts: number;
  #tasks = 0;
  #byK: readonly Entry[];

  constructor(attempts: number) {
    this.#attempts = attempts;
    this.#byK = kTable(attempts).map((k) => ({ k, at: new Spread(), hat: new Spread() }));
  }

  /** A task with `n` scored attempts, of which `c` passed. */
  add(n: number, c: number): void {
    this.#tasks += 1;
    for (const { k, at, hat } of this.#byK) {
      if (k > n) continue;
      at.add(passAtK(n, c, k));
      hat.add(passHatK(n, c, k));
    }
  }

  copy(): PassTally {
    const copy = new PassTally(this.#attempts);
    copy.#tasks = this.#tasks;
    copy.#byK = this.#byK.map(({ k, at, hat }) => ({ k, at: at.copy(), hat: hat.copy() }));
    return copy;
  }

  tables(): PassTables {
    const by = <Value>(of: (entry: Entry) => Value) =>
      Object.fromEntries(this.#byK.map((entry) => [String(entry.k), of(entry)]));
    return {
      pass_at_k: by(({ at }) => at.mean),
      pass_hat_k: by(({ hat }) => hat.mean),
      pass_k: by(({ at, hat }) => ({
        n_tasks: at.count,
        n_too_few: this.#tasks - at.count,
        at_se: at.se,
        hat_se: hat.se,
      })),
    };
  }
}

interface Entry {
  readonly k: number;
  readonly at: Spread;
  readonly hat: Spread;
}

/** Empty for a single attempt: its pass@1 is only the fraction that passed. */
function kTable(attempts: number): number[] {
  if (attempts < 2) return [];
  const powers: number[] = [];
  for (let k = 1; k < attempts; k *= 2) powers.push(k);
  return [...powers, attempts];
}
