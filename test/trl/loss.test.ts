/**
 * TRL's own trainers and the reference trainer compute loss and gradient of one scored batch of a real run: the numbers
 * agree to 1e-6. The weights differ from those that sampled it, so that ratios are clipped on both sides. Every test is
 * skipped without Python.
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { baseWeights, POLICY } from "@rollcall/policy/weights";
import { GradientOf, startJax, type TokenFacts } from "@rollcall/trainer/gradient";
import { TokenStatistics } from "@rollcall/trainer/learner";
import { crossEntropy, LOSSES, type LossName } from "@rollcall/trainer/losses";
import { forward } from "@rollcall/trainer/model";
import { ReadAhead } from "@rollcall/trainer/read-ahead";
import { layOut, type RowBatch, type TrainingSample, trainableTokens } from "@rollcall/trainer/row-batch";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { TrainerClient } from "../../src/sdk/trainer-client.ts";
import { testPort } from "../local/test-port.ts";
import { pythonVenv, run } from "../python/python-venv.ts";

const EXAMPLE = resolve(import.meta.dirname, "../../examples/trainers/trl");
const EXACT = 1e-6;
/** For dr_grpo: the fixed divisor, whatever the batch. */
const LONGEST = 70;
const CLIPPED = { epsilon: 0.2, epsilon_high: 0.28 };
const UNCLIPPED = { epsilon: 1e9, epsilon_high: 1e9 };

/** The weight of each token: equal over all trainable tokens, equal within a row with equal rows, or a constant. */
type Share = "token" | "row" | "constant";
const SAME = [
  { loss: "ppo_clip", share: "token", trainer: "AsyncGRPOTrainer", config: CLIPPED },
  { loss: "ppo_clip", share: "token", trainer: "GRPOTrainer", config: { loss_type: "dapo", ...CLIPPED } },
  { loss: "ppo_clip", share: "token", trainer: "GRPOTrainer", config: { loss_type: "bnpo", ...CLIPPED } },
  { loss: "ppo_clip", share: "row", trainer: "GRPOTrainer", config: { loss_type: "grpo", ...CLIPPED } },
  {
    loss: "ppo_clip",
    share: "constant",
    trainer: "GRPOTrainer",
    config: { loss_type: "dr_grpo", max_completion_length: LONGEST, ...CLIPPED },
  },
  { loss: "cispo", share: "token", trainer: "GRPOTrainer", config: { loss_type: "cispo", epsilon_high: 5 } },
  { loss: "importance_sampling", share: "token", trainer: "AsyncGRPOTrainer", config: UNCLIPPED },
  { loss: "importance_sampling", share: "token", trainer: "GRPOTrainer", config: { loss_type: "dapo", ...UNCLIPPED } },
] as const satisfies readonly { loss: LossName; share: Share; trainer: string; config: object }[];

const Answer = z.array(
  z.object({
    loss: z.number(),
    metrics: z.record(z.string(), z.number()),
    /** One gradient for the logprob of each token of each row except its first. */
    gradients: z.array(z.array(z.number())),
  }),
);

const weights = baseWeights().map((weight, at) => weight * (1 + 0.6 * Math.sin(2.3 * at)));
const folder = mkdtempSync(join(tmpdir(), "rollcall-trl-loss-"));
let platform: Platform;
let samples: readonly TrainingSample[];
let answers: z.infer<typeof Answer> | null = null;

beforeAll(async () => {
  const requirements = join(import.meta.dirname, "requirements.txt");
  const venv = await pythonVenv("trl", requirements, "ROLLCALL_TRL_VENV");
  if (venv === null) return;
  await startJax();
  const lines = await scoredBatch();
  const file = (name: string, holds: string | Uint8Array) => {
    writeFileSync(join(folder, name), holds);
    return join(folder, name);
  };
  const scores = Buffer.concat(samples.map((sample) => Buffer.from(scoresOf(sample).buffer)));
  const files = [file("rows.jsonl", lines), file("scores.f32", scores), file("same.json", JSON.stringify(SAME))];
  const printed = await run(venv.python, [join(import.meta.dirname, "loss.py"), EXAMPLE, ...files]);
  answers = Answer.parse(JSON.parse(printed.trim().split("\n").at(-1) ?? ""));
});
afterAll(async () => {
  await platform?.stop();
  await rm(folder, { recursive: true });
});

/** The batch in the form of the reference trainer (`samples`), and in TRL's form. */
async function scoredBatch(): Promise<string> {
  platform = await bootPlatform({ directory: null, port: testPort(31), log: () => undefined });
  const options = { baseUrl: platform.url, apiKey: platform.key };
  const { id } = await new RollcallClient(options).runs.create({
    kind: "training",
    environment: "guess-number",
    environment_args: { max: 15, max_turns: 5 },
    model: "rollcall-policy",
    endpoint: { base_url: platform.policyUrl },
    sampling: { max_tokens: 16, seed: 3, extra_body: { min_tokens: 1 } },
    ...{ seed: 3, group_size: 4, batch_size: { rollouts: 64 }, max_steps: 1 },
    filters: { zero_variance: "keep" },
  });
  const client = new TrainerClient({ ...options, runId: id });
  ({ samples } = await new ReadAhead(client).of(1));
  const { body } = await client.batchAs(1, { format: "trl" });
  return await new Response(body).text();
}

/** The logits after each of its tokens except the last. */
function scoresOf(sample: TrainingSample): Float32Array {
  const [batch] = layOut([sample], 1);
  if (batch === undefined) throw new RangeError("a sample has no row");
  const all = forward(weights, batch).dataSync();
  return Float32Array.from(all.slice(0, (sample.ids.length - 1) * POLICY.vocabulary));
}

function shared(share: Share): { readonly rows: readonly TrainingSample[]; readonly weight: number } {
  if (share === "token") return { rows: samples, weight: 1 / trainableTokens(samples) };
  if (share === "constant") return { rows: samples, weight: 1 / (samples.length * LONGEST) };
  const rows = samples.map((sample) => {
    const tokens = trainableTokens([sample]);
    return { ...sample, mask: Array.from(sample.mask, (bit) => bit / tokens) };
  });
  return { rows, weight: 1 / samples.length };
}

/** Every combination of a token's ratio and the sign of its credit. */
function waysOf(batches: readonly RowBatch[], facts: readonly TokenFacts[]): ReadonlySet<string> {
  const ways = new Set<string>();
  for (const [at, { weights: shares, logprobs, advantages }] of batches.entries()) {
    for (const [place, share] of shares.entries()) {
      if (share === 0) continue;
      const ratio = Math.exp((facts[at]?.logprobs[place] ?? 0) - (logprobs[place] ?? 0));
      ways.add(`${sizeOf(ratio)} ${Math.sign(advantages[place] ?? 0)}`);
    }
  }
  return ways;
}

/** The class of a ratio by the bounds of ppo_clip. */
function sizeOf(ratio: number): string {
  if (ratio > 1.28) return "high";
  return ratio < 0.8 ? "low" : "within";
}

function most(values: Iterable<number>): number {
  let most = 0;
  for (const value of values) most = Math.max(most, Math.abs(value));
  return most;
}

test("the batch has rows of many lengths, tool results in between, and ratios on all sides of every bound", async ({
  skip,
}) => {
  if (answers === null) return skip();
  expect(new Set(samples.map(({ ids }) => ids.length)).size).toBeGreaterThan(4);
  expect(new Set(samples.map(({ advantage }) => advantage)).size).toBeGreaterThan(5);
  expect(samples.filter(({ mask }) => /10+1/.test(Array.from(mask).join(""))).length).toBeGreaterThan(10);
  const { rows, weight } = shared("token");
  const batches = layOut(rows, weight);
  const { facts } = await new GradientOf(LOSSES.ppo_clip).at(weights, batches);
  const each = ["low", "within", "high"].flatMap((size) => [`${size} 1`, `${size} -1`]);
  expect([...waysOf(batches, facts)]).toEqual(expect.arrayContaining(each));
  const statistics = new TokenStatistics();
  statistics.add(batches, facts);
  expect(statistics.drift.ratio_max_abs_error, "beyond the cap of cispo").toBeGreaterThan(5);
});

test.for(SAME.map((same, at) => ({ ...same, at })))(
  "$loss, weighted by $share, has the loss and the gradient of TRL's $trainer with $config",
  async ({ loss, share, at }, { skip }) => {
    const trl = answers?.[at] ?? skip();
    const { rows, weight } = shared(share);
    const batches = layOut(rows, weight);
    const ours = await new GradientOf(LOSSES[loss]).at(weights, batches);
    expect(Math.abs(ours.loss)).toBeGreaterThan(100 * EXACT);
    expect(Math.abs(ours.loss - trl.loss)).toBeLessThan(EXACT);

    // TRL's gradient by logprobs, multiplied by the logprobs' gradient by weights.
    const theirs = await new GradientOf(crossEntropy).at(weights, layOut(carriedBy(trl.gradients), 1));
    expect(most(ours.vector)).toBeGreaterThan(1000 * EXACT);
    expect(most(ours.vector.map((value, at) => value - (theirs.vector[at] ?? 0)))).toBeLessThan(EXACT);

    const statistics = new TokenStatistics();
    statistics.add(batches, ours.facts);
    const { metrics } = trl;
    const shown = { ...statistics.health, ...statistics.drift };
    const cut =
      loss === "ppo_clip"
        ? { "clip_ratio/low_mean": shown.is_masked_low, "clip_ratio/high_mean": shown.is_masked_high }
        : {};
    for (const [name, value] of Object.entries({ entropy: shown.entropy, ratio: shown.ratio, kl: shown.kl, ...cut })) {
      if (name in metrics) expect(Math.abs((metrics[name] ?? 0) - value), name).toBeLessThan(10 * EXACT);
    }
  },
);

/** Samples whose cross-entropy has these gradients by the logprobs of their tokens. */
function carriedBy(gradients: readonly (readonly number[])[]): TrainingSample[] {
  return samples.map((sample, row) => {
    const mask = Array.from(sample.mask, (_, at) => -(gradients[row]?.[at - 1] ?? 0));
    return { ...sample, mask, advantage: 1 };
  });
}
