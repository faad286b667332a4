/**
 * The policy as the trainer computes it: the decoder's own architecture, over whole rows, differentiable.
 *
 * Invariants. A row holds several samples one after another (row-batch.ts): a token sees the tokens of its own sample that
 * stand before it, and its position counts within its sample. Every operation consumes its arguments unless it is given
 * a `.ref`: jax-js counts references and throws when one is used once too often.
 */
import { nn, numpy as np } from "@jax-js/jax";
import { type Parameters, POLICY } from "../policy/weights.ts";
import type { RowBatch } from "./row-batch.ts";

/** As decoder.ts has it. */
const NORM_EPSILON = 1e-5;
/** Added to the score of a token that must not be seen. */
const UNSEEN = -1e9;

const { vocabulary: VOCABULARY, width: WIDTH, heads: HEADS, hidden: HIDDEN } = POLICY;
const HEAD_WIDTH = WIDTH / HEADS;

type Arrays<T> = T extends Float32Array
  ? np.Array
  : T extends readonly (infer E)[]
    ? Arrays<E>[]
    : { [K in keyof T]: Arrays<T[K]> };
/** All that is trained but what the tokens and positions begin with. */
type ModelArrays = Arrays<Omit<Parameters, "tokens" | "positions">>;

/** What the gradient is computed for. */
export interface Trainable {
  readonly model: ModelArrays;
  /** What each place begins with: rows × length × width. */
  readonly embedded: np.Array;
}

/** A copy, so what it was made of may change afterwards. */
function arraysOf({ layers, finalGain, head }: Parameters): ModelArrays {
  const vector = (view: Float32Array) => np.array(view.slice());
  const matrix = (view: Float32Array, columns: number) => vector(view).reshape([-1, columns]);
  return {
    layers: layers.map((layer) => ({
      attentionGain: vector(layer.attentionGain),
      queryKeyValue: matrix(layer.queryKeyValue, 3 * WIDTH),
      attentionOut: matrix(layer.attentionOut, WIDTH),
      hiddenGain: vector(layer.hiddenGain),
      hiddenIn: matrix(layer.hiddenIn, HIDDEN),
      hiddenOut: matrix(layer.hiddenOut, WIDTH),
    })),
    finalGain: vector(finalGain),
    head: matrix(head, VOCABULARY),
  };
}

/** What a batch begins with, out of weights and batch. */
export function trainableOf(parameters: Parameters, batch: RowBatch): Trainable {
  const { rows, length } = batch.shape;
  return { model: arraysOf(parameters), embedded: np.array(embed(parameters, batch)).reshape([rows, length, WIDTH]) };
}

/** The logits of what follows each place of a batch: rows × length × vocabulary. */
export function forward(parameters: Parameters, batch: RowBatch): np.Array {
  const { rows, length } = batch.shape;
  return logits(trainableOf(parameters, batch), np.array(batch.samples).reshape([rows, length]));
}

/** As `forward`. `samples` says which sample of its row a place belongs to: rows × length. */
export function logits({ model, embedded }: Trainable, samples: np.Array): np.Array {
  const unseen = unseenOf(samples);
  let stream = embedded;
  for (const layer of model.layers) {
    const attended = attend(np.matmul(normalize(stream.ref, layer.attentionGain), layer.queryKeyValue), unseen.ref);
    stream = stream.add(np.matmul(attended, layer.attentionOut));
    const hidden = nn.relu(np.matmul(normalize(stream.ref, layer.hiddenGain), layer.hiddenIn));
    stream = stream.add(np.matmul(hidden, layer.hiddenOut));
  }
  unseen.dispose();
  return np.matmul(normalize(stream, model.finalGain), model.head);
}

function normalize(input: np.Array, gain: np.Array): np.Array {
  const square = np.mean(np.square(input.ref), -1, { keepdims: true }).add(NORM_EPSILON);
  return input.mul(np.reciprocal(np.sqrt(square))).mul(gain);
}

/** From queries, keys and values side by side to what each head gathered, side by side again. */
function attend(queryKeyValue: np.Array, unseen: np.Array): np.Array {
  const [rows = 0, length = 0] = queryKeyValue.shape;
  const split = queryKeyValue.reshape([rows, length, 3, HEADS, HEAD_WIDTH]).transpose([2, 0, 3, 1, 4]);
  const [query, key, value] = [split.ref.slice(0), split.ref.slice(1), split.slice(2)];
  const scores = np.matmul(query, key.transpose([0, 1, 3, 2])).mul(1 / Math.sqrt(HEAD_WIDTH));
  const gathered = np.matmul(nn.softmax(scores.add(unseen), -1), value);
  return gathered.transpose([0, 2, 1, 3]).reshape([rows, length, WIDTH]);
}

/** rows × 1 × length × length: 0 where a place may look, and far below everything where it may not. */
function unseenOf(samples: np.Array): np.Array {
  const [rows = 0, length = 0] = samples.shape;
  const same = np.equal(samples.ref.reshape([rows, length, 1]), samples.reshape([rows, 1, length]));
  const before = np.tri(length).reshape([1, length, length]);
  return np.where(same, before.sub(1).mul(-UNSEEN), UNSEEN).reshape([rows, 1, length, length]);
}

/** Adds a gradient to the parts it is of. */
export function addGradient({ model, embedded }: Trainable, batch: RowBatch, parts: Parameters): void {
  addEmbeddingGradient(embedded.dataSync(), batch, parts);
  for (const [index, part] of parts.layers.entries()) {
    const layer = model.layers[index];
    if (layer === undefined) throw new RangeError(`the model has no layer ${index}`);
    add(layer.attentionGain, part.attentionGain);
    add(layer.queryKeyValue, part.queryKeyValue);
    add(layer.attentionOut, part.attentionOut);
    add(layer.hiddenGain, part.hiddenGain);
    add(layer.hiddenIn, part.hiddenIn);
    add(layer.hiddenOut, part.hiddenOut);
  }
  add(model.finalGain, parts.finalGain);
  add(model.head, parts.head);
}

function add(array: np.Array, to: Float32Array): void {
  const values = array.dataSync();
  for (let at = 0; at < to.length; at += 1) to[at] = (to[at] ?? 0) + (values[at] ?? 0);
}

// A look-up is all that the model's first layer is: it is far cheaper by hand than as an operation that autodiff scatters.

/** places × width: what each place of the batch begins with. */
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

/** From the gradient of what `embed` gave to that of the tokens and positions, added to what is there. */
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
