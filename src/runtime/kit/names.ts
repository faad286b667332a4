/** Names of objects and keys of R2. Every one begins with its organisation; content is addressed inside a run only. */
import type { Scope } from "../../contract/scope.ts";
import type { AccountRpc } from "../contract/account-wire.ts";
import type { EndpointRpc, RolloutRpc, RunRpc } from "../contract/rpc.ts";
import type { TrainerRpc } from "../contract/training-wire.ts";

export function runObject(env: Env, scope: Scope, runId: string): RunRpc {
  const stub: unknown = env.RUN.getByName(`org/${scope.orgId}/${scope.projectId}/${runId}`);
  return stub as RunRpc;
}

/** The object that plays rollouts of a run, by its number among those of the run. */
export function rolloutHost(env: Env, scope: Scope, runId: string, host: number): RolloutRpc {
  const stub: unknown = env.ROLLOUT.getByName(hostName(scope, runId, host));
  return stub as RolloutRpc;
}

export function hostName({ orgId, projectId }: Scope, runId: string, host: number): string {
  return `org/${orgId}/${projectId}/${runId}/${host}`;
}

export function endpointObject(env: Env, scope: Scope, endpointId: string): EndpointRpc {
  const stub: unknown = env.ENDPOINT.getByName(`org/${scope.orgId}/${scope.projectId}/${endpointId}`);
  return stub as EndpointRpc;
}

/** What an organisation may have at once. */
export function accountObject(env: Env, orgId: string): AccountRpc {
  const stub: unknown = env.ACCOUNT.getByName(`org/${orgId}`);
  return stub as AccountRpc;
}

/** What is delivered to the trainer of a training run, and the weight versions that come back. */
export function trainerObject(env: Env, scope: Scope, runId: string): TrainerRpc {
  const stub: unknown = env.TRAINER.getByName(`org/${scope.orgId}/${scope.projectId}/${runId}`);
  return stub as TrainerRpc;
}

export function datasetKey(scope: Scope, runId: string, sha256: string): string {
  return `org/${scope.orgId}/runs/${runId}/dataset/${sha256}.jsonl`;
}

/** An uploaded dataset's file, as it was sent, and the index beside it. */
export function uploadKeys(scope: Scope, datasetId: string): { key: string; index_key: string } {
  const folder = `org/${scope.orgId}/datasets/${datasetId}`;
  return { key: `${folder}/rows.jsonl`, index_key: `${folder}/rows.index` };
}

export function trajectoryKey(scope: Scope, runId: string, sha256: string): string {
  return `org/${scope.orgId}/runs/${runId}/trajectories/${sha256}.json`;
}

/** What the rollouts of a forked run begin with. */
export function forkKey(scope: Scope, runId: string, sha256: string): string {
  return `org/${scope.orgId}/runs/${runId}/fork/${sha256}.json`;
}

export function segmentKey(scope: Scope, runId: string, sha256: string): string {
  return `org/${scope.orgId}/runs/${runId}/segments/${sha256}.jsonl`;
}

/** The training samples of a group: gzipped rows, whole groups only, never written again. */
export function sampleKey(scope: Scope, runId: string, sha256: string): string {
  return `org/${scope.orgId}/runs/${runId}/samples/${sha256}`;
}

/** What makes a batch of samples: the list of them, and the credit of each. */
export function batchKeys(scope: Scope, runId: string, batchId: string): { manifest_key: string; credits_key: string } {
  const folder = `org/${scope.orgId}/runs/${runId}/batches/${batchId}`;
  return { manifest_key: `${folder}/manifest.json`, credits_key: `${folder}/credits.jsonl` };
}
