/** What a training run was asked beside what every run is asked: part of its spec, and of its stored request. */
import type { EvalRequest } from "./eval-request.ts";
import { type Sampling, trainingSampling } from "./sampling.ts";
import type {
  Advantage,
  BatchSize,
  Curriculum,
  LengthPenalty,
  TrainerTarget,
  TrainingRequest,
} from "./training-request.ts";

/** What makes a run a training run. */
export interface TrainingSpec {
  readonly trainer: TrainerTarget;
  readonly max_steps: number;
  readonly min_group_size: number;
  readonly batch_size: BatchSize;
  readonly advantage: Advantage;
  readonly length_penalty: LengthPenalty | null;
  readonly zero_variance: "drop" | "refill" | "keep";
  readonly curriculum: Curriculum;
  readonly lead: number;
  readonly max_off_policy_steps: number;
  readonly holdout: number;
  readonly eval: TrainingRequest["eval"] | null;
  /** What calls are made with, short of the version's salt: as batches tell it. */
  readonly sampling?: Sampling;
}

/** Whether evals are of the run's own environment: then they are asked as the run was, with its rows in its order. */
export function evalsOwn({ environment }: NonNullable<TrainingSpec["eval"]>, { id }: { readonly id: string }): boolean {
  return environment === undefined || environment.split("@")[0] === id;
}

/** What acceptance made for a run's trainer, as it is kept with the run. */
export interface StoredTrainer {
  /** AES-GCM, as endpoints' keys are; null where nothing is pushed. */
  readonly sealed_push_secret: string | null;
  /** The platform's own address, as whoever created the run saw it: what is offered says where to fetch it. */
  readonly base_url: string;
}

type Players = readonly { readonly sampling: Sampling }[];

/** `players`: the environments that play the run's rows. */
export function trainingSpecOf(asked: TrainingRequest, players: Players): TrainingSpec {
  const { trainer, max_steps, batch_size, advantage, length_penalty } = asked;
  const min_group_size = asked.min_group_size ?? Math.min(2, asked.group_size);
  const { curriculum, lead, max_off_policy_steps, holdout, filters } = asked;
  return {
    ...{ trainer, max_steps, min_group_size, batch_size, advantage, length_penalty, curriculum },
    ...{ lead, max_off_policy_steps, holdout, zero_variance: filters.zero_variance },
    eval: asked.eval ?? null,
    sampling: samplingOf(players, asked.sampling),
  };
}

/** What is asked of the model, by the run and by the environments that play its rows, where all of those ask the same. */
function samplingOf(players: Players, run: Sampling): Sampling {
  const [first, ...others] = players.map(({ sampling }) => sampling);
  const asked = JSON.stringify(first);
  const alike = others.every((other) => JSON.stringify(other) === asked);
  return trainingSampling(alike ? (first ?? {}) : {}, run, null);
}

/** What every run is asked: a group is a task, its members the task's rollouts, and no share of scores ends it. */
export function asEval(asked: TrainingRequest): EvalRequest {
  const { name, environment, environment_args, dataset, model, endpoint, judges } = asked;
  const { judge_cache, sampling, shuffle, seed, max_concurrent, limits, metadata } = asked;
  return {
    ...{ environment, environment_args, model, endpoint, judges, judge_cache, sampling, shuffle },
    ...{ seed, max_concurrent, limits, metadata, kind: "eval", num_examples: -1, min_scored: 0 },
    ...(name !== undefined && { name }),
    ...(dataset !== undefined && { dataset }),
    rollouts_per_example: asked.group_size,
  };
}
