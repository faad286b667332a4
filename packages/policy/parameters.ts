/**
 * The order of a model's numbers in one flat vector: what a weights file holds, a trainer sends and the decoder reads.
 *
 * Invariants. Matrices are row-major, one row per input. Every part's length is a multiple of 4, so each part of an
 * aligned vector is aligned. Views share the vector's memory.
 */
import type { ModelConfig } from "./model-config.ts";

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

export function parameterCount(config: ModelConfig): number {
  const { vocabulary, context, width, layers, hidden } = config;
  const layer = 2 * width + 4 * width * width + 2 * width * hidden;
  return (2 * vocabulary + context + 1) * width + layers * layer;
}

/** Throws RangeError when the vector's length is not `parameterCount(config)`. */
export function viewParameters(config: ModelConfig, vector: Float32Array): Parameters {
  const expected = parameterCount(config);
  if (vector.length !== expected) {
    throw new RangeError(`the model has ${expected} weights, but ${vector.length} were given`);
  }
  const { vocabulary, context, width, hidden } = config;
  let at = 0;
  const take = (length: number) => {
    at += length;
    return vector.subarray(at - length, at);
  };
  return {
    tokens: take(vocabulary * width),
    positions: take(context * width),
    layers: Array.from({ length: config.layers }, () => ({
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
