/**
 * Two runs over the same tasks, compared task by task: what is hard for one is hard for the other, so the differences
 * spread far less than the means do. Pairs come one at a time and are not kept.
 */
import { isSameScore } from "../../contract/same-score.ts";
import { Spread, tTwoSidedP } from "./spread.ts";

export interface PairedResult {
  readonly mean: number | null;
  /** Standard error of the mean difference; null below two pairs. */
  readonly se: number | null;
  readonly ci95: [number, number] | null;
  /** mean / se with n − 1 degrees of freedom, and its two-sided p; null where se is null or 0. */
  readonly t: number | null;
  readonly df: number | null;
  readonly p: number | null;
}

export class PairedDifferences {
  wins = 0;
  losses = 0;
  ties = 0;
  readonly #first = new Spread();
  readonly #second = new Spread();
  readonly #differences = new Spread();
  #binary = true;

  /** Two numbers of one task. */
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

  /** Exact McNemar: null unless every number is 0 or 1. */
  mcnemarP(): number | null {
    if (!this.#binary || this.pairs === 0) return null;
    return exactMcNemarP(this.wins, this.losses);
  }
}

/** The chance that fair coins over the b + c pairs that differ come out at least this unevenly. Two-sided. */
export function exactMcNemarP(b: number, c: number): number {
  const n = b + c;
  // ln of C(n, i) / 2^n, from one i to the next: no power of 2 to underflow.
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
