/** Complete rows of a run and its endpoint; a test changes the fields it is about. */
import { EvalRequest } from "../../../src/contract/eval-request.ts";
import type { InlineEndpointRow, NewRun } from "../../../src/kernel/db/runs.ts";

export function endpointRow(changes: Partial<InlineEndpointRow> = {}): InlineEndpointRow {
  return {
    id: `ep_${crypto.randomUUID()}`,
    base_url: "https://gpu.example/v1",
    sealed_key: "k1.iv.sealed",
    api_key_last4: "9f2c",
    created_at: 1000,
    ...changes,
  };
}

export function runRow(endpoint: InlineEndpointRow, changes: Partial<NewRun> = {}): NewRun {
  const id = `run_${crypto.randomUUID()}`;
  const asked = EvalRequest.parse({ environment: "gsm8k@1", model: "m", endpoint: { base_url: endpoint.base_url } });
  const { model, sampling, limits, seed, shuffle, max_concurrent, min_scored } = asked;
  return {
    id,
    kind: "eval",
    name: null,
    status: "queued",
    environment_id: "gsm8k",
    environment_version: "1.0.2",
    endpoint_id: endpoint.id,
    spec: {
      ...{ model, sampling, limits, seed, shuffle, max_concurrent, min_scored },
      ...{ num_examples: 3, rollouts_per_example: 2, whole_groups: false, created_at: 1000 },
      scope: { orgId: "org", projectId: "pj" },
      run_id: id,
      environment: { id: "gsm8k", version: "1.0.2", digest: "sha256:00" },
      environment_args: {},
      dataset: { kind: "rows", key: null, length: 3 },
      endpoint_id: endpoint.id,
    },
    idempotency_key: null,
    request_hash: null,
    sealed_push_secret: null,
    counts: null,
    report: null,
    error: null,
    metadata: {},
    created_at: 1000,
    finished_at: null,
    dataset_id: null,
    written_at: null,
    dead_letters: 0,
    stored_bytes: 0,
    deleted_at: null,
    ...changes,
  };
}
