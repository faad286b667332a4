/** What stands for `{id}` in the paths of each noun, and in the headers, of the examples. */
import { ROLLOUT, RUN } from "./examples.ts";
import { BATCH_SHA256, LEASED } from "./trainer-examples.ts";

interface PathId {
  readonly description: string;
  readonly example: string;
}

export const PATH_IDS: Readonly<Record<string, PathId>> = {
  runs: { description: "id of the run", example: RUN.id },
  rollouts: { description: "id of the rollout", example: ROLLOUT.id },
  environments: { description: "id, or id@version", example: "gsm8k@1" },
  datasets: { description: "id or name", example: "gsm8k-test" },
  endpoints: { description: "id or name", example: "qwen" },
  secrets: { description: "id or name", example: "SEARCH_KEY" },
  leases: { description: "id of the lease", example: LEASED.lease.id },
};

/** Parameters of a path behind the first. */
export const PATH_PARTS: Readonly<Record<string, PathId>> = {
  step: { description: "step the batch is for, from 1", example: "1" },
  sha256: { description: "digest of the object, in hex", example: BATCH_SHA256 },
};

export const HEADER_EXAMPLES: Readonly<Record<string, string>> = {
  "Idempotency-Key": "nightly-2026-11-21",
  "Last-Event-ID": "41",
  Range: "bytes=1048576-",
  "If-None-Match": `"${BATCH_SHA256}"`,
};
