/**
 * The shape of the policy, the order of its weights in one flat vector, and the weights that come with Rollcall.
 *
 * Invariants: a weights file, a trainer's update and the decoder use this order. Matrices are row-major, one row per
 * input. Every part's length is a multiple of 4, so each part of an aligned vector is aligned. Views share the vector's
 * memory. As bytes, weights are 32-bit floats, little-endian.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { VOCABULARY_SIZE } from "./tokenizer.ts";

/** The shape of the policy: a decoder-only transformer with RMSNorm before each block, learned positions and ReLU. */
export const POLICY = {
  /** A multiple of 8, as are `width / heads` and `context`: the GEMM works in columns of 8. */
  vocabulary: VOCABULARY_SIZE,
  /** The most tokens of a sequence, prompt and completion together. */
  context: 112,
  width: 64,
  layers: 2,
  heads: 4,
  hidden: 256,
};

export interface LayerParameters {
  readonly attentionGain: Float32Array;
  /** width × 3 width: queries, keys, values. */
  readonly queryKeyValue: Float32Array;
  readonly attentionOut: Float32Array;
  readonly hiddenGain: Float32Array;
  readonly hiddenIn: Float32Array;
  readonly hiddenOut: Float32Array;
}

export interface Parameters {
  /** vocabulary × width. */
  readonly tokens: Float32Array;
  /** context × width. */
  readonly positions: Float32Array;
  readonly layers: readonly LayerParameters[];
  readonly finalGain: Float32Array;
  /** width × vocabulary. */
  readonly head: Float32Array;
}

const { vocabulary, context, width, layers, hidden } = POLICY;
const LAYER_WEIGHTS = 2 * width + 4 * width * width + 2 * width * hidden;

/** How many weights the policy has. */
export const WEIGHT_COUNT = (2 * vocabulary + context + 1) * width + layers * LAYER_WEIGHTS;

/** Throws RangeError when the vector's length is not `WEIGHT_COUNT`. */
export function viewParameters(vector: Float32Array): Parameters {
  if (vector.length !== WEIGHT_COUNT) {
    throw new RangeError(`the model has ${WEIGHT_COUNT} weights, but ${vector.length} were given`);
  }
  let at = 0;
  const take = (length: number) => {
    at += length;
    return vector.subarray(at - length, at);
  };
  return {
    tokens: take(vocabulary * width),
    positions: take(context * width),
    layers: Array.from({ length: layers }, () => ({
      attentionGain: take(width),
      queryKeyValue: take(3 * width * width),
      attentionOut: take(width * width),
      hiddenGain: take(width),
      hiddenIn: take(width * hidden),
      hiddenOut: take(hidden * width),
    })),
    finalGain: take(width),
    head: take(width * vocabulary),
  };
}

/** The output of `npm run pretrain`. */
export const BASE_WEIGHTS_FILE = join(import.meta.dirname, "base-weights.bin");
const BYTES_PER_WEIGHT = 4;

/** A separate copy for each caller. */
export function baseWeights(): Float32Array<ArrayBuffer> {
  return weightsFromBytes(readFileSync(BASE_WEIGHTS_FILE));
}

/** Throws RangeError if the number of bytes does not match the weights. */
export function weightsFromBytes(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const expected = WEIGHT_COUNT * BYTES_PER_WEIGHT;
  if (bytes.byteLength !== expected) {
    throw new RangeError(`weights are ${expected} bytes, but ${bytes.byteLength} were given`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: WEIGHT_COUNT }, (_, at) => view.getFloat32(at * BYTES_PER_WEIGHT, true));
}

export function bytesFromWeights(weights: Float32Array): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(weights.length * BYTES_PER_WEIGHT));
  for (const [at, weight] of weights.entries()) {
    view.setFloat32(at * BYTES_PER_WEIGHT, weight, true);
  }
  return new Uint8Array(view.buffer);
}
