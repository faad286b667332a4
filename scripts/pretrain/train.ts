/** One step of imitation, and the rate it is taken at. */
import { Adam, newAdamState } from "../../packages/trainer/adam.ts";
import { backward } from "./backward.ts";
import { type Example, packExamples } from "./batch.ts";
import { forward } from "./forward.ts";
import { crossEntropy } from "./loss.ts";
import type { Trainee } from "./trainee.ts";

const ADAM = { meanDecay: 0.9, squareDecay: 0.98, weightDecay: 0.01, maxNorm: 1 };
const PEAK_RATE = 2e-3;
const WARM_UP_STEPS = 50;
/** Of the peak, at the end. */
const LAST_RATE = 0.05;

export class Imitation {
  readonly #trainee: Trainee;
  readonly #adam: Adam;
  readonly #steps: number;
  #step = 0;

  constructor(trainee: Trainee, steps: number) {
    this.#trainee = trainee;
    this.#adam = new Adam(ADAM, newAdamState(trainee.weights.length));
    this.#steps = steps;
  }

  /** The loss before the step. */
  step(examples: readonly Example[]): number {
    const { config, weights, gradients } = this.#trainee;
    const batch = packExamples(examples);
    const logits = forward(this.#trainee, batch);
    const loss = crossEntropy(logits, batch, config.vocabulary);
    backward(this.#trainee, batch, logits);
    this.#adam.step(weights, gradients, this.#rate());
    gradients.fill(0);
    this.#step += 1;
    return loss;
  }

  /** Up in a line, down in half a cosine. */
  #rate(): number {
    const down = 0.5 * (1 + Math.cos((Math.PI * this.#step) / this.#steps));
    const up = Math.min(1, (this.#step + 1) / WARM_UP_STEPS);
    return PEAK_RATE * up * (LAST_RATE + (1 - LAST_RATE) * down);
  }
}
