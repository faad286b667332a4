/**
 * A training run's requests give a trainer exactly the logprobs that it computes itself, even on an engine whose
 * settings would give others. Each setting is turned on, the request is the product's, and the reference trainer's
 * model checks it. For comparison, each test also sends a request without the field; otherwise the test would prove
 * nothing.
 */

import type { ServingOptionsInput } from "@rollcall/policy/request-schemas";
import { MODEL, type Served, serve } from "@rollcall/policy/test/served-policy";
import { baseWeights, viewParameters } from "@rollcall/policy/weights";
import { GradientOf, startJax } from "@rollcall/trainer/gradient";
import { TokenStatistics } from "@rollcall/trainer/learner";
import { LOSSES } from "@rollcall/trainer/losses";
import { layOut, type TrainingSample } from "@rollcall/trainer/row-batch";
import { beforeAll, expect, test } from "vitest";
import { loadEnvironment } from "../../../environments/calculator/environment.ts";
import type { Sampling } from "../../../src/contract/sampling.ts";
import { offeredTools } from "../../../src/core/rollout/harness.ts";
import { newRollout } from "../../../src/core/rollout/rollout.ts";
import { buildTask } from "../../../src/core/rollout/task.ts";
import { whyUntrainable } from "../../../src/core/training/engine-exactness.ts";
import { callModel, type ModelCall } from "../../../src/kernel/clients/inference.ts";
import { probeEndpoint } from "../../../src/kernel/clients/probe.ts";
import { turnCall } from "../../../src/kernel/rollout/model-call.ts";
import { WAIT_HANGS_MS } from "../../hang-limits.ts";

const EXACT = 1e-5;
/** Replies per question; enough that a wrong setting shows. */
const REPLIES = 6;
const QUESTIONS = ["What is 3 + 4?", "What is 8 - 5?", "What is 2 * 6?", "What is 9 + 9?"];
const BASE = baseWeights();
/** Other weights, as after some steps. */
const MOVED = BASE.map((weight, at) => weight * (1 + 0.2 * Math.sin(at)));

const trainer = new GradientOf(LOSSES.dppo);
const calculator = await loadEnvironment({ steps: 1, max: 9 });
const TASK = buildTask(calculator, { question: "What is 1 + 1?", answer: "2" }, 0);
beforeAll(startJax);

interface Asked {
  readonly sampling?: Sampling;
  readonly run_id?: string;
  readonly version?: number;
  readonly generation?: number;
  /** For a request that is not the product's. */
  readonly change?: (call: ModelCall) => Partial<ModelCall>;
}

async function samplesFrom(served: Served, asked: Asked): Promise<TrainingSample[]> {
  const calls = QUESTIONS.flatMap((question) =>
    Array.from({ length: REPLIES }, (_, seed) => callOf(served, question, seed, asked)),
  );
  return await Promise.all(calls.map(sampleOf));
}

function callOf({ url }: Served, question: string, seed: number, asked: Asked): ModelCall {
  const { run_id = "run_a", version = 0, generation = 0, sampling } = asked;
  const spec = {
    ...{ run_id, rollout_id: "ro_a", group: 0, slot: seed, attempt: 0 },
    ...{ model: MODEL, policy_version: version },
    ...{ policy_generation: generation, sampling: { seed, max_tokens: 24, ...sampling } },
  };
  const task = buildTask(calculator, { question, answer: "7" }, 0);
  const rollout = newRollout({ id: "ro_a", task_key: "t", ...task }, 0);
  const call = turnCall(spec, rollout, calculator.route(rollout).environment, offeredTools(calculator, rollout));
  if ("kind" in call) throw new Error(JSON.stringify(call));
  const signal = AbortSignal.timeout(WAIT_HANGS_MS);
  const whole = { ...call, base_url: `${url}/v1`, api_key: null, signal };
  return { ...whole, ...asked.change?.(whole) };
}

async function sampleOf(call: ModelCall): Promise<TrainingSample> {
  const outcome = await callModel(call);
  if (outcome.kind !== "answered") throw new Error(JSON.stringify(outcome));
  const { prompt_ids, completion_ids, completion_logprobs } = outcome.response;
  const [prompt, answer] = [prompt_ids ?? [], completion_ids ?? []];
  const logprobs = completion_logprobs ?? [];
  expect([answer.length, prompt.length === 0]).toEqual([logprobs.length, false]);
  const zeros = prompt.map(() => 0);
  return {
    ids: [...prompt, ...answer],
    mask: [...zeros, ...answer.map(() => 1)],
    logprobs: [...zeros, ...logprobs],
    advantage: 1,
  };
}

/** The largest distance of a ratio from 1, for these weights and this temperature. */
async function worstRatio(samples: readonly TrainingSample[], weights = BASE, temperature = 1): Promise<number> {
  const scaled = weights.slice();
  const { head } = viewParameters(scaled);
  for (const [at, weight] of head.entries()) head[at] = weight / temperature;
  const batches = layOut(samples, 1);
  const { facts } = await trainer.at(scaled, batches);
  const statistics = new TokenStatistics();
  statistics.add(batches, facts);
  return statistics.drift.ratio_max_abs_error;
}

const served = (serving: ServingOptionsInput = {}) => serve(BASE, 64, serving);

test("no settings: exact at temperature 1 and at another one", async () => {
  const policy = await served();
  expect(await worstRatio(await samplesFrom(policy, {}))).toBeLessThan(EXACT);
  const samples = await samplesFrom(policy, { sampling: { temperature: 0.7 } });
  expect(await worstRatio(samples, BASE, 0.7)).toBeLessThan(EXACT);
});

test("strict tools would be sampled with a grammar: a training run's tools are not", async () => {
  const policy = await served({ tool_strict_level: "auto" });
  expect(await worstRatio(await samplesFrom(policy, {}))).toBeLessThan(EXACT);
  const tools = offeredTools(calculator, newRollout({ id: "", task_key: "", ...TASK }, 0));
  if ("error" in tools) throw new Error(tools.error);
  expect(tools.map((tool) => tool.function.strict)).toContain(true);
  // The policy has learned the format of calls, so the grammar has little effect.
  const held = await samplesFrom(policy, { change: () => ({ tools }) });
  expect(await worstRatio(held)).toBeGreaterThan(10 * EXACT);
});

test("penalties of a generation config would apply to a request without them: a training run sets them", async () => {
  for (const [field, value] of [
    ["repetition_penalty", 1.3],
    ["presence_penalty", 0.5],
    ["frequency_penalty", 0.5],
  ] as const) {
    const policy = await served({ generation_config: { [field]: value } });
    expect(await worstRatio(await samplesFrom(policy, {}))).toBeLessThan(EXACT);
    const silent = await samplesFrom(policy, {
      change: ({ sampling }) => {
        const { [field]: _extra, ...extra_body } = sampling.extra_body ?? {};
        return { sampling: { ...sampling, [field]: null, extra_body } };
      },
    });
    expect(await worstRatio(silent)).toBeGreaterThan(0.01);
  }
});

test("raw logprobs leave the temperature out", async () => {
  const policy = await served({ logprobs_mode: "raw_logprobs" });
  const samples = await samplesFrom(policy, { sampling: { temperature: 0.7 } });
  expect(await worstRatio(samples, BASE, 0.7)).toBeGreaterThan(0.1);
  expect(await worstRatio(await samplesFrom(policy, {}))).toBeLessThan(EXACT);
});

test("the probe detects each setting that would do harm, and its message names the flag", async () => {
  const probed = async (serving: ServingOptionsInput, weights?: Float32Array) => {
    const { url } = await serve(weights ?? BASE, 64, serving);
    const now = { model: MODEL, usual: null, now: 0 };
    return await probeEndpoint({ base_url: `${url}/v1`, api_key: null, ...now });
  };
  const right = { one_logprob_a_token: true, logprobs_mode: "processed", penalties: true };
  const good = await probed({});
  expect(good.exactness).toEqual({ ...right, neutral_defaults: true, refused: null });
  expect(whyUntrainable(good)).toBeNull();
  const raw = await probed({ logprobs_mode: "raw_logprobs" });
  expect(raw.exactness).toMatchObject({ logprobs_mode: "raw", penalties: null });
  expect(whyUntrainable(raw)).toContain("--logprobs-mode processed_logprobs");
  // A request overrides it: relevant for an eval, and harmless for training.
  const own = await probed({ generation_config: { repetition_penalty: 3 } });
  expect(own.exactness).toMatchObject({ ...right, neutral_defaults: false });
  expect(whyUntrainable(own)).toBeNull();
});

test("old blocks stay in a prefix cache after a change of weights: no call of a training run reads them", async () => {
  const policy = await served({ keep_prefix_cache: true });
  await samplesFrom(policy, { version: 1 });
  await policy.engine.updateWeights(MOVED, "1");
  const next = [{ version: 2 }, { version: 1, generation: 1 }, { version: 1, run_id: "run_b" }];
  for (const asked of next) {
    expect(await worstRatio(await samplesFrom(policy, asked), MOVED)).toBeLessThan(EXACT);
  }
  expect(await worstRatio(await samplesFrom(policy, { version: 1 }), MOVED)).toBeGreaterThan(0.01);
  expect((await policy.post("/reset_prefix_cache", {})).status).toBe(200);
  const anew = await samplesFrom(policy, { version: 1 });
  expect(await worstRatio(anew, MOVED)).toBeLessThan(EXACT);
});
