/**
 * Adam with decoupled weight decay, the gradient's norm cut off above a bound (AdamW, Loshchilov and Hutter 2019).
 *
 * Invariants. One optimiser moves one vector of weights. All it remembers is in `state`: an optimiser made from that goes
 * on as this one would have.
 */

export interface AdamOptions {
  /** Shares kept at each step of the running means of the gradient and of its square. */
  readonly meanDecay: number;
  readonly squareDecay: number;
  readonly weightDecay: number;
  /** A longer gradient is shortened to this. */
  readonly maxNorm: number;
}

export interface AdamState {
  readonly mean: Float32Array<ArrayBuffer>;
  readonly square: Float32Array<ArrayBuffer>;
  readonly steps: number;
}

const EPSILON = 1e-8;

export function newAdamState(length: number): AdamState {
  return { mean: new Float32Array(length), square: new Float32Array(length), steps: 0 };
}

export class Adam {
  readonly #options: AdamOptions;
  readonly #mean: Float32Array<ArrayBuffer>;
  readonly #square: Float32Array<ArrayBuffer>;
  #steps: number;

  constructor(options: AdamOptions, { mean, square, steps }: AdamState) {
    this.#options = options;
    this.#mean = mean;
    this.#square = square;
    this.#steps = steps;
  }

  /** The live vectors, not copies. */
  get state(): AdamState {
    return { mean: this.#mean, square: this.#square, steps: this.#steps };
  }

  /** Moves the weights against the gradients; the norm these had. */
  step(weights: Float32Array, gradients: Float32Array, rate: number): number {
    const { meanDecay, squareDecay, weightDecay, maxNorm } = this.#options;
    this.#steps += 1;
    const length = normOf(gradients);
    const scale = Math.min(1, maxNorm / length);
    const meanShare = 1 - meanDecay ** this.#steps;
    const squareShare = 1 - squareDecay ** this.#steps;
    for (let at = 0; at < weights.length; at += 1) {
      const gradient = (gradients[at] ?? 0) * scale;
      const mean = meanDecay * (this.#mean[at] ?? 0) + (1 - meanDecay) * gradient;
      const square = squareDecay * (this.#square[at] ?? 0) + (1 - squareDecay) * gradient ** 2;
      this.#mean[at] = mean;
      this.#square[at] = square;
      const weight = weights[at] ?? 0;
      const step = mean / meanShare / (Math.sqrt(square / squareShare) + EPSILON);
      weights[at] = weight - rate * (step + weightDecay * weight);
    }
    return length;
  }
}

function normOf(values: Float32Array): number {
  let squares = 0;
  for (const value of values) squares += value * value;
  return Math.sqrt(squares);
}
