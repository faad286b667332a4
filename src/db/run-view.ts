/** A run as the projection knows it, in the shape of the wire. Its object knows more while it runs. */
import { costOfUsage } from "../contract/judgement.ts";
import type { RunReport } from "../contract/report.ts";
import type { RunCounts, RunView } from "../contract/run.ts";
import type { RunRecord } from "./runs.ts";
import type { RunRow, StoredRequest } from "./schema.ts";

export function runViewOf({ run, endpoint }: RunRecord): RunView {
  const { request } = run;
  const report = run.report ?? NOTHING_FINISHED;
  return {
    object: "run",
    id: run.id,
    kind: run.kind,
    name: run.name,
    status: run.status,
    error: run.error,
    flow: run.finished_at === null ? flowOf(run) : null,
    environment: {
      id: run.environment_id,
      version: run.environment_version,
      digest: run.environment_digest,
    },
    environment_args: request.environment_args,
    model: run.model,
    // Member by member: what else a caller's record holds, the sealed key above all, is not for the wire.
    endpoint: {
      id: endpoint.id,
      name: endpoint.name,
      base_url: endpoint.base_url,
      api_key_last4: endpoint.api_key_last4,
    },
    dataset: run.dataset_id,
    judges: judgesOf(request),
    sampling: request.sampling,
    num_examples: numExamplesOf(run),
    rollouts_per_example: request.rollouts_per_example,
    max_concurrent: request.max_concurrent,
    limits: request.limits,
    min_scored: request.min_scored,
    shuffle: request.shuffle,
    seed: request.seed,
    metadata: run.metadata,
    counts: run.counts ?? nothingDispatched(run),
    report,
    cost: costOfUsage(report.usage),
    dead_letters: run.dead_letters,
    forked_from: forkedFrom(request),
    rescored_from: request.resolved.rescore?.run_id ?? null,
    // Its object alone knows.
    training: null,
    created_at: Math.floor(run.created_at / 1000),
    finished_at: run.finished_at === null ? null : Math.floor(run.finished_at / 1000),
  };
}

/** Tasks of the run: of a training run those it draws from, since nobody knows how many groups it will open. */
export function numExamplesOf({ planned, request }: Pick<RunRow, "planned" | "request">): number {
  const { resolved, num_examples, rollouts_per_example } = request;
  return resolved.training === undefined ? planned / rollouts_per_example : num_examples;
}

/** What a list knows of why a run waits; its object knows more. */
function flowOf({ status }: RunRow): RunView["flow"] {
  return status === "paused" ? { state: "paused", reason: "user" } : { state: "active", reason: null };
}

function forkedFrom({ resolved: { fork } }: StoredRequest): RunView["forked_from"] {
  return fork === undefined ? null : { rollout_id: fork.rollout_id, turn: fork.turn };
}

function judgesOf({ judges = {} }: StoredRequest): RunView["judges"] {
  const named = Object.entries(judges);
  return Object.fromEntries(named.map(([name, { endpoint, model }]) => [name, { endpoint, model }]));
}

function nothingDispatched({ planned }: RunRow): RunCounts {
  return {
    planned,
    pending: planned,
    dispatched: 0,
    in_flight: 0,
    scored: 0,
    unscored: {},
    failed: {},
    cancelled: {},
  };
}

const NOTHING_FINISHED: RunReport = {
  reward: {
    mean: null,
    se: null,
    ci95: null,
    wilson95: null,
    range: null,
    n_tasks: 0,
    n_rollouts: 0,
    n_unscored: 0,
    n_error: 0,
    n_truncated: 0,
  },
  metrics: {},
  pass_at_k: {},
  pass_hat_k: {},
  pass_k: {},
  stop_conditions: {},
  turns: 0,
  usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  calls: 0,
};
