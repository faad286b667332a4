/** What a training run puts into its batches for the trainer's loss: weights by prompt, and length-weighted baselines. */
import { env } from "cloudflare:workers";
import { decode } from "@msgpack/msgpack";
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../../../../src/contract/messages.ts";
import { RunView } from "../../../../src/contract/run.ts";
import { dataset, defineEnvironment, MultiTurnEnv } from "../../../../src/core/entry.ts";
import { parseCredits } from "../../../../src/core/training/batch.ts";
import type { Reply } from "../../../fakes/completion-body.ts";
import { openPlatform, type TestApi } from "../../platform.ts";
import { registerOnce } from "../../registered.ts";
import { script } from "../../script.ts";

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

const MASK = 1;
const ADVANTAGES = 2;
const RL_WEIGHTS = 13;

interface Batch {
  readonly run: RunView;
  readonly credits: ReturnType<typeof parseCredits>;
  /** As prime-rl packs them: the values of each sequence by position. */
  readonly packed: readonly (readonly unknown[])[];
}

/** The first batch: two groups of two, of which the second has twice as many turns. */
async function firstBatch(request: object, slots: readonly Reply[]): Promise<Batch> {
  const model = script(["no"], undefined, { slots, tokens: true });
  const asked = {
    ...{ kind: "training", environment: "says-yes", group_size: 2, max_steps: 1, batch_size: { rollouts: 4 } },
    ...{ trainer: { encoding: "jsonl" }, max_concurrent: 1, model, endpoint: { base_url: env.MODEL_URL } },
  };
  const response = await api.post("/v1/runs", { ...asked, ...request });
  if (response.status !== 202) throw new Error(await response.text());
  const run = RunView.parse(await response.json());
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
