/**
 * The policy's weights and the optimiser that updates them, one batch at a time.
 *
 * Invariants: a batch causes one optimiser step for each minibatch of each pass over it, and increases the version by
 * one. The same weights, batch and seed give the same weights. All trainable tokens of a minibatch have the same
 * weight. The arguments of `train` are not changed.
 */
import { seededRandom } from "rollcall/helpers";
import { type AdamOptions, type AdamState, stepAdam } from "./adam.ts";
import type { GradientOf, TokenFacts } from "./gradient.ts";
import { BatchFault, layOut, type RowBatch, type TrainingSample, trainableTokens } from "./row-batch.ts";

export interface LearnerOptions {
  readonly learningRate: number;
  /** The seed for the order of the samples. */
  readonly seed: number;
  /**
   * How often a batch is trained on, GRPO's mu: from the second pass on, the loss takes into account how far the
   * weights have moved.
   */
  readonly passes: number;
}

export interface LearnerState {
  readonly weights: Float32Array<ArrayBuffer>;
  readonly adam: AdamState;
  /** 0 before any batch; batch n produces version n. */
  readonly version: number;
}

/**
 * Rollouts are a version or two old: hence few and small steps, and a short memory for a gradient that changes quickly.
 */
const ADAM: AdamOptions = { meanDecay: 0.9, squareDecay: 0.95, weightDecay: 0, maxNorm: 1 };
const MINIBATCHES = 2;

/** The result of training on a batch, and the measurements. */
export interface Trained {
  readonly state: LearnerState;
  readonly metrics: Record<string, number>;
}

export class Learner {
  readonly #options: LearnerOptions;
  readonly #gradientOf: Pick<GradientOf, "at">;

  constructor(options: LearnerOptions, gradientOf: Pick<GradientOf, "at">) {
    this.#options = options;
    this.#gradientOf = gradientOf;
  }

  /**
   * The version after `before`, trained on these samples. The distance of the samples from the policy (`ratio`, `kl`)
   * is measured before the first update, on the first minibatch. Rejects with BatchFault if no token is trainable or a
   * sample is too long.
   */
  async train(before: LearnerState, samples: readonly TrainingSample[]): Promise<Trained> {
    const { learningRate: learning_rate } = this.#options;
    const weights = before.weights.slice();
    const { mean, square, steps } = before.adam;
    const adam = { mean: mean.slice(), square: square.slice(), steps };
    const minibatches = this.#minibatches(samples, before.version);
    const every = new TokenStatistics();
    let drift: TokenStatistics["drift"] | null = null;
    let [loss, norm] = [0, 0];
    for (const minibatch of minibatches) {
      const batches = layOut(minibatch, 1 / trainableTokens(minibatch));
      const gradient = await this.#gradientOf.at(weights, batches);
      every.add(batches, gradient.facts);
      drift ??= every.drift;
      loss += gradient.loss / minibatches.length;
      norm = Math.max(norm, stepAdam(ADAM, adam, weights, gradient.vector, learning_rate));
    }
    return {
      state: { weights, adam, version: before.version + 1 },
      metrics: { loss, ...every.health, ...drift, grad_norm: norm, learning_rate },
    };
  }

  /** The minibatches of all passes, each pass in its own order. */
  #minibatches(samples: readonly TrainingSample[], version: number): TrainingSample[][] {
    const able = samples.filter((sample) => trainableTokens([sample]) > 0);
    if (able.length === 0) throw new BatchFault("invalid", "no sample has a token to train");
    const { seed, passes } = this.#options;
    const size = Math.ceil(able.length / MINIBATCHES);
    const count = Math.ceil(able.length / size);
    return Array.from({ length: passes }, (_, pass) => {
      const mixed = shuffle(able, seededRandom("minibatches", seed, version, pass));
      return Array.from({ length: count }, (_, at) => mixed.slice(at * size, (at + 1) * size));
    }).flat();
  }
}

/** Fisher and Yates. */
function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    const [one, two] = [mixed[last], mixed[other]];
    if (one === undefined || two === undefined) continue;
    mixed[last] = two;
    mixed[other] = one;
  }
  return mixed;
}

/**
 * Health statistics of a step's tokens.
 *
 * `ratio` is how much likelier a token is for the trainer than it was for the engine: 1 on samples of exactly these
 * weights. `kl` is the mean of ratio - ln(ratio) - 1, never negative, and 0 for such samples.
 */
export class TokenStatistics {
  #tokens = 0;
  #ratios = 0;
  #kl = 0;
  #entropy = 0;
  #cut = 0;
  #cutLow = 0;
  #cutHigh = 0;
  #worstRatio = 0;

  add(batches: readonly RowBatch[], facts: readonly TokenFacts[]): void {
    for (const [index, batch] of batches.entries()) {
      const fact = facts[index];
      if (fact === undefined) throw new RangeError(`batch ${index} has no facts`);
      for (let place = 0; place < batch.weights.length; place += 1) {
        if ((batch.weights[place] ?? 0) > 0) this.#addToken(batch, fact, place);
      }
    }
  }

  #addToken(batch: RowBatch, facts: TokenFacts, place: number): void {
    const change = (facts.logprobs[place] ?? 0) - (batch.logprobs[place] ?? 0);
    const ratio = Math.exp(change);
    this.#tokens += 1;
    this.#ratios += ratio;
    this.#kl += Math.expm1(change) - change;
    this.#entropy += facts.entropies[place] ?? 0;
    this.#worstRatio = Math.max(this.#worstRatio, Math.abs(ratio - 1));
    if (facts.kept[place] !== 0) return;
    this.#cut += 1;
    if (ratio < 1) this.#cutLow += 1;
    else this.#cutHigh += 1;
  }

  /** The distance from the engine that sampled. NaN without tokens. */
  get drift() {
    const kl = this.#kl / this.#tokens;
    return {
      ratio: this.#ratios / this.#tokens,
      ratio_max_abs_error: this.#worstRatio,
      kl,
      mismatch_kl: kl,
    };
  }

  /** The health of the policy, and how much of its gradient the loss kept. NaN without tokens. */
  get health() {
    return {
      entropy: this.#entropy / this.#tokens,
      is_masked: this.#cut / this.#tokens,
      is_masked_low: this.#cutLow / this.#tokens,
      is_masked_high: this.#cutHigh / this.#tokens,
    };
  }
}
