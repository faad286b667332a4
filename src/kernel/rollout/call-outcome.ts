/**
 * Applies the outcome of a model call to its rollout. Only this file decides whether a call is retried. Pure.
 */
import { ModelError, serializeError } from "../../contract/errors.ts";
import { LIMITS } from "../../contract/limits.ts";
import { seededRandom } from "../../contract/random.ts";
import { shortText } from "../../contract/shown-text.ts";
import { advance, type Event, type Rollout } from "../../core/rollout/rollout.ts";
import { backoffMs } from "../kit/backoff.ts";
import type { Held, TurnOutcome, Unasked } from "../messages/endpoint-wire.ts";
import type { RolloutSpec } from "../messages/wire.ts";

/** A call that waits for its fleet is tried again after at least this time; the spread keeps retries apart. */
const HELD_LEAST_MS = 500;
const HELD_SPREAD_MS = 500;
/** Length of a failed call's message; the rollout's own error has all of it. */
const MESSAGE_CHARACTERS = 300;

type Failed = Omit<Extract<TurnOutcome, { kind: "failed" }>, "kind"> & {
  readonly failure: "provider" | "timeout";
};

interface Circumstances {
  readonly spec: RolloutSpec;
  /** Epoch milliseconds. */
  readonly at: number;
  /** When the step began that made the call. */
  readonly began: number;
  /** True: an agent is told that its call got no answer, and the rollout continues. */
  readonly isRefused?: boolean;
}

type Came = TurnOutcome | Unasked | Held;

export function afterCall(rollout: Rollout, outcome: Came, around: Circumstances): Rollout {
  const refusals = "refusals" in outcome ? (outcome.refusals ?? []) : [];
  const noted = refusals.map(({ usage, ...refusal }): Event => {
    const as = failedAs({ failure: "provider", ...refusal }, around.at);
    return { type: "call_failed", not_before: around.at, as, free: true, ...(usage && { usage }) };
  });
  const events = eventsOf(rollout, outcome, around);
  const refused: Event[] = [...events.filter(({ type }) => type === "call_failed"), { type: "refused" }];
  return [...noted, ...(around.isRefused === true ? refused : events)].reduce(advance, rollout);
}

type Noted = Pick<Failed, "failure" | "error" | "status" | "replica">;

function failedAs({ failure, error, status, replica }: Noted, at: number) {
  const message = shortText(error.message, MESSAGE_CHARACTERS);
  return { at, failure, error: error.error, message, ...(status && { status }), ...(replica && { replica }) };
}

function eventsOf(rollout: Rollout, outcome: Came, around: Circumstances): readonly Event[] {
  switch (outcome.kind) {
    case "answered": {
      const { policy_version: dispatch_version } = around.spec;
      const { response, fleet_call, from_cache } = outcome;
      const platform_ms = Math.max(0, around.at - around.began - response.latency_ms);
      const answered = { type: "answered", response, platform_ms, at: around.at } as const;
      const called = { ...(fleet_call && { fleet_call }), ...(from_cache && { from_cache }) };
      return [{ ...answered, ...called, ...(dispatch_version !== undefined && { dispatch_version }) }];
    }
    case "held":
      return heldCall(rollout, outcome, around);
    case "prompt_too_long":
      return [{ type: "prompt_too_long" }];
    case "aborted": {
      const limit = around.spec.limits.call_timeout_s;
      const error = serializeError(new ModelError(`the model did not answer within ${limit} s`));
      const late = { failure: "timeout", error, retryable: true, retry_after_ms: null } as const;
      return failedCall(rollout, { ...late, ...(outcome.replica && { replica: outcome.replica }) }, around);
    }
    case "unusable":
      return [{ type: "failed", failure: "platform", error: outcome.error }];
    case "unasked":
      return [{ type: "failed", failure: "environment", error: outcome.error }];
    case "failed":
      return failedCall(rollout, { ...outcome, failure: outcome.late ? "timeout" : "provider" }, around);
  }
}

/**
 * No replica of the fleet takes the call. It waits without counting as a try, for as long as a call waits for an
 * endpoint that is down, plus the time that an update of a replica may take. After that each time counts as a failed
 * try.
 */
function heldCall(
  rollout: Rollout,
  { again_at, reason, update_ms = 0 }: Held,
  around: Circumstances,
): readonly Event[] {
  const { at, spec } = around;
  const until = rollout.intent?.held_until ?? at + LIMITS.endpointWaitMs + update_ms;
  if (at < until) {
    const spread = Math.round(HELD_SPREAD_MS * seededRandom("held", spec.rollout_id)());
    return [{ type: "held", not_before: Math.max(again_at, at + HELD_LEAST_MS) + spread, until }];
  }
  const error = serializeError(new ModelError(`no replica of the fleet takes calls: ${reason}`));
  return failedCall(rollout, { failure: "provider", error, retryable: true, retry_after_ms: null }, around);
}

/** Records the failure; then the call is retried, or the rollout ends. */
function failedCall(rollout: Rollout, failed: Failed, { spec, at }: Circumstances): Event[] {
  const { failure, retryable, free = false, retry_after_ms, usage, unmetered } = failed;
  // If another call might succeed, another attempt might, too. The endpoint's circuit breaker uses this.
  const error = { ...failed.error, retryable };
  const took = unmetered === true ? null : usage;
  const failures = rollout.intent?.failures ?? 0;
  const seed = `${spec.rollout_id}:${rollout.turns.length}`;
  const not_before = free ? at : at + backoffMs(failures, retry_after_ms, seed);
  const noted: Event = {
    type: "call_failed",
    not_before,
    as: failedAs(failed, at),
    free,
    ...(took !== undefined && { usage: took }),
  };
  const { max_retries } = spec.limits;
  const retries = failure === "timeout" ? Math.min(max_retries, LIMITS.retriesAfterTimeout) : max_retries;
  if (free || (retryable && failures < retries)) return [noted];
  return [noted, { type: "failed", failure, error }];
}
