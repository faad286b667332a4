/**
 * One step of the transformer over rows of many sequences, which reads and writes their cached keys and values.
 *
 * Invariants: a row is one token of one sequence. Rows of one sequence are in order, and each attends to the tokens
 * before it, including those of the same step. Every row is computed alone, in the same order of operations, so its
 * logits have the same bits in any batch. Logits are computed only for rows that are sampled, and are valid until the
 * next step.
 */
import type { Arena } from "./gemm.ts";
import type { KvSlot } from "./kv-cache.ts";
import { type LayerParameters, type Parameters, POLICY, viewParameters, WEIGHT_COUNT } from "./weights.ts";

/** Added to the mean square, so that the norm of a row of zeros is not zero. */
const NORM_EPSILON = 1e-5;

const { vocabulary: VOCABULARY, context: CONTEXT, width: WIDTH, heads: HEADS, hidden: HIDDEN } = POLICY;

/** Space for the alignment of each vector in the arena. */
const PADDING = 64;

export interface Row {
  readonly slot: KvSlot;
  readonly token: number;
  readonly sampled: boolean;
}

/** The number of floats that a decoder needs in an arena. */
export function decoderCapacity(maxRows: number): number {
  return WEIGHT_COUNT + maxRows * (6 * WIDTH + HIDDEN + VOCABULARY) + CONTEXT + PADDING;
}

export class Decoder {
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
  constructor(arena: Arena, maxRows: number) {
    this.#arena = arena;
    this.#maxRows = maxRows;
    this.#weights = arena.vector(WEIGHT_COUNT);
    this.#parameters = viewParameters(this.#weights);
    this.#stream = arena.vector(maxRows * WIDTH);
    this.#normed = arena.vector(maxRows * WIDTH);
    this.#queryKeyValue = arena.vector(maxRows * 3 * WIDTH);
    this.#attended = arena.vector(maxRows * WIDTH);
    this.#hidden = arena.vector(maxRows * HIDDEN);
    this.#scores = arena.vector(CONTEXT);
    this.#logits = arena.vector(maxRows * VOCABULARY);
  }

  /** Copies the weights. */
  load(weights: Float32Array): void {
    this.#weights.set(weights);
  }

  /** Appends each row's token to its slot. Returns the logits of the sampled rows, in order and concatenated. */
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
    const { tokens, positions: places } = this.#parameters;
    for (const [row, { token }] of rows.entries()) {
      const [from, place, to] = [token * WIDTH, (positions[row] ?? 0) * WIDTH, row * WIDTH];
      for (let j = 0; j < WIDTH; j += 1) {
        this.#stream[to + j] = (tokens[from + j] ?? 0) + (places[place + j] ?? 0);
      }
    }
  }

  #attend(layer: LayerParameters, index: number, rows: readonly Row[], positions: readonly number[]): void {
    normalize(rows.length, this.#stream, layer.attentionGain, this.#normed);
    this.#product(rows.length, this.#normed, layer.queryKeyValue, this.#queryKeyValue, false);
    for (const [row, { slot }] of rows.entries()) {
      this.#remember(slot, index, positions[row] ?? 0, (row * 3 + 1) * WIDTH);
    }
    for (const [row, { slot }] of rows.entries()) {
      this.#look(slot, index, positions[row] ?? 0, row);
    }
    this.#product(rows.length, this.#attended, layer.attentionOut, this.#stream, true);
  }

  /** Stores the row's key and value, which are adjacent from index `from` on. */
  #remember(slot: KvSlot, layer: number, position: number, from: number): void {
    const key = layer * WIDTH * CONTEXT + position;
    const value = (layer * CONTEXT + position) * WIDTH;
    for (let j = 0; j < WIDTH; j += 1) {
      slot.keys[key + j * CONTEXT] = this.#queryKeyValue[from + j] ?? 0;
      slot.values[value + j] = this.#queryKeyValue[from + WIDTH + j] ?? 0;
    }
  }

  /** Computes one row's attention to the tokens of its sequence up to itself, head by head. */
  #look(slot: KvSlot, layer: number, position: number, row: number): void {
    const { gemm } = this.#arena;
    const [size, seen, scores] = [WIDTH / HEADS, position + 1, this.#scores];
    const columns = Math.ceil(seen / 8) * 8;
    const base = layer * WIDTH * CONTEXT;
    for (let head = 0; head < HEADS; head += 1) {
      const first = head * size;
      const query = at(this.#queryKeyValue, row * 3 * WIDTH + first);
      const keys = at(slot.keys, base + first * CONTEXT);
      gemm(1, columns, size, query, 0, 1, keys, CONTEXT, scores.byteOffset, columns, false);
      softmax(scores, seen, 1 / Math.sqrt(size));
      const values = at(slot.values, base + first);
      const out = at(this.#attended, row * WIDTH + first);
      gemm(1, size, seen, scores.byteOffset, 0, 1, values, WIDTH, out, WIDTH, false);
    }
  }

  #feedForward(layer: LayerParameters, rows: number): void {
    normalize(rows, this.#stream, layer.hiddenGain, this.#normed);
    this.#product(rows, this.#normed, layer.hiddenIn, this.#hidden, false);
    rectify(this.#hidden, rows * HIDDEN);
    this.#product(rows, this.#hidden, layer.hiddenOut, this.#stream, true);
  }

  #head(rows: readonly Row[]): Float32Array {
    let asked = 0;
    for (const [row, { sampled }] of rows.entries()) {
      if (!sampled) continue;
      this.#stream.copyWithin(asked * WIDTH, row * WIDTH, (row + 1) * WIDTH);
      asked += 1;
    }
    normalize(asked, this.#stream, this.#parameters.finalGain, this.#normed);
    this.#product(asked, this.#normed, this.#parameters.head, this.#logits, false);
    return this.#logits.subarray(0, asked * VOCABULARY);
  }

  /** out (+)= input × matrix for the first rows. Each buffer has `maxRows` rows, so its length gives its width. */
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

// The operations between the matrix products, row by row, so that no row depends on another.

/** RMSNorm of the first `rows` rows, each as long as `gain`. */
function normalize(rows: number, input: Float32Array, gain: Float32Array, out: Float32Array): void {
  const width = gain.length;
  for (let row = 0; row < rows; row += 1) {
    const first = row * width;
    let squares = 0;
    for (let at = first; at < first + width; at += 1) squares += (input[at] ?? 0) ** 2;
    const scale = 1 / Math.sqrt(squares / width + NORM_EPSILON);
    for (let j = 0; j < width; j += 1) {
      out[first + j] = (input[first + j] ?? 0) * scale * (gain[j] ?? 0);
    }
  }
}

/** ReLU of the first `length` values, in place. */
function rectify(values: Float32Array, length: number): void {
  for (let at = 0; at < length; at += 1) if ((values[at] ?? 0) < 0) values[at] = 0;
}

/** Softmax of `scale` times the first `length` values, in place. */
function softmax(values: Float32Array, length: number, scale: number): void {
  let peak = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < length; at += 1) peak = Math.max(peak, values[at] ?? 0);
  let total = 0;
  for (let at = 0; at < length; at += 1) {
    const weight = Math.exp(((values[at] ?? 0) - peak) * scale);
    values[at] = weight;
    total += weight;
  }
  for (let at = 0; at < length; at += 1) values[at] = (values[at] ?? 0) / total;
}
