/**
 * Compares two runs over the same tasks, task by task. A task that is hard for one run is hard for the other, so the
 * differences vary far less than the means. Pairs come one at a time and are not kept.
 */
import { isSameScore } from "../../contract/same-score.ts";
import { Spread, tTwoSidedP, Z_975 } from "./spread.ts";

/** Assumptions of `detectable`: a two-sided test at this level, and its power. */
const ALPHA = 0.05;
const POWER = 0.8;
/** The 80 % quantile of the normal distribution. */
const Z_80 = 0.8416212335729143;

export interface PairedResult {
  readonly mean: number | null;
  /** Standard error of the mean difference; null for fewer than two pairs. */
  readonly se: number | null;
  readonly ci95: [number, number] | null;
  /** mean / se with n − 1 degrees of freedom, and its two-sided p; null if se is null or 0. */
  readonly t: number | null;
  readonly df: number | null;
  readonly p: number | null;
}

/** By the normal approximation, from the variance of the differences (Miller 2024, "Adding error bars to evals", 5). */
export interface Detectable {
  readonly alpha: number;
  readonly power: number;
  /** The smallest true difference that so many tasks would detect; null if the differences have no variance. */
  readonly effect: number | null;
  /**
   * Additional tasks that would decide the difference if it is as large as observed; 0 if its interval already excludes
   * 0, null if there is no difference or no variance.
   */
  readonly more_tasks: number | null;
}

export class PairedDifferences {
  wins = 0;
  losses = 0;
  ties = 0;
  readonly #first = new Spread();
  readonly #second = new Spread();
  readonly #differences = new Spread();
  #binary = true;

  /** Adds the two numbers of one task. */
  add(first: number, second: number): void {
    const difference = isSameScore(first, second) ? 0 : first - second;
    if (difference > 0) this.wins += 1;
    else if (difference < 0) this.losses += 1;
    else this.ties += 1;
    this.#first.add(first);
    this.#second.add(second);
    this.#differences.add(difference);
    this.#binary &&= isBinary(first) && isBinary(second);
  }

  get pairs(): number {
    return this.#differences.count;
  }

  get means(): { readonly first: number | null; readonly second: number | null } {
    return { first: this.#first.mean, second: this.#second.mean };
  }

  result(): PairedResult {
    const { mean, se, ci95, count } = this.#differences;
    const df = se === null ? null : count - 1;
    const t = mean === null || se === null || se === 0 ? null : mean / se;
    return { mean, se, ci95, t, df, p: t === null || df === null ? null : tTwoSidedP(t, df) };
  }

  detectable(): Detectable {
    const { mean, se, ci95, count } = this.#differences;
    const stated = { alpha: ALPHA, power: POWER };
    if (mean === null || se === null || ci95 === null || se === 0) return { ...stated, effect: null, more_tasks: null };
    const effect = (Z_975 + Z_80) * se;
    if (isSameScore(mean, 0)) return { ...stated, effect, more_tasks: null };
    const decided = ci95[0] > 0 || ci95[1] < 0;
    // With few tasks Student's interval is wider than the normal one: an undecided difference needs at least one more
    // task.
    const more = Math.max(1, Math.ceil(count * (effect / mean) ** 2) - count);
    return { ...stated, effect, more_tasks: decided ? 0 : Math.min(more, Number.MAX_SAFE_INTEGER) };
  }

  /** Exact McNemar: null unless every number is 0 or 1. */
  mcnemarP(): number | null {
    if (!this.#binary || this.pairs === 0) return null;
    return exactMcNemarP(this.wins, this.losses);
  }
}

/** The probability that fair coins over the b + c different pairs come out at least this unevenly. Two-sided. */
export function exactMcNemarP(b: number, c: number): number {
  const n = b + c;
  // The logarithm of C(n, i) / 2^n, from one i to the next: a power of 2 could underflow.
  let term = -n * Math.LN2;
  let tail = 0;
  for (let i = 0; i <= Math.min(b, c); i += 1) {
    tail += Math.exp(term);
    term += Math.log((n - i) / (i + 1));
  }
  return Math.min(1, 2 * tail);
}

function isBinary(value: number): boolean {
  return value === 0 || value === 1;
}
