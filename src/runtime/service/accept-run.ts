/**
 * Accepts a run: everything that can be wrong with it is said here, before anything is stored.
 *
 * Order: check → rows to R2 → run and endpoint to D1 in one batch → the run's object. A kill in between leaves rows that
 * no run names, or a queued run whose object the next read (or a repeat of the key) creates.
 */

import type { EvalRequest } from "../../contract/eval-request.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { ResolvedJudges } from "../../contract/judgement.ts";
import type { CreatedRun, RunRequest, RunView } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import { asEval, type StoredTrainer, type TrainingSpec, trainingSpecOf } from "../../contract/training-request.ts";
import type { RunDataset } from "../../contract/uploaded-dataset.ts";
import { mintRunId } from "../../core/ids.ts";

import { findRunByIdempotencyKey, insertRun, type NewRun, numExamplesOf, runViewOf } from "../../db/runs.ts";
import { keyReused, type Result } from "../contract/refusal.ts";
import type { JudgeTarget, RunSpec } from "../contract/wire.ts";
import { rowsText } from "../dataset/datasets.ts";
import type { ResolvedDataset } from "../dataset/resolve.ts";
import type { CreateOptions } from "../kit/idempotency.ts";

import { datasetKey, runObject } from "../kit/names.ts";
import { minting, sha256Hex } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Checked, checkRun, isInline } from "./check-run.ts";
import { refuseEngine, refuseTraining } from "./check-training.ts";
import { issueTrainer } from "./issue-token.ts";

import { type RunEndpoint, type RunJudges, resolveEndpoint, resolveJudges } from "./run-endpoint.ts";

/** A request with every name in it resolved, and nothing left to refuse. */
interface Acceptable {
  readonly checked: Checked;
  readonly endpoint: RunEndpoint;
  readonly request: Omit<EvalRequest, "judges"> & { readonly judges: ResolvedJudges };
  readonly training: TrainingSpec | null;
  /** Endpoints that came with its judges. */
  readonly benches: RunJudges["inline"];
}

export interface AcceptOptions extends CreateOptions {
  /** The run was begun by another one: endpoints that came with that one may be named by their ids. */
  readonly byRun?: boolean;
  /** The rows of the run that began it, where it plays those. */
  readonly rows?: ResolvedDataset;
}

export async function acceptRun(
  env: Env,
  scope: Scope,
  asked: RunRequest,
  options: AcceptOptions,
): Promise<Result<Accepted>> {
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return withoutSecrets(repeated);
  const acceptable = await resolve(env, scope, asked, options);
  if (!acceptable.ok) return acceptable;
  const { checked, endpoint, benches, training } = acceptable.value;
  const subrequests = new Subrequests();
  const runId = mintRunId(minting(env, options.now));
  const dataset = await storeRows(env, scope, runId, checked, subrequests);
  const issued =
    training && (await issueTrainer(env, scope, runId, training.trainer, options.origin ?? "", options.now));
  const spec = specOf(scope, runId, acceptable.value, dataset, options.now);
  const row = rowOf(spec, acceptable.value, issued?.kept ?? null, options);
  const begun = await beginRun(env, scope, { run: row, endpoint, benches }, options, subrequests);
  if (issued === null || !begun.ok || begun.value.replayed) return withoutSecrets(begun);
  const live = await subrequests.object(() => runObject(env, scope, runId).view());
  const run = { ...begun.value.run, training: live?.training ?? null, trainer: issued.secrets };
  return { ok: true, value: { run, replayed: false } };
}

interface Accepted {
  readonly run: CreatedRun;
  readonly replayed: boolean;
}

/** A trainer's token and secret are shown once: whoever asks again learns that there are some. */
function withoutSecrets(result: Result<{ run: RunView; replayed: boolean }>): Result<Accepted> {
  if (!result.ok || result.value.run.kind !== "training") return result;
  const { run, replayed } = result.value;
  return { ok: true, value: { run: { ...run, trainer: null }, replayed } };
}

export interface Beginning {
  readonly run: NewRun;
  readonly endpoint: Pick<RunEndpoint, "shown" | "inline">;
  readonly benches?: RunJudges["inline"];
}

/** The run's row and the endpoints that came with it, then its object. */
export async function beginRun(
  env: Env,
  scope: Scope,
  { run, endpoint, benches = [] }: Beginning,
  options: AcceptOptions,
  subrequests: Subrequests,
): Promise<Result<{ run: RunView; replayed: boolean }>> {
  const inserted = await subrequests.fetch(() => insertRun(env.DB, scope, run, endpoint.inline, benches));
  // Another request with the same key was faster: its run is the one.
  if (inserted === "conflict") {
    return (await replayedRun(env, scope, options)) ?? keyReused();
  }
  await subrequests.object(() => runObject(env, scope, run.id).create(specOfRow(scope, run)));
  const view = runViewOf({
    run: { ...run, org_id: scope.orgId, project_id: scope.projectId },
    endpoint: endpoint.shown,
  });
  return { ok: true, value: { run: view, replayed: false } };
}

async function resolve(
  env: Env,
  scope: Scope,
  asked: RunRequest,
  { now, byRun, rows }: AcceptOptions,
): Promise<Result<Acceptable>> {
  const request = asked.kind === "training" ? asEval(asked) : asked;
  const isTraining = asked.kind === "training";
  const checked = await checkRun(env, scope, request, { training: isTraining, rows });
  if (!checked.ok) return checked;
  const { players } = checked.value.environment;
  const training = asked.kind === "training" ? trainingSpecOf(asked, players) : null;
  const endpoint = await resolveEndpoint(env, scope, request.endpoint, now, byRun);
  if (!endpoint.ok) return endpoint;
  if (training !== null) {
    const unfit = await refuseTraining(env, request, training, checked.value);
    if (unfit !== null) return unfit;
    const inexact = await refuseEngine(env, scope, request, endpoint.value, now);
    if (inexact !== null) return inexact;
  }
  const judges = await resolveJudges(env, scope, request.judges, now, byRun);
  if (!judges.ok) return judges;
  const most = endpoint.value.max_concurrent ?? request.max_concurrent;
  const max_concurrent = Math.min(request.max_concurrent, most);
  const resolved = { ...request, judges: judges.value.judges, max_concurrent };
  const benches = judges.value.inline;
  return {
    ok: true,
    value: {
      checked: checked.value,
      endpoint: endpoint.value,
      request: resolved,
      training,
      benches,
    },
  };
}

/** What the run's object is created with, from its row: for a run whose creation was cut short. */
export function specOfRow(scope: Scope, run: NewRun): RunSpec {
  const { request } = run;
  return {
    scope,
    run_id: run.id,
    environment: {
      id: run.environment_id,
      version: run.environment_version,
      digest: run.environment_digest,
    },
    environment_args: request.environment_args as JsonObject,
    dataset: request.resolved.dataset,
    model: run.model,
    endpoint_id: run.endpoint_id,
    sampling: request.sampling,
    limits: request.limits,
    seed: request.seed,
    shuffle: request.shuffle,
    num_examples: numExamplesOf(run),
    rollouts_per_example: request.rollouts_per_example,
    max_concurrent: request.max_concurrent,
    min_scored: request.min_scored,
    whole_groups: request.resolved.whole_groups,
    created_at: run.created_at,
    ...judgesOf(request),
    ...(request.resolved.fork && { fork: request.resolved.fork }),
    ...(request.resolved.rescore && { rescore: request.resolved.rescore }),
    ...(request.resolved.training && { training: request.resolved.training }),
    ...(request.resolved.trainer && { trainer: request.resolved.trainer }),
  };
}

/** The run a repeated Idempotency-Key made before; null for a new key, or none. */
export async function replayedRun(
  env: Env,
  scope: Scope,
  { idempotencyKey, requestHash }: CreateOptions,
): Promise<Result<{ run: RunView; replayed: boolean }> | null> {
  if (idempotencyKey === null) return null;
  const record = await findRunByIdempotencyKey(env.DB, scope, idempotencyKey);
  if (record === null) return null;
  if (record.run.request_hash !== requestHash) return keyReused();
  const { run } = record;
  if (run.status === "queued") {
    await runObject(env, scope, run.id).create(specOfRow(scope, run));
  }
  return { ok: true, value: { run: runViewOf(record), replayed: true } };
}

async function storeRows(
  env: Env,
  scope: Scope,
  runId: string,
  { kind, given, length }: Checked,
  subrequests: Subrequests,
): Promise<RunDataset> {
  if (given === null) return { kind, key: null, length };
  if (!isInline(given)) return given.dataset;
  const text = rowsText(given);
  const key = datasetKey(scope, runId, sha256Hex(text));
  await subrequests.fetch(() => env.STORE.put(key, text));
  return { kind, key, length };
}

function specOf(
  scope: Scope,
  run_id: string,
  { request, checked, endpoint, training }: Acceptable,
  dataset: RunDataset,
  created_at: number,
): RunSpec {
  const { pin, environment, num_examples } = checked;
  const { model, sampling, limits, seed, shuffle, rollouts_per_example } = request;
  return {
    scope,
    run_id,
    environment: pin,
    // It came through JSON.parse, so it is JSON.
    environment_args: request.environment_args as JsonObject,
    dataset,
    model,
    endpoint_id: endpoint.shown.id,
    sampling,
    limits,
    seed,
    shuffle,
    num_examples,
    rollouts_per_example,
    max_concurrent: request.max_concurrent,
    min_scored: request.min_scored,
    whole_groups: training !== null || environment.rubric.hasGroupFunctions,
    created_at,
    ...judgesOf(request),
    ...(training && { training }),
  };
}

/** The judges a run asks, if any; a run accepted before there was a cache asks as if there were one. */
function judgesOf({
  judges = {},
  judge_cache = true,
}: Pick<NewRun["request"], "judges" | "judge_cache">): Pick<RunSpec, "judges" | "judge_cache"> {
  const named = Object.entries(judges);
  if (named.length === 0) return {};
  const targets = named.map(([name, { endpoint, ...target }]): [string, JudgeTarget] => {
    return [name, { endpoint_id: endpoint, ...target }];
  });
  return { judges: Object.fromEntries(targets), judge_cache };
}

function rowOf(
  spec: RunSpec,
  { request, checked, training }: Acceptable,
  trainer: StoredTrainer | null,
  options: AcceptOptions,
): NewRun {
  const { dataset: _rows, endpoint: _key, ...kept } = request;
  const { dataset, whole_groups, environment, num_examples } = spec;
  const kind = training === null ? "eval" : "training";
  return {
    id: spec.run_id,
    kind,
    name: request.name ?? null,
    status: "queued",
    environment_id: environment.id,
    environment_version: environment.version,
    environment_digest: environment.digest,
    model: request.model,
    endpoint_id: spec.endpoint_id,
    request: {
      ...{ ...kept, kind, ...(training && { num_examples }) },
      resolved: {
        ...{ dataset, whole_groups },
        ...(training && { training }),
        ...(trainer && { trainer }),
      },
    },
    dataset_key: dataset.key,
    // A training run plans its groups one by one.
    planned: training === null ? num_examples * spec.rollouts_per_example : 0,
    idempotency_key: options.idempotencyKey,
    request_hash: options.requestHash,
    counts: null,
    report: null,
    error: null,
    metadata: request.metadata,
    created_at: options.now,
    finished_at: null,
    dataset_id: checked.given === null || isInline(checked.given) ? null : checked.given.id,
    dead_letters: 0,
  };
}
