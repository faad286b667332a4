/**
 * The gradient of the differentiable model, checked against finite differences of the loss that the decoder computes.
 */

import { Decoder, decoderCapacity } from "@rollcall/policy/decoder";
import { Arena } from "@rollcall/policy/gemm";
import { KvCache, kvCapacity } from "@rollcall/policy/kv-cache";
import { POLICY, viewParameters, WEIGHT_COUNT } from "@rollcall/policy/weights";
import { GradientOf, startJax } from "@rollcall/trainer/gradient";
import { crossEntropy } from "@rollcall/trainer/losses";
import { layOut } from "@rollcall/trainer/row-batch";
import { beforeAll, expect, test } from "vitest";
import { firstWeights } from "../../../scripts/pretrain/imitate.ts";
import { seededRandom } from "../../../src/contract/random.ts";

const ROWS = 64;
const random = seededRandom("gradients");
const weights = firstWeights(random);
const arena = new Arena(decoderCapacity(ROWS) + kvCapacity(POLICY, 1));
const decoder = new Decoder(arena, ROWS);
const cache = new KvCache(POLICY, arena, 1);

/** Lengths that are not multiples of the GEMM's columns, and different shares. */
const samples = [3, 11, 16, 48].map((length) => ({
  ids: Array.from({ length }, () => Math.floor(random() * POLICY.vocabulary)),
  mask: Array.from({ length }, () => random()),
  logprobs: new Float32Array(length),
  advantage: 1,
}));
const total = samples.flatMap(({ mask }) => mask.slice(1)).reduce((sum, share) => sum + share, 0);

/** The weighted mean of the negative log probabilities, token by token. */
function loss(): number {
  decoder.load(weights);
  let sum = 0;
  for (const { ids, mask } of samples) {
    const slot = cache.acquire([0], `${random()}`);
    const logits = decoder.step(ids.map((token) => ({ slot, token, sampled: true })));
    cache.release(slot);
    for (let at = 1; at < ids.length; at += 1) {
      const scores = logits.subarray((at - 1) * POLICY.vocabulary, at * POLICY.vocabulary);
      const all = scores.reduce((exponentials, score) => exponentials + Math.exp(score), 0);
      sum += (mask[at] ?? 0) * (Math.log(all) - (scores[ids[at] ?? 0] ?? 0));
    }
  }
  return sum / total;
}

const vector = new Float32Array(WEIGHT_COUNT);
beforeAll(async () => {
  await startJax();
  const gradient = await new GradientOf(crossEntropy).at(weights, layOut(samples, 1 / total));
  expect(gradient.loss).toBeCloseTo(loss(), 5);
  vector.set(gradient.vector);
});

const { layers, ...parts } = viewParameters(weights);
const { layers: layerGradients, ...partGradients } = viewParameters(vector);
const named: [string, Float32Array, Float32Array][] = [
  ...namedParts("", parts, partGradients),
  ...layers.flatMap((layer, at) => namedParts(`layer ${at} `, layer, layerGradients[at])),
];

function namedParts(
  prefix: string,
  weights: object,
  gradients: object | undefined,
): [string, Float32Array, Float32Array][] {
  const byName = new Map(Object.entries(gradients ?? {}));
  return Object.entries(weights).map(([name, vector]) => [prefix + name, vector, byName.get(name)]);
}

test.each(named)("along its gradient, %s changes the loss as fast as it says", (_, weights, gradients) => {
  const steepness = Math.sqrt(gradients.reduce((sum, value) => sum + value * value, 0));
  const before = weights.slice();
  const lossAt = (step: number) => {
    weights.set(before.map((weight, at) => weight + (step * (gradients[at] ?? 0)) / steepness));
    const value = loss();
    weights.set(before);
    return value;
  };
  const step = 1e-3;
  const slope = (lossAt(step) - lossAt(-step)) / (2 * step);
  expect(steepness).toBeGreaterThan(0);
  expect(slope / steepness).toBeCloseTo(1, 2);
});
