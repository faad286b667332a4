/** Makes the first weights, and the steps that move them towards the demonstrators. */
import { POLICY, viewParameters, WEIGHT_COUNT } from "@rollcall/policy/weights";
import { newAdamState, stepAdam } from "@rollcall/trainer/adam";
import { GradientOf } from "@rollcall/trainer/gradient";
import { crossEntropy } from "@rollcall/trainer/losses";
import { layOut, trainableTokens } from "@rollcall/trainer/row-batch";
import type { Example } from "./demonstrations.ts";

const ADAM = { meanDecay: 0.9, squareDecay: 0.98, weightDecay: 0.01, maxNorm: 1 };
const PEAK_RATE = 2e-3;
const WARM_UP_STEPS = 50;
/** The rate at the end, as a share of the peak. */
const LAST_RATE = 0.05;

const EMBEDDING_DEVIATION = 0.1;
/** So small that the head starts near the uniform distribution. */
const HEAD_DEVIATION = 0.3;

/** Trains its own weights by imitation. `startJax` must have been called before. */
export class Imitation {
  /** Changed in place by each step. */
  readonly weights: Float32Array<ArrayBuffer>;
  readonly #adam = newAdamState(WEIGHT_COUNT);
  readonly #gradientOf = new GradientOf(crossEntropy);
  readonly #steps: number;
  #step = 0;

  /** `steps` is the total number of steps: the rate depends on it. */
  constructor(steps: number, random: () => number) {
    this.weights = firstWeights(random);
    this.#steps = steps;
  }

  /** Takes one step. Resolves to the loss before it. */
  async step(examples: readonly Example[]): Promise<number> {
    const samples = examples.map(({ ids, weights }) => {
      return { ids, mask: weights, logprobs: ids.map(() => 0), advantage: 1 };
    });
    const { loss, vector } = await this.#gradientOf.at(this.weights, layOut(samples, 1 / trainableTokens(samples)));
    stepAdam(ADAM, this.#adam, this.weights, vector, this.#rate());
    this.#step += 1;
    return loss;
  }

  /** The rate rises linearly and falls in half a cosine. */
  #rate(): number {
    const down = 0.5 * (1 + Math.cos((Math.PI * this.#step) / this.#steps));
    const up = Math.min(1, (this.#step + 1) / WARM_UP_STEPS);
    return PEAK_RATE * up * (LAST_RATE + (1 - LAST_RATE) * down);
  }
}

/** Random weights: small, and smaller for those that are added to the residual stream. */
export function firstWeights(random: () => number): Float32Array<ArrayBuffer> {
  const { width, hidden, layers } = POLICY;
  const weights = new Float32Array(WEIGHT_COUNT);
  const parameters = viewParameters(weights);
  const draw = (vector: Float32Array, deviation: number) => {
    for (let at = 0; at < vector.length; at += 1) vector[at] = deviation * drawNormal(random);
  };
  const residual = 1 / Math.sqrt(2 * layers);
  draw(parameters.tokens, EMBEDDING_DEVIATION);
  draw(parameters.positions, EMBEDDING_DEVIATION);
  for (const layer of parameters.layers) {
    layer.attentionGain.fill(1);
    draw(layer.queryKeyValue, 1 / Math.sqrt(width));
    draw(layer.attentionOut, residual / Math.sqrt(width));
    layer.hiddenGain.fill(1);
    draw(layer.hiddenIn, 1 / Math.sqrt(width));
    draw(layer.hiddenOut, residual / Math.sqrt(hidden));
  }
  parameters.finalGain.fill(1);
  draw(parameters.head, HEAD_DEVIATION / Math.sqrt(width));
  return weights;
}

/** Box and Muller's normal deviate. */
function drawNormal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
