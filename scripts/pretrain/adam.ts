/** Adam with decoupled weight decay, the gradient's norm cut at 1 (AdamW, Loshchilov and Hutter 2019). */

const MEAN_DECAY = 0.9;
const SQUARE_DECAY = 0.98;
const EPSILON = 1e-8;
const WEIGHT_DECAY = 0.01;
const MAX_NORM = 1;

export class Adam {
  readonly #mean: Float32Array;
  readonly #square: Float32Array;
  #steps = 0;

  constructor(length: number) {
    this.#mean = new Float32Array(length);
    this.#square = new Float32Array(length);
  }

  /** Moves the weights against the gradients, and sets those to zero. */
  step(weights: Float32Array, gradients: Float32Array, rate: number): void {
    this.#steps += 1;
    const scale = Math.min(1, MAX_NORM / norm(gradients));
    const meanShare = 1 - MEAN_DECAY ** this.#steps;
    const squareShare = 1 - SQUARE_DECAY ** this.#steps;
    for (let at = 0; at < weights.length; at += 1) {
      const gradient = (gradients[at] ?? 0) * scale;
      const mean = MEAN_DECAY * (this.#mean[at] ?? 0) + (1 - MEAN_DECAY) * gradient;
      const square = SQUARE_DECAY * (this.#square[at] ?? 0) + (1 - SQUARE_DECAY) * gradient ** 2;
      this.#mean[at] = mean;
      this.#square[at] = square;
      const weight = weights[at] ?? 0;
      const step = mean / meanShare / (Math.sqrt(square / squareShare) + EPSILON);
      weights[at] = weight - rate * (step + WEIGHT_DECAY * weight);
    }
    gradients.fill(0);
  }
}

function norm(values: Float32Array): number {
  let squares = 0;
  for (const value of values) squares += value * value;
  return Math.sqrt(squares);
}
