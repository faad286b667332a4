/**
 * One step of the transformer over rows of many sequences, reading and writing their cached keys and values.
 *
 * Invariants. A row is one token of one sequence; rows of one sequence come in order, and each sees the tokens before
 * it, those of the same step included. Every row is computed alone, in the same order of operations, so its logits have
 * the same bits in any company. Logits are made for the rows that ask for them, and valid until the next step.
 */
import type { Arena } from "./gemm.ts";
import type { KvSlot } from "./kv-cache.ts";
import { type LayerParameters, type ModelConfig, type Parameters, parameterCount, viewParameters } from "./weights.ts";

/** Added to the mean square, so that a row of zeros has a norm. */
const NORM_EPSILON = 1e-5;

/** Room for the arena's alignment of each vector. */
const PADDING = 64;

export interface Row {
  readonly slot: KvSlot;
  readonly token: number;
  readonly sampled: boolean;
}

/** Floats that a decoder takes in an arena. */
export function decoderCapacity(config: ModelConfig, maxRows: number): number {
  const { width, hidden, vocabulary, context } = config;
  const perRow = 6 * width + hidden + vocabulary;
  return parameterCount(config) + maxRows * perRow + context + PADDING;
}

export class Decoder {
  readonly #config: ModelConfig;
  readonly #arena: Arena;
  readonly #maxRows: number;
  readonly #weights: Float32Array;
  readonly #parameters: Parameters;
  /** The residual stream, one row each. */
  readonly #stream: Float32Array;
  readonly #normed: Float32Array;
  readonly #queryKeyValue: Float32Array;
  readonly #attended: Float32Array;
  readonly #hidden: Float32Array;
  readonly #scores: Float32Array;
  readonly #logits: Float32Array;

  /** `maxRows` bounds the rows of one step. */
  constructor(config: ModelConfig, arena: Arena, maxRows: number) {
    const { width, hidden, vocabulary, context } = config;
    this.#config = config;
    this.#arena = arena;
    this.#maxRows = maxRows;
    this.#weights = arena.vector(parameterCount(config));
    this.#parameters = viewParameters(config, this.#weights);
    this.#stream = arena.vector(maxRows * width);
    this.#normed = arena.vector(maxRows * width);
    this.#queryKeyValue = arena.vector(maxRows * 3 * width);
    this.#attended = arena.vector(maxRows * width);
    this.#hidden = arena.vector(maxRows * hidden);
    this.#scores = arena.vector(context);
    this.#logits = arena.vector(maxRows * vocabulary);
  }

  /** Copies the weights in. */
  load(weights: Float32Array): void {
    this.#weights.set(weights);
  }

  /** Appends each row's token to its slot. The logits of those that are sampled, in their order, end to end. */
  step(rows: readonly Row[]): Float32Array {
    const positions = rows.map(({ slot, token }) => slot.tokens.push(token) - 1);
    this.#embed(rows, positions);
    for (const [index, layer] of this.#parameters.layers.entries()) {
      this.#attend(layer, index, rows, positions);
      this.#feedForward(layer, rows.length);
    }
    return this.#head(rows);
  }

  #embed(rows: readonly Row[], positions: readonly number[]): void {
    const { width } = this.#config;
    const { tokens, positions: places } = this.#parameters;
    for (const [row, { token }] of rows.entries()) {
      const [from, place, to] = [token * width, (positions[row] ?? 0) * width, row * width];
      for (let j = 0; j < width; j += 1) {
        this.#stream[to + j] = (tokens[from + j] ?? 0) + (places[place + j] ?? 0);
      }
    }
  }

  #attend(layer: LayerParameters, index: number, rows: readonly Row[], positions: readonly number[]): void {
    const { width } = this.#config;
    normalize(rows.length, this.#stream, layer.attentionGain, this.#normed);
    this.#product(rows.length, this.#normed, layer.queryKeyValue, this.#queryKeyValue, false);
    for (const [row, { slot }] of rows.entries()) {
      this.#remember(slot, index, positions[row] ?? 0, (row * 3 + 1) * width);
    }
    for (const [row, { slot }] of rows.entries()) {
      this.#look(slot, index, positions[row] ?? 0, row);
    }
    this.#product(rows.length, this.#attended, layer.attentionOut, this.#stream, true);
  }

  /** Stores the row's key and value, which lie side by side from `from`. */
  #remember(slot: KvSlot, layer: number, position: number, from: number): void {
    const { width, context } = this.#config;
    const key = layer * width * context + position;
    const value = (layer * context + position) * width;
    for (let j = 0; j < width; j += 1) {
      slot.keys[key + j * context] = this.#queryKeyValue[from + j] ?? 0;
      slot.values[value + j] = this.#queryKeyValue[from + width + j] ?? 0;
    }
  }

  /** Attention of one row to its sequence's tokens up to its own, head by head. */
  #look(slot: KvSlot, layer: number, position: number, row: number): void {
    const { width, heads, context } = this.#config;
    const { gemm } = this.#arena;
    const [size, seen, scores] = [width / heads, position + 1, this.#scores];
    const columns = Math.ceil(seen / 8) * 8;
    const base = layer * width * context;
    for (let head = 0; head < heads; head += 1) {
      const first = head * size;
      const query = at(this.#queryKeyValue, row * 3 * width + first);
      const keys = at(slot.keys, base + first * context);
      gemm(1, columns, size, query, 0, 1, keys, context, scores.byteOffset, columns, false);
      softmax(scores, 0, seen, 1 / Math.sqrt(size));
      const values = at(slot.values, base + first);
      const out = at(this.#attended, row * width + first);
      gemm(1, size, seen, scores.byteOffset, 0, 1, values, width, out, width, false);
    }
  }

  #feedForward(layer: LayerParameters, rows: number): void {
    normalize(rows, this.#stream, layer.hiddenGain, this.#normed);
    this.#product(rows, this.#normed, layer.hiddenIn, this.#hidden, false);
    rectify(this.#hidden, rows * this.#config.hidden);
    this.#product(rows, this.#hidden, layer.hiddenOut, this.#stream, true);
  }

  #head(rows: readonly Row[]): Float32Array {
    const { width, vocabulary } = this.#config;
    let asked = 0;
    for (const [row, { sampled }] of rows.entries()) {
      if (!sampled) continue;
      this.#stream.copyWithin(asked * width, row * width, (row + 1) * width);
      asked += 1;
    }
    normalize(asked, this.#stream, this.#parameters.finalGain, this.#normed);
    this.#product(asked, this.#normed, this.#parameters.head, this.#logits, false);
    return this.#logits.subarray(0, asked * vocabulary);
  }

  /** out (+)= input × matrix for the first rows; each buffer has `maxRows` of them, so its length tells its width. */
  #product(rows: number, input: Float32Array, matrix: Float32Array, out: Float32Array, add: boolean): void {
    const depth = input.length / this.#maxRows;
    const columns = out.length / this.#maxRows;
    const [a, b, c] = [input.byteOffset, matrix.byteOffset, out.byteOffset];
    this.#arena.gemm(rows, columns, depth, a, depth, 1, b, columns, c, columns, add);
  }
}

/** The address of an element. */
function at(vector: Float32Array, index: number): number {
  return vector.byteOffset + index * vector.BYTES_PER_ELEMENT;
}

/** What a transformer does between its matrix products, row by row, so that no row depends on another. */

/** One over the root mean square of row `row`; rows are as long as `gain`. */
export function inverseNorm(input: Float32Array, row: number, width: number): number {
  let squares = 0;
  for (let at = row * width; at < (row + 1) * width; at += 1) squares += (input[at] ?? 0) ** 2;
  return 1 / Math.sqrt(squares / width + NORM_EPSILON);
}

/** RMSNorm of the first `rows` rows, each as long as `gain`. */
export function normalize(rows: number, input: Float32Array, gain: Float32Array, out: Float32Array): void {
  const width = gain.length;
  for (let row = 0; row < rows; row += 1) {
    const scale = inverseNorm(input, row, width);
    const first = row * width;
    for (let j = 0; j < width; j += 1) {
      out[first + j] = (input[first + j] ?? 0) * scale * (gain[j] ?? 0);
    }
  }
}

/** ReLU of the first `length` values, in place. */
export function rectify(values: Float32Array, length: number): void {
  for (let at = 0; at < length; at += 1) if ((values[at] ?? 0) < 0) values[at] = 0;
}

/** Softmax of `scale` times the `length` values from `first`, in place. */
export function softmax(values: Float32Array, first: number, length: number, scale: number): void {
  let peak = Number.NEGATIVE_INFINITY;
  for (let at = first; at < first + length; at += 1) peak = Math.max(peak, values[at] ?? 0);
  let total = 0;
  for (let at = first; at < first + length; at += 1) {
    const weight = Math.exp(((values[at] ?? 0) - peak) * scale);
    values[at] = weight;
    total += weight;
  }
  for (let at = first; at < first + length; at += 1) values[at] = (values[at] ?? 0) / total;
}
