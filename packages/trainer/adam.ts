/**
 * Adam with decoupled weight decay and clipping of the gradient's norm (AdamW, Loshchilov and Hutter 2019).
 *
 * Invariants: one state belongs to one vector of weights, and nothing else is remembered between two steps.
 */

export interface AdamOptions {
  /** The shares of the running means of the gradient and of its square that are kept at each step. */
  readonly meanDecay: number;
  readonly squareDecay: number;
  readonly weightDecay: number;
  /** A gradient with a larger norm is scaled down to this norm. */
  readonly maxNorm: number;
}

export interface AdamState {
  readonly mean: Float32Array<ArrayBuffer>;
  readonly square: Float32Array<ArrayBuffer>;
  steps: number;
}

const EPSILON = 1e-8;

export function newAdamState(length: number): AdamState {
  return { mean: new Float32Array(length), square: new Float32Array(length), steps: 0 };
}

/** Updates the weights and the state in place. Returns the norm of the gradients before clipping. */
export function stepAdam(
  { meanDecay, squareDecay, weightDecay, maxNorm }: AdamOptions,
  state: AdamState,
  weights: Float32Array,
  gradients: Float32Array,
  rate: number,
): number {
  state.steps += 1;
  const norm = normOf(gradients);
  const scale = Math.min(1, maxNorm / norm);
  const meanShare = 1 - meanDecay ** state.steps;
  const squareShare = 1 - squareDecay ** state.steps;
  for (let at = 0; at < weights.length; at += 1) {
    const gradient = (gradients[at] ?? 0) * scale;
    const mean = meanDecay * (state.mean[at] ?? 0) + (1 - meanDecay) * gradient;
    const square = squareDecay * (state.square[at] ?? 0) + (1 - squareDecay) * gradient ** 2;
    state.mean[at] = mean;
    state.square[at] = square;
    const weight = weights[at] ?? 0;
    const step = mean / meanShare / (Math.sqrt(square / squareShare) + EPSILON);
    weights[at] = weight - rate * (step + weightDecay * weight);
  }
  return norm;
}

function normOf(values: Float32Array): number {
  let squares = 0;
  for (const value of values) squares += value * value;
  return Math.sqrt(squares);
}
