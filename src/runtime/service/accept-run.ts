/**
 * Accepts a run: everything that can be wrong with it is said here, before anything is stored.
 *
 * Order: check → rows to R2 → what its first rollouts are charged reserved → run and endpoint to D1 in one batch → the run's object. A kill in between leaves rows that
 * no run names, or a queued run whose object the next read (or a repeat of the key) creates.
 */

import type { EvalRequest } from "../../contract/eval-request.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { CreatedRun, RunRequest, RunView } from "../../contract/run.ts";
import type { RunMoney, RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import { asEval, type TrainingSpec, trainingSpecOf } from "../../contract/training-request.ts";
import type { RunDataset } from "../../contract/uploaded-dataset.ts";
import { mintRunId } from "../../core/ids.ts";
import { deleteRowsOfRun } from "../../db/deleted-rows.ts";
import { findRunByIdempotencyKey, insertRun, type NewRun, runViewOf } from "../../db/runs.ts";
import { keyReused, projectGone, type Result } from "../contract/refusal.ts";
import { rowsText } from "../dataset/datasets.ts";
import type { ResolvedDataset } from "../dataset/resolve.ts";
import { type CreateOptions, isSameRequest } from "../kit/idempotency.ts";
import { datasetKey, runFolder, runObject } from "../kit/names.ts";
import { minting, sha256Hex } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { refuseCap } from "./check-cap.ts";
import { type Checked, checkRun, isInline } from "./check-run.ts";
import { refuseEngine, refuseTraining } from "./check-training.ts";
import { issueTrainer } from "./issue-token.ts";
import { limitsOf, refusedStorage, tooManyRuns } from "./limits.ts";
import { noteProject } from "./note-project.ts";
import {
  fleetOf,
  type PlayedWeights,
  pricedAt,
  type RunEndpoint,
  type RunJudges,
  refuseTaken,
  resolveJudges,
  resolvePlace,
} from "./run-endpoint.ts";
import { moneyOf, releaseFirst, reserveFirst } from "./run-money.ts";

/** A request with every name in it resolved, and nothing left to refuse. */
interface Acceptable {
  readonly request: EvalRequest;
  readonly checked: Checked;
  readonly endpoint: RunEndpoint;
  readonly judges: RunJudges;
  readonly training: TrainingSpec | null;
}

export interface AcceptOptions extends CreateOptions {
  /** The run was begun by another one: endpoints that came with that one may be named by their ids. */
  readonly byRun?: boolean;
  /** The rows of the run that began it, where it plays those. */
  readonly rows?: ResolvedDataset;
  /** The training run whose weights it plays, on the fleet of that run. */
  readonly weights?: PlayedWeights;
}

export async function acceptRun(
  env: Env,
  scope: Scope,
  asked: RunRequest,
  options: AcceptOptions,
): Promise<Result<Accepted>> {
  const repeated = await replayedRun(env, scope, options);
  if (repeated !== null) return withoutSecrets(repeated);
  const acceptable = await resolveRun(env, scope, asked, options);
  if (!acceptable.ok) return acceptable;
  const { request, checked, endpoint, judges, training } = acceptable.value;
  const subrequests = new Subrequests();
  const runId = mintRunId(minting(env, options.now));
  const full = refusedStorage(await subrequests.fetch(() => limitsOf(env, scope.orgId, options.now)));
  if (full !== null) return full;
  const policy = pricedAt(endpoint, request.model);
  const money = await moneyOf(
    env,
    scope,
    { policy, judges: judges.places },
    { ...options, payer: payerOf(options, runId) },
  );
  const called = { environment: checked.environment, endpoint, judges: judges.judges, prices: money.prices };
  const uncapped = refuseCap(request, called);
  if (uncapped !== null) return uncapped;
  const dataset = await storeRows(env, scope, runId, checked, subrequests);
  const issued =
    training && (await issueTrainer(env, scope, runId, training.trainer, options.origin ?? "", options.now));
  const base = {
    name: request.name ?? null,
    metadata: request.metadata,
    dataset_id: checked.given === null || isInline(checked.given) ? null : checked.given.id,
    spec: { ...specOf(scope, runId, acceptable.value, dataset, options), money: cappedBy(money, request) },
  };
  const { kept = null, sealed_push_secret = null } = issued ?? {};
  const run = { ...newRun(base, kept === null ? {} : { trainer: kept }, options), sealed_push_secret };
  const begun = await beginRun(env, scope, { run, endpoint, benches: judges.inline }, options, subrequests);
  if (issued === null || !begun.ok || begun.value.replayed) return withoutSecrets(begun);
  const live = await subrequests.object(() => runObject(env, scope, runId).view());
  const shown = { ...begun.value.run, training: live?.training ?? null, trainer: issued.secrets };
  return { ok: true, value: { run: shown, replayed: false } };
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

/** Who began a run: of one that nobody called for, the run itself. */
export function payerOf({ payer }: CreateOptions, runId: string): string {
  return payer ?? runId;
}

/** What a run is called and asked to do. */
type RunBase = Pick<NewRun, "name" | "metadata" | "dataset_id"> & { readonly spec: Omit<RunSpec, "created_at"> };

/**
 * The row of a run that begins now, whatever made it. `base`: as it was asked for, or a run that it comes of; `changes`:
 * what is different. Columns beside the spec follow from it.
 */
export function newRun(
  base: RunBase,
  changes: Partial<RunSpec>,
  { now, idempotencyKey, requestHash, origin }: CreateOptions,
): NewRun {
  const spec: RunSpec = { ...base.spec, ...changes, created_at: now, ...(origin !== undefined && { origin }) };
  return {
    ...{ name: base.name, metadata: base.metadata, dataset_id: base.dataset_id, spec },
    id: spec.run_id,
    kind: spec.training === undefined ? "eval" : "training",
    status: "queued",
    environment_id: spec.environment.id,
    environment_version: spec.environment.version,
    endpoint_id: spec.endpoint_id,
    ...{ idempotency_key: idempotencyKey, request_hash: requestHash },
    ...{ counts: null, report: null, error: null, created_at: now, finished_at: null, dead_letters: 0 },
    ...{ stored_bytes: 0, deleted_at: null, sealed_push_secret: null },
  };
}

/** What a run was asked, without what made it one of a kind: what another run begins from. */
export function plainSpec({ money, ...asked }: RunSpec): RunSpec {
  const { fork: _, rescore: __, training: ___, trainer: ____, fleet: _____, ...spec } = asked;
  if (money === undefined) return spec;
  // A cap is of the run that it was asked for.
  const { max_cost_micros: ______, ...kept } = money;
  return { ...spec, money: kept };
}

export interface Beginning {
  readonly run: NewRun;
  readonly endpoint: Pick<RunEndpoint, "shown" | "inline"> & Partial<Pick<RunEndpoint, "place">>;
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
  const standing = await subrequests.fetch(() => limitsOf(env, scope.orgId, options.now));
  const full = refusedStorage(standing);
  // Evals go with the training run that begins them.
  const byRun = options.byRun === true;
  const limits = { most: byRun ? null : standing.limits.runs_in_flight, alone: fleetAlone(run, endpoint.place) };
  // One that goes with another waits for its money as that one does.
  const refused = full ?? (byRun ? null : await reserveFirst(env, run.spec, subrequests));
  const inserted =
    refused === null
      ? await subrequests.fetch(() => insertRun(env.DB, scope, run, endpoint.inline, benches, limits))
      : "full";
  if (inserted !== "inserted") await forsake(env, scope, run.spec, subrequests);
  if (refused !== null) return refused;
  if (inserted === "full") return tooManyRuns(standing.limits);
  if (inserted === "gone") return projectGone();
  if (inserted === "taken") return await refuseTaken(env, scope, run.endpoint_id);
  // Another request with the same key was faster: its run is the one.
  if (inserted === "conflict") {
    return (await replayedRun(env, scope, options)) ?? keyReused();
  }
  await subrequests.object(() => runObject(env, scope, run.id, run.spec.fleet).create(run.spec));
  await subrequests.object(() => noteProject(env, scope, options.now));
  const view = runViewOf({
    run: { ...run, org_id: scope.orgId, project_id: scope.projectId },
    ...endpoint.shown,
  });
  return { ok: true, value: { run: view, replayed: false } };
}

/** The fleet that a run must have for itself, among those that train; null where it needs none. */
function fleetAlone({ kind }: NewRun, place: RunEndpoint["place"] | undefined): string | null {
  if (kind !== "training" || place?.kind !== "fleet" || place.shares_weights) return null;
  return place.id;
}

/** What was stored for a run that is not to be: nothing names it, so nobody else would ever take it away. */
async function forsake(env: Env, scope: Scope, spec: RunSpec, subrequests: Subrequests): Promise<void> {
  const { run_id: runId } = spec;
  await releaseFirst(env, spec, subrequests);
  const prefix = runFolder(scope, runId);
  const { objects } = await subrequests.fetch(() => env.STORE.list({ prefix }));
  if (objects.length > 0) await subrequests.fetch(() => env.STORE.delete(objects.map(({ key }) => key)));
  await subrequests.fetch(() => deleteRowsOfRun(env.DB, scope, runId));
}

/** Everything that may be wrong with it is said here, and nothing is stored. */
export async function resolveRun(
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
  const endpoint = await resolvePlace(env, scope, request, now, byRun);
  if (!endpoint.ok) return endpoint;
  if (training !== null) {
    const unfit = await refuseTraining(env, scope, request, training, checked.value);
    if (unfit !== null) return unfit;
    const inexact = await refuseEngine(env, scope, request, training, endpoint.value, now);
    if (inexact !== null) return inexact;
  }
  const judges = await resolveJudges(env, scope, request.judges, now, byRun);
  if (!judges.ok) return judges;
  const most = endpoint.value.max_concurrent ?? request.max_concurrent;
  const max_concurrent = Math.min(request.max_concurrent, most);
  const resolved = { checked: checked.value, endpoint: endpoint.value, judges: judges.value, training };
  return { ok: true, value: { request: { ...request, max_concurrent }, ...resolved } };
}

/** The run a repeated Idempotency-Key made before; null for a new key, or none. */
export async function replayedRun(
  env: Env,
  scope: Scope,
  options: CreateOptions,
): Promise<Result<{ run: RunView; replayed: boolean }> | null> {
  const { idempotencyKey } = options;
  if (idempotencyKey === null) return null;
  const record = await findRunByIdempotencyKey(env.DB, scope, idempotencyKey);
  if (record === null) return null;
  if (!isSameRequest(record.run.request_hash, options)) return keyReused();
  const { run } = record;
  if (run.status === "queued") {
    await runObject(env, scope, run.id, run.spec.fleet).create(run.spec);
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
  { request, checked, endpoint, judges: { judges }, training }: Acceptable,
  dataset: RunDataset,
  { weights }: Pick<AcceptOptions, "weights">,
): Omit<RunSpec, "created_at"> {
  const { pin, environment, num_examples } = checked;
  const { model, sampling, limits, seed, shuffle, rollouts_per_example, max_concurrent, min_scored } = request;
  const initial = training?.initial_weights;
  return {
    ...{ scope, run_id, dataset, num_examples, judge_cache: request.judge_cache },
    ...{ model, sampling, limits, seed, shuffle, rollouts_per_example, max_concurrent, min_scored },
    environment: pin,
    // It came through JSON.parse, so it is JSON.
    environment_args: request.environment_args as JsonObject,
    endpoint_id: endpoint.id,
    ...fleetOf(endpoint, initial === undefined ? weights : { initial_weights: initial.location }),
    whole_groups: training !== null || environment.rubric.hasGroupFunctions,
    ...(Object.keys(judges).length > 0 && { judges }),
    ...(training && { training }),
  };
}

function cappedBy(money: RunMoney, { max_cost_micros }: EvalRequest): RunMoney {
  return max_cost_micros === undefined ? money : { ...money, max_cost_micros };
}
