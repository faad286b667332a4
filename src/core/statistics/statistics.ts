/**
 * The statistics of a report.
 *
 * Invariants. The sampling unit is the task: a mean is the mean of task means, its standard error is taken over task
 * means, so attempts of one task never count as independent. Unscored attempts (null) are left out, never read as 0. An
 * undefined number is null or absent. Rows are read once. A task is open until all its rows have come, and only open
 * tasks take memory.
 */
import { PASS_THRESHOLD, type PassTables, PassTally } from "./pass-at-k.ts";
import { Spread, Z_975 } from "./spread.ts";

export interface ScoredRow {
  readonly group: number;
  readonly reward: number | null;
  readonly metrics: Readonly<Record<string, number | null>>;
}

export interface Estimate {
  /** Mean of task means; null if nothing was scored. */
  readonly mean: number | null;
  /** Standard error over task means; null for fewer than two tasks. */
  readonly se: number | null;
  /** Scored attempts. */
  readonly n: number;
}

export interface Summary extends PassTables {
  readonly reward: Estimate & {
    /** 95 %, Student's t over task means, not clipped to the range of scores; null for fewer than two tasks. */
    readonly ci95: [number, number] | null;
    /** 95 %, Wilson's, of a rate: null unless every reward is 0 or 1 and no task has two of them. */
    readonly wilson95: [number, number] | null;
    /** The smallest and the largest reward of a scored attempt: readers see if an interval goes beyond them. */
    readonly range: [number, number] | null;
    /** Tasks with a scored attempt. */
    readonly n_tasks: number;
  };
  readonly metrics: Record<string, Estimate>;
}

/** The summary of rows that come one at a time, in any order, each once. */
export class RunningSummary {
  readonly #attempts: number;
  readonly #open = new Map<number, Task>();
  readonly #closed: Tasks;

  /** `attempts`: the number of rows of a complete task. */
  constructor(attempts: number) {
    this.#attempts = attempts;
    this.#closed = new Tasks(attempts);
  }

  add(row: ScoredRow): void {
    const task = entry(this.#open, row.group, () => new Task());
    task.add(row);
    if (task.attempts < this.#attempts) return;
    this.#open.delete(row.group);
    this.#closed.add(task);
  }

  /** The summary of the rows so far: open tasks count with the attempts they have. */
  result(): Summary {
    const all = this.#closed.copy();
    for (const task of this.#open.values()) all.add(task);
    return all.summary();
  }
}

/** The attempts at one task. */
class Task {
  attempts = 0;
  passed = 0;
  binary = true;
  least = Number.POSITIVE_INFINITY;
  greatest = Number.NEGATIVE_INFINITY;
  readonly reward = new Spread();
  readonly metrics = new Map<string, Spread>();

  add({ reward, metrics }: ScoredRow): void {
    this.attempts += 1;
    if (reward !== null) {
      this.reward.add(reward);
      if (reward >= PASS_THRESHOLD) this.passed += 1;
      if (reward !== 0 && reward !== 1) this.binary = false;
      this.least = Math.min(this.least, reward);
      this.greatest = Math.max(this.greatest, reward);
    }
    for (const [name, value] of Object.entries(metrics)) {
      if (value !== null) entry(this.metrics, name, () => new Spread()).add(value);
    }
  }
}

/** The totals of several tasks. */
class Tasks {
  readonly #attempts: number;
  /** True while every reward is an independent draw of one rate. */
  #rate = true;
  #least = Number.POSITIVE_INFINITY;
  #greatest = Number.NEGATIVE_INFINITY;
  #reward = new TaskMeans();
  #metrics = new Map<string, TaskMeans>();
  #passes: PassTally;

  constructor(attempts: number) {
    this.#attempts = attempts;
    this.#passes = new PassTally(attempts);
  }

  add({ passed, binary, least, greatest, reward, metrics }: Task): void {
    this.#passes.add(reward.count, passed);
    this.#least = Math.min(this.#least, least);
    this.#greatest = Math.max(this.#greatest, greatest);
    this.#rate &&= binary && reward.count < 2;
    this.#reward.add(reward);
    for (const [name, values] of metrics) {
      entry(this.#metrics, name, () => new TaskMeans()).add(values);
    }
  }

  copy(): Tasks {
    const copy = new Tasks(this.#attempts);
    copy.#rate = this.#rate;
    copy.#least = this.#least;
    copy.#greatest = this.#greatest;
    copy.#reward = this.#reward.copy();
    copy.#metrics = copyOf(this.#metrics);
    copy.#passes = this.#passes.copy();
    return copy;
  }

  summary(): Summary {
    const { means } = this.#reward;
    return {
      reward: {
        ...this.#reward.estimate(),
        ci95: means.ci95,
        wilson95: this.#rate && means.mean !== null ? wilson95(means.mean, means.count) : null,
        range: means.mean === null ? null : [this.#least, this.#greatest],
        n_tasks: means.count,
      },
      metrics: Object.fromEntries([...this.#metrics].map(([name, values]) => [name, values.estimate()])),
      ...this.#passes.tables(),
    };
  }
}

/** The means of tasks that have scored attempts. */
class TaskMeans {
  means = new Spread();
  #attempts = 0;

  add({ count, mean }: Spread): void {
    if (mean === null) return;
    this.means.add(mean);
    this.#attempts += count;
  }

  copy(): TaskMeans {
    const copy = new TaskMeans();
    copy.means = this.means.copy();
    copy.#attempts = this.#attempts;
    return copy;
  }

  estimate(): Estimate {
    const { mean, se } = this.means;
    return { mean, se, n: this.#attempts };
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

/**
 * Wilson's interval of a rate: of n independent attempts of which a fraction passed (Wilson 1927). Unlike mean ± t·se
 * it stays within [0, 1] and has a positive width even if all attempts had the same result. `n` ≥ 1, `share` in [0, 1].
 */
export function wilson95(share: number, n: number): [number, number] {
  const z2n = (Z_975 * Z_975) / n;
  const centre = (share + z2n / 2) / (1 + z2n);
  const half = (Z_975 / (1 + z2n)) * Math.sqrt((share * (1 - share)) / n + z2n / (4 * n));
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}
