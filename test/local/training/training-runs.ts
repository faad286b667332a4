/** Training runs, and evals of them, on a served platform. */
import { gunzipSync } from "node:zlib";
import type { RunView } from "../../../src/contract/run.ts";
import type { TrainingRequestInput } from "../../../src/contract/training-request.ts";
import { RollcallClient } from "../../../src/sdk/client.ts";
import { TrainerClient } from "../../../src/sdk/trainer-client.ts";
import { WAIT_HANGS_MS } from "../../hang-limits.ts";
import type { Served } from "../served-platform.ts";

/** For a machine that is busy with other work; otherwise a tenth is enough. */
export const HELD_OUT = 256;
export const SEED = 3;
/**
 * The score of the policy server's initial weights on the held-out tasks, measured with 16 samples of each (.3166,
 * standard error .0063), and the standard deviation of a mean of one sample of each from it: .0252, including that
 * error.
 */
export const UNTRAINED = { mean: 0.317, sd: 0.026 };

export interface CreatedTraining {
  readonly run: string;
  readonly token: string;
  /** "" if nothing is pushed. */
  readonly secret: string;
  /** Resolves with the run once it has ended. `served`: the currently booted platform. */
  ended(served: Served): Promise<RunView>;
}

export function clientOf({ url, key }: Served): RollcallClient {
  return new RollcallClient({ baseUrl: url, apiKey: key });
}

export function trainerOf({ url }: Served, { run, token }: CreatedTraining): TrainerClient {
  return new TrainerClient({ baseUrl: url, runId: run, apiKey: token });
}

/** The common request of all training runs here. */
export function calculator(policy: string) {
  return {
    kind: "training" as const,
    environment: "calculator",
    environment_args: { steps: 1, max: 9 },
    model: "rollcall-policy",
    endpoint: { base_url: policy },
    sampling: { max_tokens: 16, extra_body: { min_tokens: 1 } },
  };
}

export async function createTraining(served: Served, request: TrainingRequestInput): Promise<CreatedTraining> {
  const client = clientOf(served);
  const { id, trainer } = await client.runs.create(request);
  if (!trainer) throw new Error(`${id} came without a token for its trainer`);
  const { token, push_secret } = trainer;
  return { run: id, token, secret: push_secret ?? "", ended: (now) => ended(clientOf(now), id) };
}

/** Two steps of eight rollouts, all of which are trained on. */
export function smallRun(
  served: Served,
  trainer: TrainingRequestInput["trainer"],
  more: Partial<TrainingRequestInput> = {},
): Promise<CreatedTraining> {
  return createTraining(served, {
    ...calculator(served.policy),
    trainer,
    group_size: 4,
    batch_size: { rollouts: 8 },
    max_steps: 2,
    filters: { zero_variance: "keep" },
    ...more,
  });
}

/** The rows of the first batch, in the order of their positions in the run; of their ids only the positions. */
export async function firstRowsOf(served: Served, created: CreatedTraining) {
  const trainer = trainerOf(served, created);
  const { objects } = await trainer.manifest(1, { maxWaitS: 60 });
  const packed = await Promise.all(objects.map(({ sha256 }) => trainer.object(1, sha256)));
  const rows = packed
    .flatMap((bytes) => gunzipSync(bytes).toString().trimEnd().split("\n"))
    .map((line): StoredRow => JSON.parse(line));
  const placed = rows.map(({ rollout_id, token_ids, logprobs }) => {
    return { place: rollout_id.split("_").slice(2, 5).join("_"), token_ids, logprobs };
  });
  return placed.sort((one, other) => (one.place < other.place ? -1 : 1));
}

interface StoredRow {
  readonly rollout_id: string;
  readonly token_ids: readonly number[];
  readonly logprobs: readonly number[];
}

export async function ended(client: RollcallClient, id: string): Promise<RunView> {
  for await (const _ of client.runs.events(id, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
  return await client.runs.get(id);
}

/** A policy's score on tasks that no run with the same seed and `holdout` trains on. */
export interface Held {
  readonly mean: number;
  readonly se: number;
  readonly taskKeys: ReadonlySet<string>;
}

/** With a sampling seed, the same weights give the same answers, and each rollout has its own seed. */
export async function evaluate(
  served: Served,
  policy: string,
  seed?: number,
  num_examples: number = HELD_OUT,
): Promise<Held> {
  const { kind: _training, sampling, ...play } = calculator(policy);
  const client = clientOf(served);
  const { id } = await client.runs.create({
    ...play,
    ...{ num_examples, seed: SEED },
    ...(seed !== undefined && { sampling: { ...sampling, seed } }),
  });
  const { report, status } = await ended(client, id);
  const { mean, se } = report.reward;
  if (mean === null || se === null) throw new Error(`${id} is ${status} without a mean`);
  return { mean, se, taskKeys: await taskKeysOf(client, id) };
}

export async function taskKeysOf(client: RollcallClient, id: string): Promise<Set<string>> {
  const keys = new Set<string>();
  for await (const { task_key } of client.runs.results(id)) keys.add(task_key);
  return keys;
}
