/** One sequence to train on: the sample's tokens with the credit that its batch gives it. */
export interface TrainingSample {
  readonly ids: ArrayLike<number>;
  /** 1 where a token was sampled and trains; never the first. */
  readonly mask: ArrayLike<number>;
  /** The logprob each was sampled with, under the policy at its temperature. */
  readonly logprobs: ArrayLike<number>;
  readonly advantage: number;
}

/** The N that a token mean divides by. */
export function trainableTokens(samples: readonly TrainingSample[]): number {
  let count = 0;
  for (const { mask } of samples) {
    for (let at = 1; at < mask.length; at += 1) count += mask[at] ?? 0;
  }
  return count;
}
