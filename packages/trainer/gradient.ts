/**
 * The gradient of a loss over samples, as one vector in the order of the weights, with what each token said on the way.
 *
 * Invariants. The loss is the sum over trainable tokens of weight × token loss, so gradients of parts add up to that of
 * the whole. One function is compiled for each shape, when it is first asked for (about a second). The event loop gets a
 * turn between two parts.
 */
import { setImmediate } from "node:timers/promises";
import { init, jit, lax, nn, numpy as np, valueAndGrad } from "@jax-js/jax";

import { POLICY, parameterCount, viewParameters } from "../policy/weights.ts";

import type { Loss } from "./losses.ts";
import { addGradient, logits, type Trainable, trainableOf } from "./model.ts";
import type { RowBatch } from "./row-batch.ts";

/** Per place of a batch, what the trained policy makes of its target. */
export interface TokenFacts {
  readonly logprobs: ArrayLike<number>;
  readonly entropies: ArrayLike<number>;
  /** 0 where the loss cut the policy gradient off. */
  readonly kept: ArrayLike<number>;
}

export interface Gradient {
  readonly loss: number;
  readonly vector: Float32Array;
  /** In the order of the batches. */
  readonly facts: readonly TokenFacts[];
}

type Columns = readonly [
  samples: np.Array,
  targets: np.Array,
  logprobs: np.Array,
  advantages: np.Array,
  weights: np.Array,
];
type Facts = [logprobs: np.Array, entropies: np.Array, kept: np.Array];

/** Once, before anything is computed: the engine is WebAssembly on one thread. */
export async function startJax(): Promise<void> {
  await init("wasm");
}

export class GradientOf {
  readonly #differentiate: (trainable: Trainable, ...columns: Columns) => [[np.Array, Facts], Trainable];

  constructor(loss: Loss) {
    this.#differentiate = jit((trainable: Trainable, ...columns: Columns) =>
      valueAndGrad((varied: Trainable) => objective(loss, varied, columns), { hasAux: true })(trainable),
    );
  }

  async at(weights: Float32Array, batches: readonly RowBatch[]): Promise<Gradient> {
    const parameters = viewParameters(POLICY, weights);
    const vector = new Float32Array(parameterCount(POLICY));
    const parts = viewParameters(POLICY, vector);
    const facts: TokenFacts[] = [];
    let loss = 0;
    for (const batch of batches) {
      const [[partLoss, partFacts], gradient] = this.#differentiate(
        trainableOf(parameters, batch),
        ...columnsOf(batch),
      );
      loss += partLoss.item();
      facts.push(factsOf(partFacts));
      addGradient(gradient, batch, parts);
      await setImmediate();
    }
    return { loss, vector, facts };
  }
}

function objective(loss: Loss, trainable: Trainable, columns: Columns): [np.Array, Facts] {
  const [samples, targets, logprobs, advantages, weights] = columns;
  const spoken = nn.logSoftmax(logits(trainable, samples.ref), -1);
  const p = spoken.ref.mul(nn.oneHot(targets.ref, POLICY.vocabulary)).sum(-1);
  // Only reported: without this its gradient is computed, too, and thrown away.
  const still = lax.stopGradient(spoken);
  const entropies = np.exp(still.ref).mul(still).sum(-1).mul(-1);
  const token = loss(p.ref, logprobs.ref, advantages.ref);
  return [token.loss.mul(weights.ref).sum(), [p, entropies, token.kept]];
}

function factsOf([logprobs, entropies, kept]: Facts): TokenFacts {
  return {
    logprobs: logprobs.dataSync(),
    entropies: entropies.dataSync(),
    kept: kept.dataSync(),
  };
}

function columnsOf({ shape: { rows, length }, ...columns }: RowBatch): Columns {
  const array = (values: Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer>) =>
    np.array(values).reshape([rows, length]);
  return [
    array(columns.samples),
    array(columns.targets),
    array(columns.logprobs),
    array(columns.advantages),
    array(columns.weights),
  ];
}
