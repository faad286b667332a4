/**
 * Parameters of paths and headers: an example of each, which stands for `{id}` in the paths of each noun, and the schema the
 * handlers read it with, where there is more to it than a text.
 */
import * as z from "zod";
import { BatchStep } from "../batches.ts";
import { EventId } from "../events.ts";
import { IdempotencyKey } from "../input.ts";
import { ROLLOUT, RUN } from "./examples.ts";
import { BATCH_SHA256, LEASED } from "./trainer-examples.ts";

interface PathId {
  readonly description: string;
  readonly example: string;
}

interface Read {
  /** Absent: any text. */
  readonly schema?: z.ZodType;
  readonly example: string;
}

export const ANY_TEXT = z.string();

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
export const PATH_PARTS: Readonly<Record<string, PathId & Read>> = {
  step: { description: "step the batch is for, from 1", schema: BatchStep, example: "1" },
  sha256: { description: "digest of the object, in hex", example: BATCH_SHA256 },
};

export const HEADERS: Readonly<Record<string, Read>> = {
  "Idempotency-Key": { schema: IdempotencyKey, example: "nightly-2026-11-21" },
  "Last-Event-ID": { schema: EventId, example: "41" },
  Range: { example: "bytes=1048576-" },
  "If-None-Match": { example: `"${BATCH_SHA256}"` },
};
