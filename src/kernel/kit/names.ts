/**
 * Names of objects and keys of R2. Every one begins with its organisation and project; content is addressed inside a
 * run only.
 */
import type { RunFleet } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { AccountRpc } from "../messages/account-wire.ts";
import type { EndpointRpc, Owner, RolloutRpc, RunRpc } from "../messages/rpc.ts";
import type { TrainerRpc } from "../messages/training-wire.ts";

/** Where an object is to live that is named for the first time: whoever names it later finds it where it is. */
type Near = RunFleet | undefined;

function placed(near: Near): DurableObjectNamespaceGetDurableObjectOptions {
  const { location_hint: locationHint } = near ?? {};
  return locationHint === undefined ? {} : { locationHint };
}

/** `near`: for whoever may be the first to name it. */
export function runObject(env: Env, scope: Scope, runId: string, near?: Near): RunRpc {
  const stub: unknown = env.RUN.getByName(`${folderOf(scope)}${runId}`, placed(near));
  return stub as RunRpc;
}

/** The object that plays rollouts of a run, by its number among those of the run. */
export function rolloutHost(env: Env, scope: Scope, runId: string, host: number, near?: Near): RolloutRpc {
  const stub: unknown = env.ROLLOUT.getByName(hostName(scope, runId, host), placed(near));
  return stub as RolloutRpc;
}

export function hostName(scope: Scope, runId: string, host: number): string {
  return `${folderOf(scope)}${runId}/${host}`;
}

export function endpointObject(env: Env, scope: Scope, endpointId: string): EndpointRpc {
  const stub: unknown = env.ENDPOINT.getByName(`${folderOf(scope)}${endpointId}`);
  return stub as EndpointRpc;
}

/** What an organisation may have at once. */
export function accountObject(env: Env, orgId: string): AccountRpc {
  const stub: unknown = env.ACCOUNT.getByName(`org/${orgId}`);
  return stub as AccountRpc;
}

/** What is delivered to the trainer of a training run, and the weight versions that come back. */
export function trainerObject(env: Env, scope: Scope, runId: string, near?: Near): TrainerRpc {
  const stub: unknown = env.TRAINER.getByName(`${folderOf(scope)}${runId}`, placed(near));
  return stub as TrainerRpc;
}

/** Whether a run's `endpoint_id` is that of a fleet. */
export function isFleet(endpointId: string): boolean {
  return endpointId.startsWith("fl_");
}

/** What the name of an object of the whole owner is. */
export function ownerName({ orgId, projectId }: Owner): string {
  return projectId === null ? `org/${orgId}` : `org/${orgId}/${projectId}`;
}

/** What all keys of an owner in R2 begin with. */
export function ownerFolder(owner: Owner): string {
  return `${ownerName(owner)}/`;
}

/** What all keys of a project in R2 begin with. */
export function folderOf({ orgId, projectId }: Scope): string {
  return `org/${orgId}/${projectId}/`;
}

/** What all keys of a run in R2 begin with. */
export function runFolder(scope: Scope, runId: string): string {
  return `${folderOf(scope)}runs/${runId}/`;
}

/** A file of archived entries of an organisation's ledger; `month`: that of the first of them. In the order of their numbers. */
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

/** An uploaded dataset's file, as it was sent, and the index beside it. */
export function uploadKeys(scope: Scope, datasetId: string): { key: string; index_key: string } {
  const folder = `${folderOf(scope)}datasets/${datasetId}`;
  return { key: `${folder}/rows.jsonl`, index_key: `${folder}/rows.index` };
}

export function trajectoryKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}trajectories/${sha256}.json`;
}

/** What the rollouts of a forked run begin with. */
export function forkKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}fork/${sha256}.json`;
}

export function segmentKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}segments/${sha256}.jsonl`;
}

/** The training samples of a group: gzipped rows, whole groups only, never written again. */
export function sampleKey(scope: Scope, runId: string, sha256: string): string {
  return `${runFolder(scope, runId)}samples/${sha256}`;
}

/** What makes a batch of samples: the list of them, and the credit of each. */
export function batchKeys(scope: Scope, runId: string, batchId: string): { manifest_key: string; credits_key: string } {
  const folder = `${runFolder(scope, runId)}batches/${batchId}`;
  return { manifest_key: `${folder}/manifest.json`, credits_key: `${folder}/credits.jsonl` };
}
