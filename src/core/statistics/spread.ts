/**
 * Mean and variance of numbers in one pass (Welford's method avoids the cancellation of large sums of squares), the
 * standard error of the mean, and its 95 % interval by Student's t. Undefined values are null.
 */

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

  /** Null without numbers. */
  get mean(): number | null {
    return this.count === 0 ? null : this.#mean;
  }

  /** Standard error of the mean; null for fewer than two numbers. */
  get se(): number | null {
    if (this.count < 2) return null;
    return Math.sqrt(this.#squares / (this.count - 1) / this.count);
  }

  /** mean ± t(.975, count − 1) · se, not clipped to any range; null for fewer than two numbers. */
  get ci95(): [number, number] | null {
    const { se } = this;
    if (se === null) return null;
    const half = tQuantile975(this.count - 1) * se;
    return [this.#mean - half, this.#mean + half];
  }
}

// Student's t: the 97.5 % quantile, for half-widths of 95 % intervals, and the two-sided p of a value.
//
// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4 (the distribution as a finite
// sum, for whole degrees of freedom) and 26.7.5 (its quantile as a series in 1/df). The sum is inverted by bisection up
// to `EXACT_UP_TO`; beyond it the error of the series is less than 1e-9.

/** The 97.5 % quantile of the normal distribution. */
export const Z_975 = 1.959963984540054;
const EXACT_UP_TO = 100;
/** So many bisections of [0, π/2] leave less than the spacing of doubles. */
const HALVINGS = 60;

/** `df` is a whole number from 1, or Infinity. */
export function tQuantile975(df: number): number {
  if (df !== Infinity && (!Number.isInteger(df) || df < 1)) {
    throw new RangeError(`${df} degrees of freedom`);
  }
  return df <= EXACT_UP_TO ? invert(df) : series(df);
}

/** P(|T| ≥ |t|), accurate to about 1e-12, so smaller values may be 0. `df` as above, but finite. */
export function tTwoSidedP(t: number, df: number): number {
  return Math.max(0, 1 - probabilityWithin(Math.atan(Math.abs(t) / Math.sqrt(df)), df));
}

function invert(df: number): number {
  let [low, high] = [0, Math.PI / 2];
  for (let step = 0; step < HALVINGS; step += 1) {
    const middle = (low + high) / 2;
    if (probabilityWithin(middle, df) < 0.95) low = middle;
    else high = middle;
  }
  return Math.sqrt(df) * Math.tan((low + high) / 2);
}

/** P(|T| < √df · tan θ). */
function probabilityWithin(theta: number, df: number): number {
  const square = Math.cos(theta) ** 2;
  const odd = df % 2 === 1;
  let term = odd ? Math.cos(theta) : 1;
  let sum = 0;
  for (let order = odd ? 1 : 0; order <= df - 2; order += 2) {
    sum += term;
    term *= (square * (order + 1)) / (order + 2);
  }
  const inner = Math.sin(theta) * sum;
  return odd ? (2 / Math.PI) * (theta + inner) : inner;
}

function series(df: number): number {
  const z2 = Z_975 ** 2;
  const g1 = (z2 + 1) / 4;
  const g2 = ((5 * z2 + 16) * z2 + 3) / 96;
  const g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const g4 = ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return Z_975 * (1 + (g1 + (g2 + (g3 + g4 / df) / df) / df) / df);
}
