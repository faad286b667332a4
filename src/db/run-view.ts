/** A run as the projection knows it, in the shape of the wire. Its object knows more while it runs. */
import { costOfUsage } from "../contract/judgement.ts";
import type { RunReport } from "../contract/report.ts";
import type { RunCounts, RunView } from "../contract/run.ts";
import { plannedAtFirst, type RunSpec } from "../contract/run-spec.ts";
import type { RunRecord } from "./runs.ts";
import type { RunRow } from "./schema.ts";

export function runViewOf({ run, endpoint }: RunRecord): RunView {
  const { id, kind, name, status, error, metadata, dead_letters, spec } = run;
  // Member by member: what else a caller's record holds, sealed keys above all, is not for the wire.
  const { environment, environment_args, model, sampling, num_examples, rollouts_per_example } = spec;
  const { max_concurrent, limits, min_scored, shuffle, seed, fork, rescore } = spec;
  const shown = { id: endpoint.id, name: endpoint.name, base_url: endpoint.base_url };
  const report = run.report ?? NOTHING_FINISHED;
  return {
    object: "run",
    ...{ id, kind, name, status, error, metadata, dead_letters },
    ...{ environment, environment_args, model, sampling, num_examples, rollouts_per_example },
    ...{ max_concurrent, limits, min_scored, shuffle, seed },
    flow: run.finished_at === null ? flowOf(run) : null,
    endpoint: { ...shown, api_key_last4: endpoint.api_key_last4 },
    dataset: run.dataset_id,
    judges: judgesOf(spec),
    counts: run.counts ?? nothingDispatched(spec),
    report,
    cost: costOfUsage(report.usage),
    forked_from: fork === undefined ? null : { rollout_id: fork.rollout_id, turn: fork.turn },
    rescored_from: rescore?.run_id ?? null,
    // Its object alone knows.
    training: null,
    created_at: Math.floor(run.created_at / 1000),
    finished_at: run.finished_at === null ? null : Math.floor(run.finished_at / 1000),
  };
}

/** What a list knows of why a run waits; its object knows more. */
function flowOf({ status }: RunRow): RunView["flow"] {
  return status === "paused" ? { state: "paused", reason: "user" } : { state: "active", reason: null };
}

function judgesOf({ judges = {} }: RunSpec): RunView["judges"] {
  const named = Object.entries(judges);
  return Object.fromEntries(named.map(([name, { endpoint_id, model }]) => [name, { endpoint: endpoint_id, model }]));
}

function nothingDispatched(spec: RunSpec): RunCounts {
  const planned = plannedAtFirst(spec);
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
