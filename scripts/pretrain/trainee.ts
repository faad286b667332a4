/**
 * A model in training: its weights, their gradients, and room for what the forward pass leaves to the backward pass.
 *
 * Invariants. All vectors lie in one arena. Each activation has `maxRows` rows; a pass uses the first of them.
 */
import { Arena, type Gemm } from "../../packages/policy/gemm.ts";

import { type ModelConfig, type Parameters, parameterCount, viewParameters } from "../../packages/policy/weights.ts";

export interface LayerActivations {
  readonly input: Float32Array;
  readonly attentionNormed: Float32Array;
  readonly queryKeyValue: Float32Array;
  /** Per segment and head, who looks at whom: rows as long as the context. */
  readonly shares: Float32Array;
  readonly attended: Float32Array;
  readonly middle: Float32Array;
  readonly hiddenNormed: Float32Array;
  readonly hidden: Float32Array;
}

export interface Trainee {
  readonly config: ModelConfig;
  readonly gemm: Gemm;
  readonly weights: Float32Array;
  readonly gradients: Float32Array;
  readonly parameters: Parameters;
  readonly parameterGradients: Parameters;
  readonly layers: readonly LayerActivations[];
  readonly output: Float32Array;
  readonly outputNormed: Float32Array;
  readonly logits: Float32Array;
  readonly scratch: Scratch;
}

/** What no pass relies on after the operation it was used in. */
export interface Scratch {
  readonly streamGradient: Float32Array;
  readonly normedGradient: Float32Array;
  readonly attendedGradient: Float32Array;
  readonly queryKeyValueGradient: Float32Array;
  readonly hiddenGradient: Float32Array;
  /** A matrix of weights, transposed. */
  readonly transposed: Float32Array;
  /** Keys or values of one head, transposed: a row per dimension, as long as the context. */
  readonly headTransposed: Float32Array;
  readonly sharesGradient: Float32Array;
}

export function createTrainee(config: ModelConfig, maxRows: number): Trainee {
  const arena = new Arena(capacity(config, maxRows));
  const { width, hidden, heads, context, vocabulary } = config;
  const rows = (columns: number) => arena.vector(maxRows * columns);
  const weights = arena.vector(parameterCount(config));
  const gradients = arena.vector(parameterCount(config));
  return {
    config,
    gemm: arena.gemm,
    weights,
    gradients,
    parameters: viewParameters(config, weights),
    parameterGradients: viewParameters(config, gradients),
    layers: Array.from({ length: config.layers }, () => ({
      input: rows(width),
      attentionNormed: rows(width),
      queryKeyValue: rows(3 * width),
      shares: rows(heads * context),
      attended: rows(width),
      middle: rows(width),
      hiddenNormed: rows(width),
      hidden: rows(hidden),
    })),
    output: rows(width),
    outputNormed: rows(width),
    logits: rows(vocabulary),
    scratch: {
      streamGradient: rows(width),
      normedGradient: rows(width),
      attendedGradient: rows(width),
      queryKeyValueGradient: rows(3 * width),
      hiddenGradient: rows(hidden),
      transposed: arena.vector(width * Math.max(3 * width, hidden, vocabulary)),
      headTransposed: arena.vector((width / heads) * context),
      sharesGradient: arena.vector(context * context),
    },
  };
}

/** Floats for all of the above, with some to spare for alignment. */
function capacity(config: ModelConfig, maxRows: number): number {
  const { width, hidden, heads, context, vocabulary, layers } = config;
  const layerRow = 8 * width + heads * context + hidden;
  const row = layers * layerRow + 8 * width + hidden + vocabulary;
  const matrices = width * (3 * width + hidden + vocabulary + context) + context * context;
  return 2 * parameterCount(config) + maxRows * row + matrices + 1024;
}
