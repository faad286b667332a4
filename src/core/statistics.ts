/**
 * The numbers of a report.
 *
 * Invariants. The unit is the task: a mean is the mean of task means, its standard error is taken over task means, so
 * attempts of one task are never counted as independent. What was not scored (null) is left out, never read as 0. Where
 * a number is undefined it is null or absent. Rows are read once. A task is open until all of it is in, and only open
 * tasks take memory.
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

/** Of rows that come one at a time, in any order, each once. */
export class RunningSummary {
  readonly #attempts: number;
  readonly #open = new Map<number, Task>();
  readonly #closed = new Tasks();

  /** `attempts`: rows of a task that is complete. */
  constructor(attempts: number) {
    this.#attempts = attempts;
  }

  add(row: ScoredRow): void {
    const task = entry(this.#open, row.group, () => new Task());
    task.add(row);
    if (task.attempts < this.#attempts) return;
    this.#open.delete(row.group);
    this.#closed.add(task);
  }

  /** What the rows so far come to: open tasks count with the attempts they have. */
  result(): Summary {
    const all = this.#closed.copy();
    for (const task of this.#open.values()) all.add(task);
    return all.summary();
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

  copy(): Mean {
    const copy = new Mean();
    copy.count = this.count;
    copy.mean = this.mean;
    copy.#squares = this.#squares;
    return copy;
  }

  /** Standard error of the mean; null below two numbers. */
  get se(): number | null {
    if (this.count < 2) return null;
    return Math.sqrt(this.#squares / (this.count - 1) / this.count);
  }
}

/** The attempts at one task. */
class Task {
  attempts = 0;
  passed = 0;
  readonly reward = new Mean();
  readonly metrics = new Map<string, Mean>();

  add({ reward, metrics }: ScoredRow): void {
    this.attempts += 1;
    if (reward !== null) {
      this.reward.add(reward);
      if (reward >= PASS_THRESHOLD) this.passed += 1;
    }
    for (const [name, value] of Object.entries(metrics)) {
      if (value !== null) entry(this.metrics, name, () => new Mean()).add(value);
    }
  }
}

/** Tasks taken together. */
class Tasks {
  #mostAttempts = 0;
  #reward = new TaskMeans();
  #metrics = new Map<string, TaskMeans>();
  #passAt = new Map<number, Mean>();
  #passHat = new Map<number, Mean>();

  add({ attempts, passed, reward, metrics }: Task): void {
    for (let k = 1; k <= reward.count; k *= 2) {
      entry(this.#passAt, k, () => new Mean()).add(passAtK(reward.count, passed, k));
      entry(this.#passHat, k, () => new Mean()).add(passHatK(reward.count, passed, k));
    }
    this.#mostAttempts = Math.max(this.#mostAttempts, attempts);
    this.#reward.add(reward);
    for (const [name, values] of metrics) {
      entry(this.#metrics, name, () => new TaskMeans()).add(values);
    }
  }

  copy(): Tasks {
    const copy = new Tasks();
    copy.#mostAttempts = this.#mostAttempts;
    copy.#reward = this.#reward.copy();
    copy.#metrics = copyOf(this.#metrics);
    copy.#passAt = copyOf(this.#passAt);
    copy.#passHat = copyOf(this.#passHat);
    return copy;
  }

  summary(): Summary {
    const severalAttempts = this.#mostAttempts > 1;
    return {
      reward: {
        ...this.#reward.estimate(),
        ci95: this.#reward.ci95(),
        n_tasks: this.#reward.tasks,
      },
      metrics: Object.fromEntries(
        [...this.#metrics].map(([name, values]) => [name, values.estimate()]),
      ),
      pass_at_k: severalAttempts ? meansByKey(this.#passAt) : {},
      pass_hat_k: severalAttempts ? meansByKey(this.#passHat) : {},
    };
  }
}

/** The means of tasks that have any. */
class TaskMeans {
  #means = new Mean();
  #attempts = 0;

  add({ count, mean }: Mean): void {
    if (count === 0) return;
    this.#means.add(mean);
    this.#attempts += count;
  }

  copy(): TaskMeans {
    const copy = new TaskMeans();
    copy.#means = this.#means.copy();
    copy.#attempts = this.#attempts;
    return copy;
  }

  get tasks(): number {
    return this.#means.count;
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

function copyOf<Key, Value extends { copy(): Value }>(map: Map<Key, Value>): Map<Key, Value> {
  return new Map([...map].map(([key, value]) => [key, value.copy()]));
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
