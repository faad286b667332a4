/**
 * Names of objects and keys of R2. Every one begins with its organisation and project. Content is shared by its hash only
 * inside one run.
 */
import type { RunFleet } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { AccountRpc } from "../messages/account-wire.ts";
import type {
  CallOf,
  GatheredName,
  GatheredRpc,
  GatheredRun,
  GathererRpc,
  GatheringRpc,
} from "../messages/gathered.ts";
import type { EndpointRpc, Owner, RolloutRpc, RunRpc } from "../messages/rpc.ts";
import type { TrainerRpc } from "../messages/training-wire.ts";

/** Where to place an object when it is named for the first time. Later calls find it where it is. */
type Near = RunFleet | undefined;

function placed(near: Near): DurableObjectNamespaceGetDurableObjectOptions {
  const { location_hint: locationHint } = near ?? {};
  return locationHint === undefined ? {} : { locationHint };
}

/** `near`: for a caller that may be the first to name the object. */
export function runObject(env: Env, scope: Scope, runId: string, near?: Near): RunRpc & GatheringRpc {
  const stub: unknown = env.RUN.getByName(`${folderOf(scope)}${runId}`, placed(near));
  return stub as RunRpc & GatheringRpc;
}

/** One of the run's gatherers, numbered from 0. */
export function gathererObject(env: Env, scope: Scope, runId: string, gatherer: number): GathererRpc {
  const stub: unknown = env.GATHERER.getByName(`${folderOf(scope)}${runId}/${gatherer}`);
  return stub as GathererRpc;
}

/**
 * The run's object, for calls that are made once or more for each rollout. They go through one of its `gatherers`, if it
 * has any: all calls with the same `number` through the same one.
 */
export function runOrGatherer(env: Env, run: GatheredRun, gatherers: number | undefined, number: number): GatheredRpc {
  const { scope, run_id } = run;
  if (gatherers === undefined || gatherers < 1) return runObject(env, scope, run_id);
  const address = { scope, run_id };
  const send = <Name extends GatheredName>(call: CallOf<Name>) =>
    gathererObject(env, scope, run_id, number % gatherers).gather<Name>(address, call);
  return {
    admit: (...args) => send<"admit">({ method: "admit", args }),
    answered: (...args) => send<"answered">({ method: "answered", args }),
    allow: (...args) => send<"allow">({ method: "allow", args }),
    scoringGroupsToScore: (...args) => send<"scoringGroupsToScore">({ method: "scoringGroupsToScore", args }),
    scored: (...args) => send<"scored">({ method: "scored", args }),
    requestJudgements: (...args) => send<"requestJudgements">({ method: "requestJudgements", args }),
    takeJudging: (...args) => send<"takeJudging">({ method: "takeJudging", args }),
    judged: (...args) => send<"judged">({ method: "judged", args }),
  };
}

/** The shard with the number `host`: an object that plays rollouts of the run. */
export function rolloutShard(env: Env, scope: Scope, runId: string, shard: number, near?: Near): RolloutRpc {
  const stub: unknown = env.ROLLOUT.getByName(shardName(scope, runId, shard), placed(near));
  return stub as RolloutRpc;
}

export function shardName(scope: Scope, runId: string, shard: number): string {
  return `${folderOf(scope)}${runId}/${shard}`;
}

export function endpointObject(env: Env, scope: Scope, endpointId: string): EndpointRpc {
  const stub: unknown = env.ENDPOINT.getByName(`${folderOf(scope)}${endpointId}`);
  return stub as EndpointRpc;
}

/** The object that has an organisation's limits and leases. */
export function accountObject(env: Env, orgId: string): AccountRpc {
  const stub: unknown = env.ACCOUNT.getByName(`org/${orgId}`);
  return stub as AccountRpc;
}

/** The object that delivers batches to the trainer of a training run and receives its weight versions. */
export function trainerObject(env: Env, scope: Scope, runId: string, near?: Near): TrainerRpc {
  const stub: unknown = env.TRAINER.getByName(`${folderOf(scope)}${runId}`, placed(near));
  return stub as TrainerRpc;
}

/** Whether a run's `endpoint_id` is the id of a fleet. */
export function isFleet(endpointId: string): boolean {
  return endpointId.startsWith("fl_");
}

/** Name of the object of a whole project, or of a whole organisation. */
export function ownerName({ orgId, projectId }: Owner): string {
  return projectId === null ? `org/${orgId}` : `org/${orgId}/${projectId}`;
}

/** Prefix of all keys of an owner in R2. */
export function ownerFolder(owner: Owner): string {
  return `${ownerName(owner)}/`;
}

/** Prefix of all keys of a project in R2. */
export function folderOf({ orgId, projectId }: Scope): string {
  return `org/${orgId}/${projectId}/`;
}

/** Prefix of all keys of a run in R2. */
export function runFolder(scope: Scope, runId: string): string {
  return `${folderOf(scope)}runs/${runId}/`;
}

/** The name of the folder of a project in R2 that has one entry for each run. */
export const RUN_INDEX = "run-index";

/** The entry of a run in its project's index of runs. It is outside of the run's folder, so that a listing has entries only. */
export function runIndexKey(scope: Scope, runId: string): string {
  return `${folderOf(scope)}${RUN_INDEX}/${runId}.json`;
}

/** A file of archived ledger entries. `month`: the month of the first entry. Keys sort by entry number. */
export function ledgerFileKey(
  orgId: string,
  {
    month,
    first_entry,
    last_entry,
  }: { readonly month: string; readonly first_entry: number; readonly last_entry: number },
): string {
  const padded = (number: number) => String(number).padStart(12, "0");
  return `org/${orgId}/ledger/${month}/${padded(first_entry)}-${padded(last_entry)}.ndjson`;
}

export function datasetKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}dataset/${sha256}.jsonl`;
}

/** The file of an uploaded dataset, as it was sent, and its index. */
export function uploadKeys(scope: Scope, datasetId: string): { key: string; index_key: string } {
  const folder = `${folderOf(scope)}datasets/${datasetId}`;
  return { key: `${folder}/rows.jsonl`, index_key: `${folder}/rows.index` };
}

/** Prefix of the parts of an upload that is not finished. */
export function partsFolder(scope: Scope, uploadId: string): string {
  return `${folderOf(scope)}uploads/${uploadId}/`;
}

/** A part of an upload, from 1. Keys sort by number. */
export function partKey(scope: Scope, uploadId: string, number: number): string {
  return `${partsFolder(scope, uploadId)}${String(number).padStart(3, "0")}`;
}

/** Prefix of the answers of a project's models that may be used again. */
export function answersFolder(scope: Scope): string {
  return `${folderOf(scope)}answers/`;
}

/** An answer, by the period in which it came and the hash of its call. */
export function answerKey(scope: Scope, period: number, sha256: string): string {
  return `${answersFolder(scope)}${period}/${sha256}.json`;
}

export function trajectoryKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}trajectories/${sha256}.json`;
}

/** The rollouts that a forked run starts with. */
export function forkKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}fork/${sha256}.json`;
}

export function segmentKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}segments/${sha256}.jsonl`;
}

/** The training samples of a group: gzipped rows. Holds whole groups only and is never written again. */
export function sampleKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}samples/${sha256}`;
}

/** The reference logprobs of a row: float32, one per token. `name`: of the row's ids. */
export function referenceKey(scope: Scope, runId: string, name: string): string {
  return `${runFolder(scope, runId)}references/${name}`;
}

/** The files of a batch: the list of its samples, and the credit of each. */
export function batchKeys(scope: Scope, runId: string, batchId: string): { manifest_key: string; credits_key: string } {
  const folder = `${runFolder(scope, runId)}batches/${batchId}`;
  return { manifest_key: `${folder}/manifest.json`, credits_key: `${folder}/credits.jsonl` };
}
