/**
 * Prompt-mean weights: what each trained token of a batch weighs, so that each group (the rollouts of one prompt) counts
 * the same in a token mean.
 *
 * With Q groups, T(q) trained tokens in group q and N in all, a token of group q weighs `N / (Q * T(q))`. The weights of
 * all tokens sum to N, so a loss that is summed and divided by N is `1/Q * sum over q of (1/T(q) * sum over its tokens)`.
 * prime-rl scales advantages by `mean(T) / T(q)` with a moving mean over earlier groups (algo/grpo.py,
 * `loss_aggregation: prompt`); here the mean is the batch's own, so it is exact and needs no state.
 */

/** `tokens`: trained tokens of each group of a batch. The weight of a group without any is 0. */
export function promptWeights(tokens: readonly number[]): number[] {
  const trained = tokens.filter((count) => count > 0);
  const mean = trained.reduce((sum, count) => sum + count, 0) / Math.max(1, trained.length);
  return tokens.map((count) => (count > 0 ? mean / count : 0));
}
