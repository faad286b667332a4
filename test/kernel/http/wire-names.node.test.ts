/** Names that clients depend on. A change here is a change of the public contract. */
import { expect, test } from "vitest";
import { ERROR_CODES } from "../../../src/contract/api-error.ts";
import { CANCEL_REASONS, FAILURE_CLASSES, UNSCORED_CAUSES } from "../../../src/contract/errors.ts";
import { EVENT_NAMES } from "../../../src/contract/event-names.ts";
import { OUTCOMES, ROLLOUT_STATUSES, RUN_STATUSES, STATUS_REASON_STATES } from "../../../src/contract/run.ts";
import { mintId, mintRunId, parseId, rolloutId } from "../../../src/core/ids.ts";
import { ROLLOUT, RUN } from "./examples.ts";

test("statuses, outcomes, reasons, error codes and event names stay as they are", () => {
  expect({
    RUN_STATUSES,
    ROLLOUT_STATUSES,
    OUTCOMES,
    STATUS_REASON_STATES,
    UNSCORED_CAUSES,
    FAILURE_CLASSES,
    CANCEL_REASONS,
    ERROR_CODES,
    EVENT_NAMES,
  }).toMatchInlineSnapshot(`
    {
      "CANCEL_REASONS": [
        "stale",
        "overload",
        "user",
        "budget",
        "deadline",
        "version_reset",
      ],
      "ERROR_CODES": [
        "invalid_request",
        "invalid_row",
        "unknown_field",
        "not_found",
        "unmet_need",
        "missing_judge",
        "idempotency_conflict",
        "in_progress",
        "insufficient_balance",
        "budget_exhausted",
        "max_tokens_required",
        "prices_required",
        "rate_limited",
        "too_large",
        "unauthorized",
        "forbidden",
        "invalid_signature",
        "stale_timestamp",
        "epoch_fenced",
        "step_mismatch",
        "lease_lost",
        "wrong_lease_token",
        "wrong_batch",
        "version_ahead",
        "batch_void",
        "run_finished",
        "url_not_allowed",
        "conflict",
        "run_unreadable",
        "storage_full",
        "unavailable",
        "internal",
      ],
      "EVENT_NAMES": [
        "run.progress",
        "rollout.finished",
        "run.paused",
        "run.resumed",
        "run.completed",
        "run.failed",
        "run.cancelled",
        "batch.ready",
        "batch.acked",
        "batch.dead",
        "weights.published",
        "weights.applied",
        "snapshot",
      ],
      "FAILURE_CLASSES": [
        "provider",
        "environment",
        "environment_changed",
        "tool_outcome_unknown",
        "timeout",
        "agent",
        "platform",
      ],
      "OUTCOMES": [
        "scored",
        "unscored",
        "failed",
        "cancelled",
      ],
      "ROLLOUT_STATUSES": [
        "queued",
        "running",
        "scoring",
        "done",
      ],
      "RUN_STATUSES": [
        "queued",
        "running",
        "paused",
        "completed",
        "failed",
        "cancelled",
      ],
      "STATUS_REASON_STATES": [
        "active",
        "rate_limited",
        "endpoint_down",
        "over_limit",
        "object_unreadable",
        "storage_full",
        "over_budget",
        "waiting_for_trainer",
        "waiting_for_rollouts",
        "paused",
        "draining",
        "upgrading",
      ],
      "UNSCORED_CAUSES": [
        "judge",
        "scorer",
        "non_finite",
      ],
    }
  `);
});

test("ids of runs, rollouts, endpoints, secrets and keys keep their prefixes and their form", () => {
  const mac = () => "abcdefgh";
  const minting = { now: 1_792_000_000_000, random: (n: number) => new Uint8Array(n), mac };
  const run = mintRunId(minting);
  const rollout = rolloutId(run, { group: 40, slot: 3, attempt: 1 }, mac);
  expect([run, rollout, ...["ep", "sec", "key"].map((kind) => mintId(kind, minting))]).toEqual([
    "run_01m4xrc0000000000000000000abcdefgh",
    "ro_01m4xrc0000000000000000000_14_3_1_abcdefgh",
    "ep_01m4xrc0000000000000000000abcdefgh",
    "sec_01m4xrc0000000000000000000abcdefgh",
    "key_01m4xrc0000000000000000000abcdefgh",
  ]);
  expect(parseId(RUN.id, () => RUN.id.slice(-8))).toMatchObject({ kind: "run" });
  expect(parseId(ROLLOUT.id, () => ROLLOUT.id.slice(-8))).toMatchObject({ kind: "rollout" });
});
