/** The hand-written backward pass, held against finite differences of the forward pass. */
import { expect, test } from "vitest";
import { backward } from "../../../scripts/pretrain/backward.ts";
import { packExamples } from "../../../scripts/pretrain/batch.ts";
import { forward } from "../../../scripts/pretrain/forward.ts";
import { initialize } from "../../../scripts/pretrain/initialize.ts";
import { crossEntropy } from "../../../scripts/pretrain/loss.ts";
import { createTrainee } from "../../../scripts/pretrain/trainee.ts";
import { seededRandom } from "../../../src/contract/random.ts";

const config = { vocabulary: 16, context: 16, width: 16, layers: 2, heads: 2, hidden: 24 };
const random = seededRandom("gradients");
const trainee = createTrainee(config, 64);
initialize(config, trainee.parameters, random);

/** Lengths that are no multiple of the GEMM's columns, and weights that differ. */
const batch = packExamples(
  [3, 11, 16, 1].map((length) => ({
    ids: Array.from({ length }, () => Math.floor(random() * config.vocabulary)),
    weights: Array.from({ length }, () => random()),
  })),
);

function loss(): number {
  return crossEntropy(forward(trainee, batch).slice(), batch, config.vocabulary);
}

const logits = forward(trainee, batch).slice();
const gradient = trainee.logits;
gradient.set(logits);
crossEntropy(gradient, batch, config.vocabulary);
trainee.gradients.fill(0);
backward(trainee, batch, gradient);

const { layers, ...parts } = trainee.parameters;
const { layers: layerGradients, ...partGradients } = trainee.parameterGradients;
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
  const step = 4e-3;
  const slope = (lossAt(step) - lossAt(-step)) / (2 * step);
  expect(steepness).toBeGreaterThan(0);
  expect(slope / steepness).toBeCloseTo(1, 2);
});
