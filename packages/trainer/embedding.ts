/**
 * The model's first layer by hand: tokens and positions looked up, and the gradient of what was found added back.
 *
 * A look-up is all it is, and by far cheaper here than as an operation that autodiff has to scatter.
 */
import { POLICY } from "../policy/model-config.ts";
import type { Parameters } from "../policy/parameters.ts";
import type { RowBatch } from "./row-batch.ts";

const { width: WIDTH } = POLICY;

/** places × width: what each place of the batch begins with. */
export function embed({ tokens, positions }: Parameters, batch: RowBatch): Float32Array<ArrayBuffer> {
  const embedded = new Float32Array(batch.tokens.length * WIDTH);
  for (let place = 0; place < batch.tokens.length; place += 1) {
    const token = (batch.tokens[place] ?? 0) * WIDTH;
    const position = (batch.positions[place] ?? 0) * WIDTH;
    for (let j = 0; j < WIDTH; j += 1) {
      embedded[place * WIDTH + j] = (tokens[token + j] ?? 0) + (positions[position + j] ?? 0);
    }
  }
  return embedded;
}

/** From the gradient of what `embed` gave to that of the tokens and positions, added to what is there. */
export function addEmbeddingGradient(
  gradient: ArrayLike<number>,
  batch: RowBatch,
  { tokens, positions }: Parameters,
): void {
  for (let place = 0; place < batch.tokens.length; place += 1) {
    const token = (batch.tokens[place] ?? 0) * WIDTH;
    const position = (batch.positions[place] ?? 0) * WIDTH;
    for (let j = 0; j < WIDTH; j += 1) {
      const value = gradient[place * WIDTH + j] ?? 0;
      tokens[token + j] = (tokens[token + j] ?? 0) + value;
      positions[position + j] = (positions[position + j] ?? 0) + value;
    }
  }
}
