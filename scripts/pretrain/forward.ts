/** The whole model over a packed batch: the same function as the decoder's, keeping what the gradients need. */
import { normalize, rectify } from "../../packages/policy/decoder.ts";
import type { LayerParameters } from "../../packages/policy/weights.ts";
import { attend } from "./attention.ts";
import type { Batch, Segment } from "./batch.ts";
import { product } from "./products.ts";
import type { LayerActivations, Trainee } from "./trainee.ts";

/** The logits of every row, end to end; valid until the next pass. */
export function forward(trainee: Trainee, { ids, segments }: Batch): Float32Array {
  const { config, parameters, layers, output, outputNormed, logits } = trainee;
  const rows = ids.length;
  const stream = layers[0]?.input ?? output;
  embed(trainee, ids, segments, stream);
  for (const [index, layer] of layers.entries()) {
    const parametersOfLayer = parameters.layers[index];
    if (parametersOfLayer === undefined) throw new RangeError(`the model has no layer ${index}`);
    runLayer(trainee, rows, segments, parametersOfLayer, layer, layers[index + 1]?.input ?? output);
  }
  normalize(rows, output, parameters.finalGain, outputNormed);
  product(trainee, rows, outputNormed, parameters.head, config.vocabulary, logits, false);
  return logits.subarray(0, rows * config.vocabulary);
}

function embed(
  { config: { width }, parameters }: Trainee,
  ids: readonly number[],
  segments: readonly Segment[],
  out: Float32Array,
): void {
  for (const { first, length } of segments) {
    for (let position = 0; position < length; position += 1) {
      const row = (first + position) * width;
      const token = (ids[first + position] ?? 0) * width;
      for (let j = 0; j < width; j += 1) {
        const place = parameters.positions[position * width + j] ?? 0;
        out[row + j] = (parameters.tokens[token + j] ?? 0) + place;
      }
    }
  }
}

function runLayer(
  trainee: Trainee,
  rows: number,
  segments: readonly Segment[],
  parameters: LayerParameters,
  layer: LayerActivations,
  out: Float32Array,
): void {
  const { width, hidden } = trainee.config;
  const { input, attentionNormed, queryKeyValue, attended, middle, hiddenNormed } = layer;
  normalize(rows, input, parameters.attentionGain, attentionNormed);
  const projection = parameters.queryKeyValue;
  product(trainee, rows, attentionNormed, projection, 3 * width, queryKeyValue, false);
  attend(trainee, layer, segments);
  middle.set(input.subarray(0, rows * width));
  product(trainee, rows, attended, parameters.attentionOut, width, middle, true);
  normalize(rows, middle, parameters.hiddenGain, hiddenNormed);
  product(trainee, rows, hiddenNormed, parameters.hiddenIn, hidden, layer.hidden, false);
  rectify(layer.hidden, rows * hidden);
  out.set(middle.subarray(0, rows * width));
  product(trainee, rows, layer.hidden, parameters.hiddenOut, width, out, true);
}
