/**
 * Weights that make the real engine follow a script: only the position of a token decides what follows it. Every
 * position of the script has its own dimension, and the head maps that dimension to one token.
 */

import { POLICY, viewParameters, WEIGHT_COUNT } from "../weights.ts";

export interface Line {
  /** The number of tokens in the prompt it answers. */
  readonly after: number;
  readonly ids: readonly number[];
}

/** Normalised to a logit of 8 × this: so large that chance has no effect. */
const CERTAINTY = 10;

/** At most 64 tokens in all. */
export function weightsThatSay(lines: readonly Line[]): Float32Array {
  const weights = new Float32Array(WEIGHT_COUNT);
  const { positions, layers, finalGain, head } = viewParameters(weights);
  for (const { attentionGain, hiddenGain } of layers) {
    attentionGain.fill(1);
    hiddenGain.fill(1);
  }
  finalGain.fill(1);
  const script = lines.flatMap(({ after, ids }) => ids.map((id, nth) => ({ position: after - 1 + nth, id })));
  if (script.length > POLICY.width) throw new Error(`the script has ${script.length} tokens`);
  for (const [dimension, { position, id }] of script.entries()) {
    positions[position * POLICY.width + dimension] = 1;
    head[dimension * POLICY.vocabulary + id] = CERTAINTY;
  }
  return weights;
}

/** Weights for arbitrary text, the same each time. */
export function randomWeights(seed = 1): Float32Array {
  let state = seed;
  return Float32Array.from({ length: WEIGHT_COUNT }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state / 2 ** 32 - 0.5) * 0.3;
  });
}
