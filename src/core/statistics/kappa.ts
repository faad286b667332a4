/**
 * How far two raters agree beyond chance: Cohen's κ over pairs of values, with its 95 % interval.
 *
 * κ = 1 − q_o / q_c. q_o is the mean disagreement of the pairs, q_c the mean disagreement that the two raters would
 * have by chance, each with the values it gave. Two labels disagree by 1 (Cohen 1960, Educational and Psychological
 * Measurement 20). Two numbers disagree by the square of their difference: this is the weighted κ with quadratic weights
 * (Cohen 1968, Psychological Bulletin 70) on the values themselves. For numbers that are all 0 or 1 both are the same.
 *
 * The standard error is that of Fleiss, Cohen and Everitt (1969, Psychological Bulletin 72), for many pairs. It is
 * computed in one pass over the pairs, because the chance disagreement of one value follows from the other rater's sums.
 */
import { isSameScore } from "../../contract/same-score.ts";
import { Z_975 } from "./spread.ts";

/** A variance below this is 0 within rounding. */
const NO_WIDTH = 1e-12;

export type Rating = string | number;

/** The value of one rater and that of the other, for the same thing. */
export type RatedPair = readonly [Rating, Rating];

export interface Kappa {
  readonly n: number;
  /** Share of pairs with the same value; null without pairs. */
  readonly agreement: number | null;
  readonly weights: "none" | "quadratic";
  readonly kappa: number | null;
  /** 95 %, within −1 and 1; null if there is no κ, or if the formula gives no width: all pairs agree, or one rater gave one value. */
  readonly ci95: [number, number] | null;
  /** Why there is no κ; null if there is one. */
  readonly reason: "too_few" | "one_value" | "too_large" | null;
}

/** Numbers if every value is one; otherwise all values count as labels. */
export function kappaOf(pairs: readonly RatedPair[]): Kappa {
  const numbers = pairs.flatMap(([one, other]) =>
    typeof one === "number" && typeof other === "number" ? [[one, other] as const] : [],
  );
  const isNumeric = numbers.length === pairs.length;
  const weights = isNumeric ? "quadratic" : "none";
  const n = pairs.length;
  const agreement = n === 0 ? null : pairs.filter(([one, other]) => isSameRating(one, other)).length / n;
  const none = { n, agreement, weights, kappa: null, ci95: null } as const;
  if (n < 2) return { ...none, reason: "too_few" };
  if (hasOneValue(pairs)) return { ...none, reason: "one_value" };
  const rated = isNumeric ? squaredDistances(numbers) : unequalLabels(pairs);
  const observed = meanOf(rated.map(({ distance }) => distance));
  // Each rater's chance disagreement with the other has the same mean.
  const chance = meanOf(rated.map(({ first }) => first));
  if (!Number.isFinite(chance) || !Number.isFinite(observed)) return { ...none, reason: "too_large" };
  const kappa = 1 - observed / chance;
  const terms = rated.map(({ distance, first, second }) => {
    return (distance / chance - ((first + second) / chance) * (observed / chance)) ** 2;
  });
  const variance = (meanOf(terms) - (observed / chance) ** 2) / n;
  const width = Z_975 * Math.sqrt(Math.max(0, variance));
  // If all pairs agree, or a rater gave only one value, the formula gives no width: that is no certainty.
  const ci95: [number, number] | null =
    variance <= NO_WIDTH ? null : [Math.max(-1, kappa - width), Math.min(1, kappa + width)];
  return { n, agreement, weights, kappa, ci95, reason: null };
}

/** Scores are the same within rounding; labels if they are equal. */
export function isSameRating(one: Rating, other: Rating): boolean {
  if (typeof one === "number" && typeof other === "number") return isSameScore(one, other);
  return one === other;
}

function hasOneValue(pairs: readonly RatedPair[]): boolean {
  const first = pairs[0]?.[0] ?? "";
  return pairs.every((pair) => pair.every((value) => isSameRating(value, first)));
}

interface Distances {
  /** Disagreement of the pair. */
  readonly distance: number;
  /** Mean disagreement of the first value with all values of the second rater, and the other way round. */
  readonly first: number;
  readonly second: number;
}

/** Values are counted from the mean of both raters, so that large values with small differences stay exact. */
function squaredDistances(pairs: readonly (readonly [number, number])[]): Distances[] {
  const middle = meanOf(pairs.map(([one, other]) => one / 2 + other / 2));
  const shifted = pairs.map(([one, other]) => [one - middle, other - middle] as const);
  const firsts = momentsOf(shifted.map(([one]) => one));
  const seconds = momentsOf(shifted.map(([, other]) => other));
  return shifted.map(([one, other]) => ({
    distance: isSameScore(one, other) ? 0 : (one - other) ** 2,
    first: (one - seconds.mean) ** 2 + seconds.variance,
    second: (other - firsts.mean) ** 2 + firsts.variance,
  }));
}

function momentsOf(values: readonly number[]): { readonly mean: number; readonly variance: number } {
  const mean = meanOf(values);
  return { mean, variance: meanOf(values.map((value) => (value - mean) ** 2)) };
}

function unequalLabels(pairs: readonly RatedPair[]): Distances[] {
  const labels = pairs.map(([one, other]) => [String(one), String(other)] as const);
  const firsts = sharesOf(labels.map(([one]) => one));
  const seconds = sharesOf(labels.map(([, other]) => other));
  return labels.map(([one, other]) => ({
    distance: one === other ? 0 : 1,
    first: 1 - (seconds.get(one) ?? 0),
    second: 1 - (firsts.get(other) ?? 0),
  }));
}

function sharesOf(labels: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return new Map(Array.from(counts, ([label, count]) => [label, count / labels.length]));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
