/**
 * What came of a model call, and what becomes of its rollout by it: the one place where a call's retry is decided.
 * Pure.
 */
import { ModelError, serializeError } from "../../contract/errors.ts";
import { shortText } from "../../contract/shown-text.ts";
import { advance, type Event, type Rollout } from "../../core/rollout/rollout.ts";
import type { TurnOutcome, Unasked } from "../contract/endpoint-wire.ts";
import type { RolloutSpec } from "../contract/wire.ts";
import { backoffMs } from "../kit/backoff.ts";

/** Of a failed call's message; the rollout's own error has the whole. */
const MESSAGE_CHARACTERS = 300;

type Failed = Omit<Extract<TurnOutcome, { kind: "failed" }>, "kind"> & {
  readonly failure: "provider" | "timeout";
};

interface Circumstances {
  readonly spec: RolloutSpec;
  /** Epoch milliseconds. */
  readonly at: number;
}

export function afterCall(rollout: Rollout, outcome: TurnOutcome | Unasked, around: Circumstances): Rollout {
  return eventsOf(rollout, outcome, around).reduce(advance, rollout);
}

function eventsOf(rollout: Rollout, outcome: TurnOutcome | Unasked, around: Circumstances): readonly Event[] {
  switch (outcome.kind) {
    case "answered": {
      const { policy_version: dispatch_version } = around.spec;
      const answered = { type: "answered", response: outcome.response, at: around.at } as const;
      return [{ ...answered, ...(dispatch_version !== undefined && { dispatch_version }) }];
    }
    case "prompt_too_long":
      return [{ type: "prompt_too_long" }];
    case "aborted": {
      const limit = around.spec.limits.call_timeout_s;
      const error = serializeError(new ModelError(`the model did not answer within ${limit} s`));
      const late = { failure: "timeout", error, retryable: true, retry_after_ms: null } as const;
      return failedCall(rollout, late, around);
    }
    case "unusable":
      return [{ type: "failed", failure: "platform", error: outcome.error }];
    case "unasked":
      return [{ type: "failed", failure: "environment", error: outcome.error }];
    case "failed":
      return failedCall(rollout, { ...outcome, failure: "provider" }, around);
  }
}

/** Noted on the rollout, and then tried again or the end of it. */
function failedCall(rollout: Rollout, failed: Failed, { spec, at }: Circumstances): Event[] {
  const { failure, status, retryable, free = false, retry_after_ms } = failed;
  // What another call may cure another attempt may, too; the endpoint's circuit counts by it.
  const error = { ...failed.error, retryable };
  const failures = rollout.intent?.failures ?? 0;
  const seed = `${spec.rollout_id}:${rollout.turns.length}`;
  const not_before = free ? at : at + backoffMs(failures, retry_after_ms, seed);
  const message = shortText(error.message, MESSAGE_CHARACTERS);
  const as = { at, failure, error: error.error, message, ...(status && { status }) };
  const noted: Event = { type: "call_failed", not_before, as, free };
  if (free || (retryable && failures < spec.limits.max_retries)) return [noted];
  return [noted, { type: "failed", failure, error }];
}
