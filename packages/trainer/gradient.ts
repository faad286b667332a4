/**
 * Computes the gradient of a loss over samples, as one vector in the order of the weights, and facts about each token.
 *
 * Invariants: the loss is the sum over trainable tokens of weight × token loss, so the sum of the batches' gradients is
 * the gradient of all samples. One function is compiled for each shape of a batch (rows × length) when the first such
 * batch comes; that takes about a second. The event loop runs between two batches.
 */
import { setImmediate } from "node:timers/promises";
import { init, jit, lax, nn, numpy as np, valueAndGrad } from "@jax-js/jax";
import { POLICY } from "@rollcall/policy/weights";
import type { Loss } from "./losses.ts";
import { addGradient, logits, type Trainable, trainableOf } from "./model.ts";
import type { RowBatch } from "./row-batch.ts";

/** One number for each position of a batch, row after row, padding included. */
export interface TokenFacts {
  /** The logprobs of the target tokens with the weights that are trained. */
  readonly logprobs: ArrayLike<number>;
  readonly entropies: ArrayLike<number>;
  /** 1 if the policy gradient counts, 0 if the loss clips or masks it. */
  readonly kept: ArrayLike<number>;
}

export interface Gradient {
  readonly loss: number;
  readonly vector: Float32Array;
  /** In the order of the batches. */
  readonly facts: readonly TokenFacts[];
}

const COLUMNS = ["samples", "targets", "logprobs", "advantages", "weights"] as const;
type Columns = Readonly<Record<(typeof COLUMNS)[number], np.Array>>;
type Facts = [logprobs: np.Array, entropies: np.Array, kept: np.Array];

/** Called once, before anything is computed: the engine is WebAssembly on one thread. */
export async function startJax(): Promise<void> {
  await init("wasm");
}

export class GradientOf {
  readonly #differentiate: (trainable: Trainable, columns: Columns) => [[np.Array, Facts], Trainable];

  constructor(loss: Loss) {
    const lossOf = (trainable: Trainable, columns: Columns) => sumLoss(loss, trainable, columns);
    this.#differentiate = jit((trainable: Trainable, columns: Columns) =>
      valueAndGrad((varied: Trainable) => lossOf(varied, columns), { hasAux: true })(trainable),
    );
  }

  async at(weights: Float32Array, batches: readonly RowBatch[]): Promise<Gradient> {
    const vector = new Float32Array(weights.length);
    const facts: TokenFacts[] = [];
    let loss = 0;
    for (const batch of batches) {
      const [[partLoss, [logprobs, entropies, kept]], gradient] = this.#differentiate(
        trainableOf(weights, batch),
        columnsOf(batch),
      );
      loss += partLoss.item();
      facts.push({ logprobs: logprobs.dataSync(), entropies: entropies.dataSync(), kept: kept.dataSync() });
      addGradient(gradient, batch, vector);
      await setImmediate();
    }
    return { loss, vector, facts };
  }
}

function sumLoss(loss: Loss, trainable: Trainable, columns: Columns): [np.Array, Facts] {
  const { samples, targets, logprobs, advantages, weights } = columns;
  const scores = nn.logSoftmax(logits(trainable, samples.ref), -1);
  const p = scores.ref.mul(nn.oneHot(targets.ref, POLICY.vocabulary)).sum(-1);
  // Only reported: otherwise its gradient would be computed too, for nothing.
  const constant = lax.stopGradient(scores);
  const entropies = np.exp(constant.ref).mul(constant).sum(-1).mul(-1);
  const token = loss(p.ref, logprobs.ref, advantages.ref);
  return [token.loss.mul(weights.ref).sum(), [p, entropies, token.kept]];
}

function columnsOf(batch: RowBatch): Columns {
  const { rows, length } = batch.shape;
  const array = (name: (typeof COLUMNS)[number]) => np.array(batch[name]).reshape([rows, length]);
  return {
    samples: array("samples"),
    targets: array("targets"),
    logprobs: array("logprobs"),
    advantages: array("advantages"),
    weights: array("weights"),
  };
}
