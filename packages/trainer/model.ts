/**
 * The policy in differentiable form: the decoder's architecture, over whole rows.
 *
 * Invariants: a row holds several samples one after another (row-batch.ts). A token attends only to earlier tokens of
 * its own sample, and its position counts within its sample. Every operation consumes its arguments unless it is given
 * a `.ref`: jax-js counts references, and throws if one is used too often.
 */
import { nn, numpy as np } from "@jax-js/jax";
import { type Parameters, POLICY, viewParameters } from "@rollcall/policy/weights";
import type { RowBatch } from "./row-batch.ts";

/** The same as in decoder.ts. */
const NORM_EPSILON = 1e-5;
/** Added to the attention score of a token that must be masked. */
const UNSEEN = -1e9;

const { vocabulary: VOCABULARY, context: CONTEXT, width: WIDTH, heads: HEADS, hidden: HIDDEN } = POLICY;
const HEAD_WIDTH = WIDTH / HEADS;
/** The index of the first layer's weights, after those of the tokens and positions. */
const FIRST_LAYER_WEIGHT = (VOCABULARY + CONTEXT) * WIDTH;
const LAYER_SHAPES = [[WIDTH], [WIDTH, 3 * WIDTH], [WIDTH, WIDTH], [WIDTH], [WIDTH, HIDDEN], [HIDDEN, WIDTH]];
/** The shapes of all parts except the tokens and positions, in the order of weights.ts. */
const PART_SHAPES = [...Array.from({ length: POLICY.layers }, () => LAYER_SHAPES).flat(), [WIDTH], [WIDTH, VOCABULARY]];

/** The arrays for which the gradient is computed. */
export interface Trainable {
  /** All weights except those of the tokens and positions, part by part. */
  readonly parts: np.Array[];
  /** The embedding of each place: rows × length × width. */
  readonly embedded: np.Array;
}

/** Copies, so that the weights may change afterwards. */
export function trainableOf(weights: Float32Array, batch: RowBatch): Trainable {
  const { rows, length } = batch.shape;
  let at = FIRST_LAYER_WEIGHT;
  const parts = PART_SHAPES.map((shape) => {
    const first = at;
    at += shape.reduce((product, size) => product * size);
    return np.array(weights.slice(first, at)).reshape(shape);
  });
  return {
    parts,
    embedded: np.array(embed(viewParameters(weights), batch)).reshape([rows, length, WIDTH]),
  };
}

/** Adds a gradient of the batch to the vector of all weights' gradients. */
export function addGradient({ parts, embedded }: Trainable, batch: RowBatch, vector: Float32Array): void {
  addEmbeddingGradient(embedded.dataSync(), batch, viewParameters(vector));
  let at = FIRST_LAYER_WEIGHT;
  for (const part of parts) {
    const values = part.dataSync();
    for (let index = 0; index < values.length; index += 1) {
      vector[at + index] = (vector[at + index] ?? 0) + (values[index] ?? 0);
    }
    at += values.length;
  }
}

/** The logits for the token after each place of a batch: rows × length × vocabulary. */
export function forward(weights: Float32Array, batch: RowBatch): np.Array {
  const { rows, length } = batch.shape;
  return logits(trainableOf(weights, batch), np.array(batch.samples).reshape([rows, length]));
}

/** As `forward`. `samples` gives the sample of each place in its row: rows × length. */
export function logits({ parts, embedded }: Trainable, samples: np.Array): np.Array {
  const unseen = unseenOf(samples);
  const next = parts.values();
  const take = () => {
    const { value } = next.next();
    if (value === undefined) throw new RangeError("the model has more parts than were given");
    return value;
  };
  let stream = embedded;
  for (let layer = 0; layer < POLICY.layers; layer += 1) {
    const projected = np.matmul(normalize(stream.ref, take()), take());
    stream = stream.add(np.matmul(attend(projected, unseen.ref), take()));
    const hidden = nn.relu(np.matmul(normalize(stream.ref, take()), take()));
    stream = stream.add(np.matmul(hidden, take()));
  }
  unseen.dispose();
  return np.matmul(normalize(stream, take()), take());
}

function normalize(input: np.Array, gain: np.Array): np.Array {
  const square = np.mean(np.square(input.ref), -1, { keepdims: true }).add(NORM_EPSILON);
  return input.mul(np.reciprocal(np.sqrt(square))).mul(gain);
}

/** Takes the concatenated queries, keys and values; returns the concatenated outputs of the heads. */
function attend(queryKeyValue: np.Array, unseen: np.Array): np.Array {
  const [rows = 0, length = 0] = queryKeyValue.shape;
  const split = queryKeyValue.reshape([rows, length, 3, HEADS, HEAD_WIDTH]).transpose([2, 0, 3, 1, 4]);
  const [query, key, value] = [split.ref.slice(0), split.ref.slice(1), split.slice(2)];
  const scores = np.matmul(query, key.transpose([0, 1, 3, 2])).mul(1 / Math.sqrt(HEAD_WIDTH));
  const gathered = np.matmul(nn.softmax(scores.add(unseen), -1), value);
  return gathered.transpose([0, 2, 1, 3]).reshape([rows, length, WIDTH]);
}

/** rows × 1 × length × length: 0 if a place may attend to another, and a large negative number if not. */
function unseenOf(samples: np.Array): np.Array {
  const [rows = 0, length = 0] = samples.shape;
  const same = np.equal(samples.ref.reshape([rows, length, 1]), samples.reshape([rows, 1, length]));
  const before = np.tri(length).reshape([1, length, length]);
  return np.where(same, before.sub(1).mul(-UNSEEN), UNSEEN).reshape([rows, 1, length, length]);
}

// The embedding is only a look-up: doing it by hand is far cheaper than an operation that autodiff has to scatter.

/** The embedding of each place of the batch: places × width. */
function embed({ tokens, positions }: Parameters, batch: RowBatch): Float32Array<ArrayBuffer> {
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

/** Adds the gradient of `embed`'s result to the gradients of the tokens and positions. */
function addEmbeddingGradient(gradient: ArrayLike<number>, batch: RowBatch, { tokens, positions }: Parameters): void {
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
