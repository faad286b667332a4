/**
 * Sends a rollout's call to its run's fleet. The fleet object chooses the replica, the call's number and the model
 * name, and is notified of the call's end: two requests to the object per call, which use none of the six connections.
 *
 * Invariants. If no replica takes a call now, the call waits and was not sent; call-outcome.ts says how long. If one
 * replica is at fault, including its key or its models, the call fails and is retried: the fleet has other replicas,
 * and the next call names the one that failed. If the end of a call cannot be reported, its turn gets no end number, so
 * that no wrong version is assigned to it.
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
import { type CallLease, type EndedCall, fleetObject } from "./rpc.ts";

type Go = Extract<CallLease, { kind: "go" }>;
type Failed = Extract<TurnOutcome, { kind: "failed" }>;

const UNKNOWN_MODEL = 404;

/** `calls`: the subrequests of the object that plays the rollout. */
export function fleetReach(env: Env, spec: RolloutSpec, calls: Subrequests, now: () => number): Reach {
  const { scope, endpoint_id: fleet_id } = spec;
  // A new stub each time: a stub of an evicted object stays broken.
  const fleet = () => fleetObject(env, scope, fleet_id);
  const ended = async (call: EndedCall): Promise<number | null> => {
    try {
      return (await calls.object(() => fleet().ended(call)))?.end ?? null;
    } catch (thrown) {
      logError("the fleet was not notified of a call's end", idsOf(spec), thrown);
      return null;
    }
  };
  return async (call) => {
    const lease = await calls.object(() => fleet().begin(askOf(spec, call)));
    if (lease.kind === "wait") return heldBy(lease);
    if (lease.kind === "gone") return { kind: "unusable", error: serializeError(new ModelError(lease.reason)) };
    const of = { number: lease.number, replica_id: lease.replica_id };
    const left = now();
    try {
      const open = () => openReplica(env, scope, fleet_id, lease.replica_id, now());
      const outcome = await callEndpoint({ ...call, open, call: () => call.call(lease) });
      const late = outcome.kind === "aborted" && now() - left >= call.waitMs;
      const end = await ended({ ...of, outcome: late ? "failed" : endOf(outcome), ...labelOf(outcome) });
      return onReplica(outcome, noteOf(lease, end));
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

/** The replica that failed the last call of the current turn. */
function failedLast({ failed_calls, turns }: Rollout): string | undefined {
  const last = failed_calls.at(-1);
  return last?.turn === turns.length ? last.replica : undefined;
}

function heldBy({ kind: _, ...waits }: Extract<CallLease, { kind: "wait" }>): Held {
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

/** Without a status no reply came. A reply that could not be used has a status. */
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

/** A fault of one replica is not a fault of the run: another replica may take the call. */
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

/** A replica that rejects its key. Some servers answer this with a 403. */
const REFUSING: Readonly<Record<string, string>> = {
  [AuthenticationError.name]: "rejects its key",
  [PermissionDeniedError.name]: "forbids the call",
};

function failedThere({ error, retryable, status }: Failed, replica: string): Pick<Failed, "error" | "retryable"> {
  const refuses = REFUSING[error.error];
  if (refuses === undefined) return { error, retryable: retryable || status === UNKNOWN_MODEL };
  return { error: serializeError(new ModelError(`${replica} ${refuses}: ${error.message}`)), retryable: true };
}
