/**
 * A call of a rollout whose run is on a fleet. The fleet's object says which replica takes it, under which number and by
 * which name of the model, and hears of its end: two questions a call, which hold no connection of the six.
 *
 * Invariants. A call that no replica takes now waits and has not left; call-outcome.ts says how long. What is wrong with one
 * replica, its key and its models included, fails that call and is tried again: the fleet has others, and the next call
 * names the one that failed. An end that could not be told leaves its turn without one, so that nobody takes it for
 * sampled by a version it was not.
 */
import { AuthenticationError, ModelError, PermissionDeniedError, serializeError } from "../contract/errors.ts";
import type { FleetCallNote } from "../contract/trajectory.ts";
import type { Rollout } from "../core/rollout/rollout.ts";
import { callEndpoint } from "../kernel/endpoint/call.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import type { Held, Reach, ReachedCall, TurnOutcome } from "../kernel/messages/endpoint-wire.ts";
import type { RolloutSpec } from "../kernel/messages/wire.ts";
import { openReplica } from "./access.ts";
import { type EndedCall, type FleetPermit, fleetObject } from "./rpc.ts";

type Go = Extract<FleetPermit, { kind: "go" }>;
type Failed = Extract<TurnOutcome, { kind: "failed" }>;

const UNKNOWN_MODEL = 404;

/** `calls`: those of the object that plays the rollout. */
export function fleetReach(env: Env, spec: RolloutSpec, calls: Subrequests, now: () => number): Reach {
  const { scope, endpoint_id: fleet_id } = spec;
  // A stub of an object that was evicted stays broken.
  const fleet = () => fleetObject(env, scope, fleet_id);
  const ended = async (call: EndedCall): Promise<number | null> => {
    try {
      return (await calls.object(() => fleet().ended(call)))?.end ?? null;
    } catch (thrown) {
      logError("fleet was not told of a call's end", idsOf(spec), thrown);
      return null;
    }
  };
  return async (call) => {
    const permit = await calls.object(() => fleet().begin(askOf(spec, call)));
    if (permit.kind === "wait") return heldBy(permit);
    if (permit.kind === "gone") return { kind: "unusable", error: serializeError(new ModelError(permit.reason)) };
    const of = { number: permit.number, replica_id: permit.replica_id };
    const left = now();
    try {
      const open = () => openReplica(env, scope, fleet_id, permit.replica_id, now());
      const outcome = await callEndpoint({ ...call, open, call: () => call.call(permit) });
      const late = outcome.kind === "aborted" && now() - left >= call.waitMs;
      const end = await ended({ ...of, outcome: late ? "failed" : endOf(outcome), ...labelOf(outcome) });
      return onReplica(outcome, noteOf(permit, end));
    } catch (thrown) {
      await ended({ ...of, outcome: "aborted" });
      throw thrown;
    }
  };
}

function askOf(spec: RolloutSpec, { from, waitMs }: ReachedCall) {
  const { scope, endpoint_id: fleet_id, run_id, rollout_id, model, fleet, policy_version } = spec;
  const failed_replica = failedLast(from);
  return {
    ...{ scope, fleet_id, run_id, rollout_id, model },
    ...(fleet?.weights_of !== undefined && { weights_of: fleet.weights_of }),
    ...(fleet?.initial_weights !== undefined && { loads_start: true as const }),
    turn: from.turns.length,
    trains: policy_version !== undefined,
    last_replica: from.turns.at(-1)?.fleet_call?.replica_id ?? null,
    ...(failed_replica !== undefined && { failed_replica }),
    wait_ms: waitMs,
  };
}

/** Of the outstanding turn. */
function failedLast({ failed_calls, turns }: Rollout): string | undefined {
  const last = failed_calls.at(-1);
  return last?.turn === turns.length ? last.replica : undefined;
}

function heldBy({ kind: _, ...waits }: Extract<FleetPermit, { kind: "wait" }>): Held {
  return { kind: "held", ...waits };
}

function endOf(outcome: TurnOutcome): EndedCall["outcome"] {
  switch (outcome.kind) {
    case "answered":
    case "prompt_too_long":
      return "answered";
    case "aborted":
      return "aborted";
    case "unusable":
      return "failed";
    case "failed":
      return endOfFailed(outcome);
  }
}

/** Without a status no reply came; what came with one and could not be used did. */
function endOfFailed({ status, error }: Failed): EndedCall["outcome"] {
  if (status === UNKNOWN_MODEL) return "unknown_model";
  return status === undefined && error.error === ModelError.name ? "unreachable" : "failed";
}

function labelOf(outcome: TurnOutcome): Pick<EndedCall, "label"> {
  const label = outcome.kind === "answered" ? outcome.response.policy_version : null;
  return label === null ? {} : { label };
}

function noteOf({ replica_id, number, model, version }: Go, end: number | null): FleetCallNote {
  return { replica_id, number, end, model, ...(version !== null && { version }) };
}

/** What is one replica's fault is not the run's: another may take the call. */
function onReplica(outcome: TurnOutcome, fleet_call: FleetCallNote): TurnOutcome {
  const { replica_id: replica } = fleet_call;
  switch (outcome.kind) {
    case "answered":
      return { ...outcome, fleet_call };
    case "aborted":
      return { ...outcome, replica };
    case "unusable":
      return { kind: "failed", error: outcome.error, retryable: true, retry_after_ms: null, replica };
    case "failed":
      return { ...outcome, ...failedThere(outcome, replica), replica };
    case "prompt_too_long":
      return outcome;
  }
}

/** A replica that rejects its key, or may do so by a 403. */
const REFUSING: Readonly<Record<string, string>> = {
  [AuthenticationError.name]: "rejects its key",
  [PermissionDeniedError.name]: "forbids the call",
};

function failedThere({ error, retryable, status }: Failed, replica: string): Pick<Failed, "error" | "retryable"> {
  const refuses = REFUSING[error.error];
  if (refuses === undefined) return { error, retryable: retryable || status === UNKNOWN_MODEL };
  return { error: serializeError(new ModelError(`${replica} ${refuses}: ${error.message}`)), retryable: true };
}
