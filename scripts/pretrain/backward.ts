/**
 * From the gradient of the logits to that of every weight, by hand.
 *
 * Invariants. Runs after `forward` over the same batch. Gradients of weights are added to what is there. The gradient of
 * the residual stream is one vector, which each block adds to on its way down.
 */
import { inverseNorm } from "../../packages/policy/decoder.ts";
import type { LayerParameters } from "../../packages/policy/weights.ts";
import { attendBackward } from "./attention.ts";
import type { Batch, Segment } from "./batch.ts";
import { productGradients } from "./products.ts";
import type { LayerActivations, Trainee } from "./trainee.ts";

export function backward(trainee: Trainee, batch: Batch, logitsGradient: Float32Array): void {
  const { config, parameters, parameterGradients, output, outputNormed, scratch } = trainee;
  const rows = batch.ids.length;
  const head = {
    input: outputNormed,
    matrix: parameters.head,
    matrixGradient: parameterGradients.head,
    outGradient: logitsGradient,
  };
  productGradients(trainee, rows, head, config.vocabulary, scratch.normedGradient);
  scratch.streamGradient.fill(0, 0, rows * config.width);
  normalizeBackward(trainee, rows, output, parameters.finalGain, parameterGradients.finalGain);
  for (let index = config.layers - 1; index >= 0; index -= 1) {
    const layer = trainee.layers[index];
    const weights = parameters.layers[index];
    const gradients = parameterGradients.layers[index];
    if (layer === undefined || weights === undefined || gradients === undefined) {
      throw new RangeError(`the model has no layer ${index}`);
    }
    feedForwardBackward(trainee, rows, layer, weights, gradients);
    attentionBackward(trainee, rows, batch.segments, layer, weights, gradients);
  }
  embedBackward(trainee, batch.ids, batch.segments);
}

function feedForwardBackward(
  trainee: Trainee,
  rows: number,
  { middle, hidden, hiddenNormed }: LayerActivations,
  weights: LayerParameters,
  gradients: LayerParameters,
): void {
  const { config, scratch } = trainee;
  const { streamGradient, hiddenGradient, normedGradient } = scratch;
  const down = {
    input: hidden,
    matrix: weights.hiddenOut,
    matrixGradient: gradients.hiddenOut,
    outGradient: streamGradient,
  };
  productGradients(trainee, rows, down, config.width, hiddenGradient);
  for (let at = 0; at < rows * config.hidden; at += 1) {
    if ((hidden[at] ?? 0) <= 0) hiddenGradient[at] = 0;
  }
  const up = {
    input: hiddenNormed,
    matrix: weights.hiddenIn,
    matrixGradient: gradients.hiddenIn,
    outGradient: hiddenGradient,
  };
  productGradients(trainee, rows, up, config.hidden, normedGradient);
  normalizeBackward(trainee, rows, middle, weights.hiddenGain, gradients.hiddenGain);
}

function attentionBackward(
  trainee: Trainee,
  rows: number,
  segments: readonly Segment[],
  layer: LayerActivations,
  weights: LayerParameters,
  gradients: LayerParameters,
): void {
  const { config, scratch } = trainee;
  const out = {
    input: layer.attended,
    matrix: weights.attentionOut,
    matrixGradient: gradients.attentionOut,
    outGradient: scratch.streamGradient,
  };
  productGradients(trainee, rows, out, config.width, scratch.attendedGradient);
  attendBackward(trainee, layer, segments);
  const projection = {
    input: layer.attentionNormed,
    matrix: weights.queryKeyValue,
    matrixGradient: gradients.queryKeyValue,
    outGradient: scratch.queryKeyValueGradient,
  };
  productGradients(trainee, rows, projection, 3 * config.width, scratch.normedGradient);
  normalizeBackward(trainee, rows, layer.input, weights.attentionGain, gradients.attentionGain);
}

/** Reads the gradient of the normed rows; adds to the gain's gradient and to the stream's. */
function normalizeBackward(
  { scratch: { normedGradient, streamGradient } }: Trainee,
  rows: number,
  input: Float32Array,
  gain: Float32Array,
  gainGradient: Float32Array,
): void {
  const width = gain.length;
  for (let row = 0; row < rows; row += 1) {
    const scale = inverseNorm(input, row, width);
    const first = row * width;
    let mean = 0;
    for (let j = 0; j < width; j += 1) {
      const unit = (input[first + j] ?? 0) * scale;
      const gradient = normedGradient[first + j] ?? 0;
      gainGradient[j] = (gainGradient[j] ?? 0) + gradient * unit;
      mean += (gradient * (gain[j] ?? 0) * unit) / width;
    }
    for (let j = 0; j < width; j += 1) {
      const unit = (input[first + j] ?? 0) * scale;
      const direct = (normedGradient[first + j] ?? 0) * (gain[j] ?? 0);
      streamGradient[first + j] = (streamGradient[first + j] ?? 0) + scale * (direct - unit * mean);
    }
  }
}

function embedBackward(
  { config: { width }, parameterGradients, scratch: { streamGradient } }: Trainee,
  ids: readonly number[],
  segments: readonly Segment[],
): void {
  const { tokens, positions } = parameterGradients;
  for (const { first, length } of segments) {
    for (let position = 0; position < length; position += 1) {
      const row = (first + position) * width;
      const token = (ids[first + position] ?? 0) * width;
      const place = position * width;
      for (let j = 0; j < width; j += 1) {
        const gradient = streamGradient[row + j] ?? 0;
        tokens[token + j] = (tokens[token + j] ?? 0) + gradient;
        positions[place + j] = (positions[place + j] ?? 0) + gradient;
      }
    }
  }
}
