/**
 * Starts a resolved run: stores what it needs, then its row, then creates its object.
 *
 * Order: rows to R2 → reserve the charges of its first rollouts → its entry in the index of runs → run and endpoint to
 * D1 in one batch → the run's object. If the process is killed in between, it leaves rows or an entry in R2 that no run
 * names, or a queued run whose object is created by the next read or by a repeat of the key.
 */

import type { CreatedRun } from "../../contract/run.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { RunDataset } from "../../contract/uploaded-dataset.ts";
import { mintRunId } from "../../core/ids.ts";
import { rowsText } from "../dataset/datasets.ts";
import { databaseOf } from "../db/database.ts";
import { deleteRowsOfRun } from "../db/deleted-rows.ts";
import { findRunByIdempotencyKey, insertRun, type NewRun, runViewOf } from "../db/runs.ts";
import { type CreateOptions, isSameRequest } from "../kit/idempotency.ts";
import { datasetKey, runFolder, runObject } from "../kit/names.ts";
import { minting, sha256Hex } from "../kit/secrets.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { keyReused, projectGone, type Result } from "../messages/refusal.ts";
import { charges } from "../run/charges.ts";
import { issueTrainer } from "./issue-token.ts";
import { refusedStorage, tooManyRuns } from "./limits.ts";
import { noteProject } from "./note-project.ts";
import { refuseTaken, repliesWhole } from "./resolve/endpoint.ts";
import type { RunRows } from "./resolve/play.ts";
import type { ResolvedRun } from "./resolve/resolve-run.ts";
import { deleteIndexEntry, writeIndexEntry } from "./run-index.ts";

/** The name of a run, and the run or rollout that it is derived from. */
export interface Naming extends Pick<NewRun, "name" | "metadata"> {
  /** What it takes from the run or rollout that it is derived from; stored in the run's own folder if needed. */
  readonly comesOf?: (runId: string, subrequests: Subrequests) => Promise<Pick<RunSpec, "fork" | "rescore">>;
  /** Another run starts it, so the limit on runs does not apply to it, and it waits for money as that run does. */
  readonly byRun?: boolean;
}

/** A trainer's token and secret are shown once: a repeated request does not get them again. */
export type Begun = Result<{ readonly run: CreatedRun; readonly replayed: boolean }>;

export async function beginRun(
  env: Env,
  scope: Scope,
  resolved: ResolvedRun,
  naming: Naming,
  options: CreateOptions,
): Promise<Begun> {
  const { play, endpoint, standing, training } = resolved;
  const full = refusedStorage(standing);
  if (full !== null) return full;
  const subrequests = new Subrequests();
  const runId = mintRunId(minting(env, options.now));
  const dataset = await storeRows(env, scope, runId, play.rows, subrequests);
  const parent = (await naming.comesOf?.(runId, subrequests)) ?? {};
  const issued =
    training && (await issueTrainer(env, scope, runId, training.trainer, options.origin ?? "", options.now));
  const { kept: trainer, sealed_push_secret = null } = issued ?? {};
  const spec = { ...specOf(scope, runId, resolved, options), dataset, ...parent, ...(trainer && { trainer }) };
  const base = { name: naming.name, metadata: naming.metadata, dataset_id: play.rows.id, spec };
  const run = { ...newRun(base, {}, options), sealed_push_secret };
  const refused = await insertPaid(env, scope, { resolved, run, byRun: naming.byRun === true }, subrequests);
  if (refused === "conflict") return (await replayedRun(env, scope, options)) ?? keyReused();
  if (refused !== null) return refused;
  const object = runObject(env, scope, runId, run.spec.fleet);
  await subrequests.object(() => object.create(run.spec));
  await subrequests.object(() => noteProject(env, scope, options.now));
  const of = { ...run, org_id: scope.orgId, project_id: scope.projectId };
  const view = runViewOf({ run: of, ...endpoint.shown });
  if (issued === null) return { ok: true, value: { run: view, replayed: false } };
  const live = await subrequests.object(() => object.view());
  const shown = { ...view, training: live?.training ?? null, trainer: issued.secrets };
  return { ok: true, value: { run: shown, replayed: false } };
}

/**
 * Reserves the charges of the first rollouts, then writes the run's entry in the index, then its row and the endpoints
 * that came with it. Null: it is stored. `conflict`: another request with the same key was faster, and its run counts.
 */
async function insertPaid(
  env: Env,
  scope: Scope,
  { resolved, run, byRun }: { readonly resolved: ResolvedRun; readonly run: NewRun; readonly byRun: boolean },
  subrequests: Subrequests,
): Promise<Result<never> | "conflict" | null> {
  const { standing, endpoint, judges } = resolved;
  const unpaid = byRun ? null : await charges().reserveFirst(env, run.spec, subrequests);
  const limits = { most: byRun ? null : standing.limits.runs_in_flight, alone: fleetAlone(resolved) };
  const insert = async () => {
    const endpoints = endpoint.inline === null ? judges.inline : [endpoint.inline, ...judges.inline];
    await subrequests.fetch(() => writeIndexEntry(env, scope, { run, endpoints }));
    return await subrequests.fetch(() =>
      insertRun(databaseOf(env), scope, run, endpoint.inline, judges.inline, limits),
    );
  };
  const inserted = unpaid === null ? await insert() : "unpaid";
  if (inserted === "inserted") return null;
  await forsake(env, scope, run.spec, subrequests);
  if (inserted === "full") return tooManyRuns(standing.limits);
  if (inserted === "gone") return projectGone();
  if (inserted === "taken") return await refuseTaken(env, scope, run.endpoint_id);
  return inserted === "conflict" ? inserted : unpaid;
}

/** The run that a repeated Idempotency-Key created; null if the key is new or absent. */
export async function replayedRun(env: Env, scope: Scope, options: CreateOptions): Promise<Begun | null> {
  const { idempotencyKey } = options;
  if (idempotencyKey === null) return null;
  const record = await findRunByIdempotencyKey(databaseOf(env), scope, idempotencyKey);
  if (record === null) return null;
  const { run } = record;
  if (!isSameRequest(run.request_hash, options)) return keyReused();
  if (run.status === "queued") {
    await runObject(env, scope, run.id, run.spec.fleet).create(run.spec);
  }
  const view = runViewOf(record);
  return { ok: true, value: { run: run.kind === "training" ? { ...view, trainer: null } : view, replayed: true } };
}

/** Stores rows that came with the request in the run's folder. */
async function storeRows(
  env: Env,
  scope: Scope,
  runId: string,
  { dataset, inline }: RunRows,
  subrequests: Subrequests,
): Promise<RunDataset> {
  if (inline === null) return dataset;
  const text = rowsText(inline);
  const key = datasetKey(scope, runId, sha256Hex(text));
  await subrequests.fetch(() => env.STORE.put(key, text));
  return { ...dataset, key };
}

function specOf(
  scope: Scope,
  run_id: string,
  { play, settings, endpoint, fleet, judges: { judges }, training, money }: ResolvedRun,
  { payer }: CreateOptions,
): Omit<RunSpec, "created_at" | "dataset"> {
  return {
    ...{ scope, run_id, ...settings, endpoint_id: endpoint.id, ...fleet },
    environment: play.pin,
    environment_args: play.args,
    ...(play.needs && { needs: play.needs }),
    num_examples: play.num_examples,
    whole_groups: training !== null || play.whole_groups,
    ...(play.max_reward !== null && { max_reward: play.max_reward }),
    ...(repliesWhole(endpoint) && { replies_whole: true }),
    ...(Object.keys(judges).length > 0 && { judges }),
    ...(training && { training }),
    // If no caller started the run, the run itself pays.
    money: { payer: payer ?? run_id, ...money },
  };
}

/** The name and spec of a run, before the changes of `newRun`. */
type RunBase = Pick<NewRun, "name" | "metadata" | "dataset_id"> & { readonly spec: Omit<RunSpec, "created_at"> };

/**
 * The row of a run that starts now. `changes`: differences from the base spec. The other columns are derived from the
 * spec.
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
    ...{
      counts: null,
      report: null,
      error: null,
      created_at: now,
      finished_at: null,
      written_at: null,
      dead_letters: 0,
    },
    ...{ stored_bytes: 0, deleted_at: null, sealed_push_secret: null },
  };
}

/** The fleet that no other training run may use meanwhile; null if there is none. */
function fleetAlone({ training, endpoint: { place } }: ResolvedRun): string | null {
  if (training === null || place?.kind !== "fleet" || place.shares_weights) return null;
  return place.id;
}

/** Deletes what was reserved and stored for a run that was not created. No later cleanup would find it. */
async function forsake(env: Env, scope: Scope, spec: RunSpec, subrequests: Subrequests): Promise<void> {
  await charges().releaseFirst(env, spec, subrequests);
  const prefix = runFolder(scope, spec.run_id);
  const { objects } = await subrequests.fetch(() => env.STORE.list({ prefix }));
  if (objects.length > 0) await subrequests.fetch(() => env.STORE.delete(objects.map(({ key }) => key)));
  await subrequests.fetch(() => deleteIndexEntry(env, scope, spec.run_id));
  await subrequests.fetch(() => deleteRowsOfRun(databaseOf(env), scope, spec.run_id));
}
