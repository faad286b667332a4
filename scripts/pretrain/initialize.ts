/** Random first weights: small, and smaller for what is added to the residual stream. */

import type { ModelConfig, Parameters } from "../../packages/policy/weights.ts";

const EMBEDDING = 0.1;
/** The head starts near the uniform distribution. */
const HEAD = 0.3;

export function initialize(config: ModelConfig, parameters: Parameters, random: () => number): void {
  const { width, hidden, layers } = config;
  const draw = (vector: Float32Array, deviation: number) => {
    for (let at = 0; at < vector.length; at += 1) vector[at] = deviation * normal(random);
  };
  const residual = 1 / Math.sqrt(2 * layers);
  draw(parameters.tokens, EMBEDDING);
  draw(parameters.positions, EMBEDDING);
  for (const layer of parameters.layers) {
    layer.attentionGain.fill(1);
    draw(layer.queryKeyValue, 1 / Math.sqrt(width));
    draw(layer.attentionOut, residual / Math.sqrt(width));
    layer.hiddenGain.fill(1);
    draw(layer.hiddenIn, 1 / Math.sqrt(width));
    draw(layer.hiddenOut, residual / Math.sqrt(hidden));
  }
  parameters.finalGain.fill(1);
  draw(parameters.head, HEAD / Math.sqrt(width));
}

/** Box and Muller's normal deviate. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
