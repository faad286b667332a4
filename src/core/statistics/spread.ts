/**
 * Mean and spread of numbers seen once (Welford's method: no large sums of squares to cancel), and what follows from
 * them: the standard error of the mean, and its 95 % interval by Student's t. Undefined is null.
 */
import { tQuantile975 } from "./student-t.ts";

export class Spread {
  count = 0;
  #mean = 0;
  #squares = 0;

  add(value: number): void {
    this.count += 1;
    const before = value - this.#mean;
    this.#mean += before / this.count;
    this.#squares += before * (value - this.#mean);
  }

  copy(): Spread {
    const copy = new Spread();
    copy.count = this.count;
    copy.#mean = this.#mean;
    copy.#squares = this.#squares;
    return copy;
  }

  /** Null of no numbers. */
  get mean(): number | null {
    return this.count === 0 ? null : this.#mean;
  }

  /** Standard error of the mean; null below two numbers. */
  get se(): number | null {
    if (this.count < 2) return null;
    return Math.sqrt(this.#squares / (this.count - 1) / this.count);
  }

  /** mean ± t(.975, count − 1) · se, not clipped to any range; null below two numbers. */
  get ci95(): [number, number] | null {
    const { se } = this;
    if (se === null) return null;
    const half = tQuantile975(this.count - 1) * se;
    return [this.#mean - half, this.#mean + half];
  }
}
