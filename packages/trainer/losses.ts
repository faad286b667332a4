/**
 * The policy-gradient losses, by name, token by token.
 *
 * Invariants: `p` is the trainer's logprob of a sampled token, `q` the logprob it was sampled with, `ratio` is exp(p -
 * q) and `advantage` the credit. `loss` is to be minimised; `kept` is 1 if the policy-gradient term reaches the weights
 * and 0 if it was cut off. The caller sums over the trainable tokens of the whole batch and divides by their number, so
 * that a token of a long reply counts as much as one of a short reply. Arguments are consumed, as jax-js requires.
 */
import { lax, numpy as np } from "@jax-js/jax";

export interface TokenLoss {
  readonly loss: np.Array;
  readonly kept: np.Array;
}

export type Loss = (p: np.Array, q: np.Array, advantage: np.Array) => TokenLoss;

/**
 * prime-rl's default: how far a token's probability may move before its gradient is dropped, and the strength of the
 * pull back.
 */
const TRUST_REGION = 0.2;
const KL_WEIGHT = 1e-3;
/** DAPO's clip-higher: a rare token may gain more than a common one may lose (Yu et al. 2025). */
const CLIP_LOW = 0.2;
const CLIP_HIGH = 0.28;
/** CISPO's cap on the weight of a token (MiniMax-M1, 2025): as high as its authors leave it. */
const CISPO_CAP = 5;

export const LOSSES = {
  /**
   * DPPO with binary total variation: drops tokens whose probability moved by more than .2, and pulls all back a
   * little.
   */
  dppo: (p, q, advantage) => {
    const moved = np.exp(p.ref).sub(np.exp(q.ref));
    const kept = np.where(
      np.greater(advantage.ref, 0),
      np.lessEqual(moved.ref, TRUST_REGION),
      np.greaterEqual(moved, -TRUST_REGION),
    );
    const gain = ratio(p.ref, q.ref).mul(advantage);
    const pull = np.square(p.sub(q)).mul(KL_WEIGHT);
    return { loss: pull.sub(np.where(kept.ref, gain, 0)), kept: asNumber(kept) };
  },
  ppo_clip: (p, q, advantage) => {
    const rho = ratio(p, q);
    const free = rho.ref.mul(advantage.ref);
    const clipped = np.clip(rho, 1 - CLIP_LOW, 1 + CLIP_HIGH).mul(advantage);
    const kept = np.lessEqual(free.ref, clipped.ref);
    return { loss: np.minimum(free, clipped).mul(-1), kept: asNumber(kept) };
  },
  cispo: (p, q, advantage) => {
    const rho = lax.stopGradient(ratio(p.ref, q));
    const kept = np.ones(p.shape);
    return { loss: np.minimum(rho, CISPO_CAP).mul(advantage).mul(p).mul(-1), kept };
  },
  importance_sampling: (p, q, advantage) => {
    const kept = np.ones(p.shape);
    return { loss: ratio(p, q).mul(advantage).mul(-1), kept };
  },
} satisfies Record<string, Loss>;

/** The loss of pre-training by imitation: the logprob alone, weighted by the advantage. No run is trained with it. */
export const crossEntropy: Loss = (p, q, advantage) => {
  q.dispose();
  const kept = np.ones(p.shape);
  return { loss: p.mul(advantage).mul(-1), kept };
};

export type LossName = keyof typeof LOSSES;
export const LOSS_NAMES = Object.keys(LOSSES) as readonly LossName[];

/** Bounded, so that no token produces an infinity: e^20 is far beyond any ratio that should be trained on. */
function ratio(p: np.Array, q: np.Array): np.Array {
  return np.exp(np.clip(p.sub(q), -20, 20));
}

function asNumber(condition: np.Array): np.Array {
  return np.where(condition, 1, 0);
}
