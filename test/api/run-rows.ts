/** Rows of a run and its endpoint, complete, to change where a test cares. */
import { EvalRequest } from "../../src/contract/eval-request.ts";
import type { InlineEndpointRow, NewRun } from "../../src/db/runs.ts";

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
  const {
    dataset: _rows,
    endpoint: _endpoint,
    judges: _judges,
    ...request
  } = EvalRequest.parse({
    environment: "gsm8k@1",
    model: "m",
    endpoint: { base_url: endpoint.base_url },
    rollouts_per_example: 2,
  });
  return {
    id: `run_${crypto.randomUUID()}`,
    kind: "eval",
    name: null,
    status: "queued",
    environment_id: "gsm8k",
    environment_version: "1.0.2",
    environment_digest: "sha256:00",
    model: "m",
    endpoint_id: endpoint.id,
    request: {
      ...request,
      resolved: { dataset: { kind: "rows", key: null, length: 3 }, whole_groups: false },
    },
    dataset_key: null,
    planned: 6,
    idempotency_key: null,
    request_hash: null,
    counts: null,
    report: null,
    error: null,
    metadata: {},
    created_at: 1000,
    finished_at: null,
    dataset_id: null,
    dead_letters: 0,
    ...changes,
  };
}
