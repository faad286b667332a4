/**
 * What a training run puts into its batches for the trainer's loss: weights by prompt, length-weighted
 * baselines, filtered rollouts and reference logprobs.
 */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { decode } from "@msgpack/msgpack";
import { beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { textOf } from "../../../../src/contract/messages.ts";
import { RunView } from "../../../../src/contract/run.ts";
import { dataset, defineEnvironment, MultiTurnEnv } from "../../../../src/core/entry.ts";
import { parseCredits } from "../../../../src/core/training/batch.ts";
import { SampleRow } from "../../../../src/core/training/sample-row.ts";
import type { Reply } from "../../../fakes/completion-body.ts";
import { promptLogprobOf } from "../../../fakes/prompt-logprobs.ts";
import { WAIT } from "../../../hang-limits.ts";
import { MEMORY } from "../../memory-budget.ts";
import { openPlatform, requestsOf, type TestApi } from "../../platform.ts";
import { registerOnce } from "../../registered.ts";

import { script, type Turns } from "../../script.ts";

const Task = z.object({ question: z.string(), turns: z.int() });

/** Tasks of one turn and of two, in turn. The reward is 1 for a first answer that begins with "yes". */
const saysYes = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(
        Task,
        [1, 2, 1, 2].map((turns, at) => ({ question: `Is ${at} even?`, turns })),
      ),
      maxTurns: 2,
      stops: { asked_enough: ({ turn, task }) => turn >= task.turns },
      envResponse: () => "Are you sure?",
      rubric: { rewards: { yes: ({ completion }) => (textOf(completion[0]).startsWith("yes") ? 1 : 0) } },
    }),
});
const { args, needs, load } = saysYes;
registerOnce({ id: "says-yes", version: "1.0.0", digest: "sha256:says-yes", args, needs, load });

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

const INPUT_IDS = 0;
const MASK = 1;
const ADVANTAGES = 2;
const REF_LOGPROBS = 9;
const RL_WEIGHTS = 13;
const REF_KL_WEIGHTS = 15;

interface Batch {
  readonly run: RunView;
  readonly credits: ReturnType<typeof parseCredits>;
  /** As prime-rl packs them: the values of each sequence by position. */
  readonly packed: readonly (readonly unknown[])[];
}

async function begin(request: object, slots: readonly Reply[]): Promise<RunView> {
  const model = script(["no"], undefined, { slots, tokens: true });
  const asked = {
    ...{ kind: "training", environment: "says-yes", group_size: 2, max_steps: 1, batch_size: { rollouts: 4 } },
    ...{ trainer: { encoding: "jsonl" }, max_concurrent: 1, model, endpoint: { base_url: env.MODEL_URL } },
  };
  const response = await api.post("/v1/runs", { ...asked, ...request });
  if (response.status !== 202) throw new Error(await response.text());
  return RunView.parse(await response.json());
}

/** The first batch: two groups of two, of which the second has twice as many turns. */
async function firstBatch(request: object, slots: readonly Reply[]): Promise<Batch> {
  const run = await begin(request, slots);
  const at = `/v1/runs/${run.id}/batches/1`;
  const manifest = await api.ask(`${at}?max_wait_s=20`);
  if (manifest.status !== 200) throw new Error(await manifest.text());
  const credits = parseCredits(await (await api.ask(`${at}/credits`)).text());
  const bytes = await (await api.ask(`${at}?format=prime-rl&seq_len=512`)).arrayBuffer();
  return { run, credits, packed: decode(new Uint8Array(bytes)) as unknown[][] };
}

const at = (packed: Batch["packed"], place: number) => packed.flatMap((values) => values[place] as number[]);

test("with prompt aggregation each group of a batch weighs the same, whatever its length", async () => {
  const { run, credits, packed } = await firstBatch({ loss_aggregation: "prompt" }, ["yes", "no"]);
  expect(run.training?.loss_aggregation).toBe("prompt");
  // "yes" and "no" with their ends are 7 tokens a turn: 7 in the first group and 14 in the second, a mean of 10.5.
  expect(credits.map(({ advantage, weight }) => [advantage, weight])).toEqual([
    ...[0.5, -0.5].map((advantage) => [advantage, 1.5]),
    ...[0.5, -0.5].map((advantage) => [advantage, 0.75]),
  ]);
  const weights = at(packed, RL_WEIGHTS);
  const trained = at(packed, MASK).filter(Boolean).length;
  expect([weights.filter((weight) => weight > 0).length, trained]).toEqual([21, 21]);
  expect(weights.reduce((sum, weight) => sum + weight, 0)).toBe(21);
  const neutral = (await (await api.ask(`/v1/runs/${run.id}/batches/1?format=trl`)).text()).trimEnd().split("\n");
  expect(neutral.map((line) => JSON.parse(line).advantage)).toEqual([0.75, -0.75, 0.375, -0.375]);
});

test("with a length-weighted baseline the advantages times the sampled tokens of a group sum to 0", async () => {
  const advantage = { name: "mean", length_weighted_baseline: true };
  const { run, credits, packed } = await firstBatch({ advantage }, ["yes", "certainly not"]);
  expect(run.training?.advantage).toEqual(advantage);
  // 4 and 14 sampled tokens a turn: the baseline is 4 / 18.
  expect(credits.map(({ advantage: one }) => one)).toEqual(
    [14, -4, 14, -4].map((part) => expect.closeTo(part / 18, 9)),
  );
  expect(credits.every(({ weight }) => weight === undefined)).toBe(true);
  expect(at(packed, ADVANTAGES).reduce((sum, one) => sum + one, 0)).toBeCloseTo(0, 9);
});

test("weights by prompt are refused for a run that computes no advantages", async () => {
  const request = { loss_aggregation: "prompt", advantage: { name: "none" } };
  await expect(firstBatch(request, ["yes"])).rejects.toThrow(/loss_aggregation.*advantage/);
});

// "pp" is two tokens in a row with a logprob of -0.125, a probability of 0.882.
const REPEATS = { kind: "repetition", window: 2, prob_threshold: 0.88, enforce: true };

test("rollouts that a filter leaves out keep their scores, and others fill the batch in their place", async () => {
  const filters = { samples: [REPEATS], zero_variance: "drop" };
  const { run, credits, packed } = await firstBatch({ filters }, ["yes", "pp"]);
  expect(run.training?.sample_filters).toMatchObject([{ kind: "repetition", enforce: true }]);
  expect(credits.map(({ reward, advantage }) => [reward, advantage])).toEqual(Array(4).fill([1, 0.5]));
  expect(packed.flatMap((values) => values[17])).toHaveLength(4);
  const { training, counts } = await api.run(run.id);
  expect(training?.samples.filtered?.["repetition"]).toBeGreaterThanOrEqual(4);
  expect(training?.samples.flagged).toEqual(training?.samples.filtered);
  expect(counts.scored).toBeGreaterThanOrEqual(8);
  const rows = (await api.results(run.id)).filter(({ reward }) => reward === 0);
  expect(rows.length).toBeGreaterThanOrEqual(4);
});

test("a run whose filters leave nothing ends with that reason, after ten batches' worth of rollouts", async () => {
  const filters = { samples: [REPEATS] };
  const { id } = await begin({ filters, batch_size: { rollouts: 2 }, max_concurrent: 4 }, ["yes pp", "pp"]);
  const { status, error, training } = await api.ended(id);
  expect([status, error?.code]).toEqual(["failed", "nothing_to_train"]);
  expect(error?.message).toContain("10 groups filtered");
  expect(training?.groups.dropped).toMatchObject({ filtered: 10 });
});

function referenceOf(turns: Turns) {
  const model = script(turns);
  return { model, reference: { model, endpoint: { base_url: env.MODEL_URL }, kl_weight: 0.5 } };
}

test("each row has its reference's logprobs of its own tokens, and each is asked for and paid once", async () => {
  const fault = { kind: "status", status: 500 } as const;
  const { model, reference } = referenceOf([{ fault, times: 1, reply: "x" }]);
  const limits = { max_retries: 2 };
  const { run, credits, packed } = await firstBatch({ reference, limits }, ["yes", "no"]);
  expect(run.training?.reference).toEqual({ model, kl_weight: 0.5 });
  expect(credits).toHaveLength(4);
  const firsts = new Set(
    packed.flatMap((values) => (values[4] as number[]).flatMap((place, at) => (place === 0 ? at : []))),
  );
  const ids = at(packed, INPUT_IDS);
  expect(packed).toHaveLength(1);
  expect(at(packed, REF_LOGPROBS)).toEqual(ids.map((id, place) => (firsts.has(place) ? 0 : promptLogprobOf(id))));
  expect(at(packed, REF_KL_WEIGHTS)).toEqual(at(packed, MASK).map((trains) => (trains ? 0.5 : 0)));
  const neutral = await (await api.ask(`/v1/runs/${run.id}/batches/1?format=neutral`)).text();
  const [first] = neutral
    .trimEnd()
    .split("\n")
    .map((line) => SampleRow.parse(JSON.parse(line)));
  expect(first?.ref_logprobs?.length).toBe(first?.token_ids.length);
  const seen = await requestsOf(model, 8);
  const keys = seen.map(({ idempotency_key }) => idempotency_key);
  // A failed call is repeated with its key.
  expect([...Map.groupBy(keys, (key) => key).values()].slice(0, 4).map(({ length }) => length)).toEqual([2, 2, 2, 2]);
  const [judged] = (await api.results(run.id)).filter(({ reward }) => reward === 1);
  const { judgements } = await api.rollout(judged?.rollout_id ?? "");
  expect(judgements).toMatchObject([{ judge: "reference_logprobs", calls: 2, usage: { completion_tokens: 1 } }]);
});

test("a rollout without reference logprobs is not trained on, and a run of nothing else ends with the cause", async () => {
  const { reference } = referenceOf([{ fault: { kind: "status", status: 400 } }]);
  const { id } = await begin({ reference, batch_size: { rollouts: 2 }, max_concurrent: 4 }, ["yes", "no"]);
  const { status, error, training, counts } = await api.ended(id);
  expect([status, error?.code]).toEqual(["failed", "nothing_to_train"]);
  expect(error?.message).toContain("no reference logprobs");
  expect(training?.samples.untrainable["no_ref_logprobs"]).toBe(20);
  expect(counts.scored).toBeGreaterThanOrEqual(20);
});

test("if the process dies while the reference is asked, each row still gets its logprobs, and is charged once", async () => {
  const { model, reference } = referenceOf([{ fault: { kind: "hang" }, times: 1, reply: "x" }]);
  const limits = { call_timeout_s: 2 };
  const { id } = await begin({ reference, limits, batch_size: { rollouts: 2 } }, ["yes", "no"]);
  await requestsOf(model, 2);
  await abortAllDurableObjects();
  await api.inRun(id, async (object) => {
    await object.alarm();
    // After a restart the claim is sent again soon, not after its whole time.
    object.now = () => Date.now() + 6000;
    await object.alarm();
    object.now = () => Date.now();
  });
  const batch = await api.ask(`/v1/runs/${id}/batches/1?max_wait_s=30`);
  expect(batch.status).toBe(200);
  const text = await (await api.ask(`/v1/runs/${id}/batches/1?format=neutral`)).text();
  for (const line of text.trimEnd().split("\n")) {
    const { rollout_id, token_ids, ref_logprobs } = SampleRow.parse(JSON.parse(line));
    expect([...(ref_logprobs ?? [])]).toEqual([...token_ids].map((one, at) => (at === 0 ? 0 : promptLogprobOf(one))));
    const { judgements } = await api.rollout(rollout_id);
    expect(judgements).toMatchObject([{ usage: { prompt_tokens: token_ids.length, completion_tokens: 1 } }]);
  }
});

test("rows that have no memory are sent to the reference once there is some", async () => {
  const { model, reference } = referenceOf(["x"]);
  const waits = vi.spyOn(MEMORY.questions, "wait");
  const { bytes } = MEMORY.questions;
  const reservation = bytes.take(api.scope.orgId, Date.now(), bytes.mostOfOne);
  const { id } = await begin({ reference, batch_size: { rollouts: 2 } }, ["yes", "no"]);
  await vi.waitUntil(() => waits.mock.calls.length > 0, WAIT);
  expect(await requestsOf(model)).toEqual([]);
  reservation?.leave();
  expect((await api.ask(`/v1/runs/${id}/batches/1?max_wait_s=30`)).status).toBe(200);
  expect(await requestsOf(model)).not.toEqual([]);
  waits.mockRestore();
});

test("a run with a cap needs the prices of its reference's endpoint", async () => {
  const endpoint = { base_url: env.MODEL_URL, prices: { input_per_mtok_micros: 1, output_per_mtok_micros: 1 } };
  const { reference } = referenceOf(["x"]);
  const capped = { reference, endpoint, max_cost_micros: 1_000_000, sampling: { max_tokens: 8 } };
  await expect(begin(capped, ["yes", "no"])).rejects.toThrow(/prices_required.*reference\.endpoint/);
  await expect(begin({ ...capped, reference: { ...reference, endpoint } }, ["yes", "no"])).resolves.toBeDefined();
});

test("a run whose rollouts all fail ends after ten batches' worth of them", async () => {
  const refusing = { fault: { kind: "status", status: 400, body: { error: { message: "no" } } } } as const;
  const model = script([refusing], undefined, { tokens: true });
  const { id } = await begin({ model, batch_size: { rollouts: 2 }, max_concurrent: 4 }, []);
  const { status, error, training } = await api.ended(id);
  expect([status, error?.code, training?.groups.dropped]).toMatchObject([
    "failed",
    "nothing_to_train",
    { too_few: 10 },
  ]);
});
