/**
 * The gradient, checked against finite differences and against that of each sample alone; and the optimiser steps. In
 * one file, because the code that computes it takes a second to compile.
 */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { baseWeights, POLICY, WEIGHT_COUNT } from "@rollcall/policy/weights";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newAdamState } from "../adam.ts";
import { readCheckpoint, writeCheckpoint } from "../checkpoint.ts";
import { type Gradient, GradientOf, startJax } from "../gradient.ts";
import { Learner, type LearnerState } from "../learner.ts";
import { LOSSES } from "../losses.ts";
import { layOut, trainableTokens } from "../row-batch.ts";
import { ThreadedGradient } from "../threaded-gradient.ts";
import { samplesOf } from "./hand-made-samples.ts";

const DPPO = new GradientOf(LOSSES.dppo);
const weights = baseWeights();
/** Several samples per row, and more rows than are computed at once. */
const samples = samplesOf([48, 3, 30, 17, 41, 22, 9, 25, 12, 44, 45, 46, 47, 48, 40, 39, 38, 37, 36, 35]);
const batches = layOut(samples, 1 / trainableTokens(samples));
let gradient: Gradient;

beforeAll(async () => {
  await startJax();
  gradient = await DPPO.at(weights, batches);
});

const norm = (vector: Float32Array) => Math.sqrt(vector.reduce((sum, value) => sum + value ** 2, 0));

test("the gradient is the sum of the gradients of the samples alone, whichever share a row", async () => {
  const few = samples.slice(0, 8);
  const share = 1 / trainableTokens(few);
  const { vector: together } = await DPPO.at(weights, layOut(few, share));
  const { vector: alone } = await DPPO.at(
    weights,
    few.flatMap((sample) => layOut([sample], share)),
  );
  const apart = together.map((value, at) => value - (alone[at] ?? 0));
  expect(norm(alone)).toBeGreaterThan(0);
  expect(norm(apart) / norm(alone)).toBeLessThan(1e-4);
});

test("the loss changes along the gradient as fast as the gradient says", async () => {
  const length = norm(gradient.vector);
  const step = 5e-4;
  const lossAt = async (by: number) => {
    const moved = weights.map((weight, at) => weight + (by * (gradient.vector[at] ?? 0)) / length);
    return (await DPPO.at(moved, batches)).loss;
  };
  const slope = ((await lossAt(step)) - (await lossAt(-step))) / (2 * step);
  expect(slope / length).toBeCloseTo(1, 2);
});

test("samples longer than the model's context are refused", () => {
  expect(() => layOut(samplesOf([POLICY.context + 2]), 1)).toThrow("longer than the model");
});

const OPTIONS = { learningRate: 5e-4, seed: 1, passes: 1 };
const BEGINNING: LearnerState = {
  weights: baseWeights(),
  adam: newAdamState(WEIGHT_COUNT),
  version: 0,
};
/** A digest of the learner's whole state, exact to the bit. */
function digestOf({ weights, adam, version }: LearnerState): string {
  const hash = createHash("sha256").update(`${version} ${adam.steps}`);
  for (const vector of [weights, adam.mean, adam.square]) hash.update(vector);
  return hash.digest("hex");
}

const batch = (step: number) => samplesOf([20, 30, 25, 18], step);
const folder = await mkdtemp(join(tmpdir(), "rollcall-checkpoint-"));

afterAll(() => rm(folder, { recursive: true, force: true }));

test("training from a checkpoint gives the same weights to the bit, and the arguments are not changed", async () => {
  const learner = new Learner(OPTIONS, DPPO);
  const beginning = digestOf(BEGINNING);
  const first = (await learner.train(BEGINNING, batch(1))).state;
  const written = { run_id: "run_1", batch: { batch_id: "bat_1", sha256: "a" } };
  await writeCheckpoint(folder, { ...written, state: first });
  const kept = digestOf(first);
  const straight = (await learner.train(first, batch(2))).state;
  expect([digestOf(BEGINNING), digestOf(first)]).toEqual([beginning, kept]);

  const read = await readCheckpoint(folder);
  expect(read).toMatchObject(written);
  expect(read?.state.version).toBe(1);
  const resumed = (await learner.train(read?.state ?? BEGINNING, batch(2))).state;
  expect(digestOf(resumed)).toBe(digestOf(straight));
  expect(digestOf(resumed)).not.toBe(digestOf(BEGINNING));
  expect(await readdir(folder)).toEqual(["checkpoint.bin"]);
});

test("each of several passes makes as many optimiser steps, in its own order, and all make one version", async () => {
  const many = samplesOf([20, 30, 25, 18, 22, 28, 19, 24, 21, 26]);
  const once = await new Learner(OPTIONS, DPPO).train(BEGINNING, many);
  const asked: string[] = [];
  const watched = {
    at: (...given: Parameters<typeof DPPO.at>) => {
      asked.push(JSON.stringify(given[1]));
      return DPPO.at(...given);
    },
  };
  const { state, metrics } = await new Learner({ ...OPTIONS, passes: 3 }, watched).train(BEGINNING, many);
  expect(state.version).toBe(1);
  expect(state.adam.steps).toBe(3 * once.state.adam.steps);
  expect(new Set(asked).size).toBe(asked.length);
  // The distance of the samples is measured on the first minibatch, before any update.
  const { ratio, kl } = once.metrics;
  expect(metrics).toMatchObject({ ratio, kl });
  expect(digestOf(state)).not.toBe(digestOf(once.state));
});

test("with learning rate 0 only the version moves", async () => {
  const learner = new Learner({ ...OPTIONS, learningRate: 0 }, DPPO);
  const { state, metrics } = await learner.train(BEGINNING, batch(1));
  expect(state.version).toBe(1);
  expect(Buffer.from(state.weights.buffer).equals(Buffer.from(BEGINNING.weights.buffer))).toBe(true);
  expect(metrics["grad_norm"]).toBeGreaterThan(0);
});

test("a batch in which nothing trains is refused", async () => {
  const learner = new Learner(OPTIONS, DPPO);
  const idle = batch(1).map((sample) => ({ ...sample, mask: Array.from(sample.ids, () => 0) }));
  await expect(learner.train(BEGINNING, idle)).rejects.toThrow("no sample");
});

test("a thread computes the same gradient as its process", async () => {
  const thread = await ThreadedGradient.start("dppo");
  const { loss, vector } = await thread.at(weights, batches);
  expect([loss, vector]).toEqual([gradient.loss, gradient.vector]);
  await thread.stop();
  await expect(thread.at(weights, batches)).rejects.toThrow("has ended");
});

test("without a checkpoint the result is null, and a file that is no checkpoint is an error that names it", async () => {
  expect(await readCheckpoint(join(folder, "nothing"))).toBeNull();
  await writeFile(join(folder, "checkpoint.bin"), "{}\n");
  await expect(readCheckpoint(folder)).rejects.toThrow("checkpoint.bin");
});
