/** What stands for `{id}` in the paths of each noun, and in the headers, of the examples. */
import { ROLLOUT, RUN } from "./examples.ts";

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
};

export const HEADER_EXAMPLES: Readonly<Record<string, string>> = {
  "Idempotency-Key": "nightly-2026-11-21",
  "Last-Event-ID": "41",
};
