/**
 * The numbers of a report.
 *
 * Invariants. The unit is the task: a mean is the mean of task means, its standard error is taken over task means, so
 * attempts of one task are never counted as independent. What was not scored (null) is left out, never read as 0. Where
 * a number is undefined it is null or absent. Rows arrive ordered by group and are read once: memory does not grow with
 * tasks or attempts.
 */
import { tQuantile975 } from "./student-t.ts";

export interface ScoredRow {
  readonly group: number;
  readonly reward: number | null;
  readonly metrics: Readonly<Record<string, number | null>>;
}

export interface Estimate {
  /** Mean of task means; null when nothing was scored. */
  readonly mean: number | null;
  /** Standard error over task means; null below two tasks. */
  readonly se: number | null;
  /** Scored attempts. */
  readonly n: number;
}

export interface Summary {
  readonly reward: Estimate & {
    /** 95 %, Student's t over task means, not clipped to the range of scores; null below two tasks. */
    readonly ci95: [number, number] | null;
    /** Tasks with a scored attempt. */
    readonly n_tasks: number;
  };
  readonly metrics: Record<string, Estimate>;
  /** By k = 1, 2, 4, …: over tasks with at least k scored attempts. Empty when every task has one attempt. */
  readonly pass_at_k: Record<string, number>;
  readonly pass_hat_k: Record<string, number>;
}

/** An attempt passes from this reward on (verifiers' threshold). */
const PASS_THRESHOLD = 0.5;

/** Throws `RangeError` when the rows are not ordered by group. */
export function summarize(rows: Iterable<ScoredRow>): Summary {
  const summary = new RunningSummary();
  for (const row of rows) summary.add(row);
  return summary.result();
}

/** `summarize`, for rows that arrive one at a time. */
export class RunningSummary {
  #group = -Infinity;
  #attempts = 0;
  #mostAttempts = 0;
  #passed = 0;
  readonly #reward = new TaskMeans();
  readonly #metrics = new Map<string, TaskMeans>();
  readonly #passAt = new Map<number, Mean>();
  readonly #passHat = new Map<number, Mean>();

  add({ group, reward, metrics }: ScoredRow): void {
    if (group < this.#group) throw new RangeError(`group ${group} after group ${this.#group}`);
    if (group !== this.#group) this.#closeTask();
    this.#group = group;
    this.#attempts += 1;
    if (reward !== null) {
      this.#reward.add(reward);
      if (reward >= PASS_THRESHOLD) this.#passed += 1;
    }
    for (const [name, value] of Object.entries(metrics)) {
      if (value !== null) entry(this.#metrics, name, () => new TaskMeans()).add(value);
    }
  }

  /** What the rows so far come to. The task that is open counts with the attempts it has; add no more after it. */
  result(): Summary {
    this.#closeTask();
    const reward = this.#reward.estimate();
    const severalAttempts = this.#mostAttempts > 1;
    return {
      reward: { ...reward, ci95: this.#reward.ci95(), n_tasks: this.#reward.tasks },
      metrics: Object.fromEntries(
        [...this.#metrics].map(([name, values]) => [name, values.estimate()]),
      ),
      pass_at_k: severalAttempts ? meansByKey(this.#passAt) : {},
      pass_hat_k: severalAttempts ? meansByKey(this.#passHat) : {},
    };
  }

  #closeTask(): void {
    const scored = this.#reward.openCount;
    for (let k = 1; k <= scored; k *= 2) {
      entry(this.#passAt, k, () => new Mean()).add(passAtK(scored, this.#passed, k));
      entry(this.#passHat, k, () => new Mean()).add(passHatK(scored, this.#passed, k));
    }
    this.#mostAttempts = Math.max(this.#mostAttempts, this.#attempts);
    this.#attempts = 0;
    this.#passed = 0;
    this.#reward.closeTask();
    for (const values of this.#metrics.values()) values.closeTask();
  }
}

/** The chance that at least one of k attempts, drawn from n of which c passed, passes. 1 ≤ k ≤ n. */
export function passAtK(n: number, c: number, k: number): number {
  return 1 - allOf(n, n - c, k);
}

/** The chance that all of k attempts, drawn from n of which c passed, pass. 1 ≤ k ≤ n. */
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

/** Mean and spread of numbers seen once (Welford's method: no large sums of squares to cancel). */
class Mean {
  count = 0;
  mean = 0;
  #squares = 0;

  add(value: number): void {
    this.count += 1;
    const before = value - this.mean;
    this.mean += before / this.count;
    this.#squares += before * (value - this.mean);
  }

  /** Standard error of the mean; null below two numbers. */
  get se(): number | null {
    if (this.count < 2) return null;
    return Math.sqrt(this.#squares / (this.count - 1) / this.count);
  }
}

/** Task means, built from one open task at a time. */
class TaskMeans {
  readonly #means = new Mean();
  #open = new Mean();
  #attempts = 0;

  add(value: number): void {
    this.#open.add(value);
    this.#attempts += 1;
  }

  /** Values of the task that is open. */
  get openCount(): number {
    return this.#open.count;
  }

  get tasks(): number {
    return this.#means.count;
  }

  closeTask(): void {
    if (this.#open.count === 0) return;
    this.#means.add(this.#open.mean);
    this.#open = new Mean();
  }

  estimate(): Estimate {
    const { count, mean, se } = this.#means;
    return { mean: count === 0 ? null : mean, se, n: this.#attempts };
  }

  ci95(): [number, number] | null {
    const { count, mean, se } = this.#means;
    if (se === null) return null;
    const half = tQuantile975(count - 1) * se;
    return [mean - half, mean + half];
  }
}

function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function meansByKey(means: ReadonlyMap<number, Mean>): Record<string, number> {
  const sorted = [...means].sort(([a], [b]) => a - b);
  return Object.fromEntries(sorted.map(([key, { mean }]) => [String(key), mean]));
}
