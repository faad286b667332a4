/**
 * Sends a rollout's call to its run's fleet. The object that plays the rollout holds a block of places at replicas for
 * all of its rollouts (place-block.ts), so most calls need no request to the fleet's object.
 *
 * Invariants. If no replica takes a call now, the call waits and was not sent; call-outcome.ts says how long. If one
 * replica is at fault, including its key or its models, the call fails and is retried: the fleet has other replicas,
 * and the next call names the one that failed. A failure is reported to the fleet before the call is retried. If the
 * end of a call cannot be reported until its rollout is over, its turn gets no end number, so that no wrong version is
 * assigned to it.
 */
import { AuthenticationError, ModelError, PermissionDeniedError, serializeError } from "../contract/errors.ts";
import type { FleetCallNote, Turn, TurnEnd } from "../contract/trajectory.ts";
import { openCalls } from "../core/rollout/call-ends.ts";
import type { Rollout } from "../core/rollout/rollout.ts";
import { callEndpoint } from "../kernel/endpoint/call.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import type { Held, Reach, ReachedCall, TurnOutcome } from "../kernel/messages/endpoint-wire.ts";
import type { RolloutSpec } from "../kernel/messages/wire.ts";
import { openReplica } from "./access.ts";
import { blockWay, type CallWay, hasNoBlocks, singleWay } from "./call-way.ts";
import { HeldBlock } from "./held-block.ts";
import type { Caller, Taken } from "./place-block.ts";
import { type CallKind, type CallLease, type EndedCall, fleetObject } from "./rpc.ts";

type Failed = Extract<TurnOutcome, { kind: "failed" }>;

const UNKNOWN_MODEL = 404;
const NOT_NOTIFIED = "the fleet was not notified of ends of calls";

/** The blocks of each object that plays rollouts, by the kind of calls. An object has one `Subrequests`. */
const BLOCKS = new WeakMap<Subrequests, Map<string, HeldBlock>>();

function blockOf(env: Env, spec: RolloutSpec, calls: Subrequests, now: () => number): HeldBlock {
  const blocks = BLOCKS.get(calls) ?? new Map<string, HeldBlock>();
  BLOCKS.set(calls, blocks);
  const kind = kindOf(spec);
  const key = JSON.stringify(kind);
  const known = blocks.get(key);
  if (known !== undefined) return known;
  const { rollout_id: _, ...ids } = idsOf(spec);
  const block = new HeldBlock({
    ...{ kind, now },
    // A new stub each time: a stub of an evicted object stays broken.
    send: (ask) => calls.object(() => fleetObject(env, kind.scope, kind.fleet_id).renew(ask)),
    noteFailure: (thrown) => logError(NOT_NOTIFIED, ids, thrown),
  });
  blocks.set(key, block);
  return block;
}

function kindOf({ scope, endpoint_id: fleet_id, run_id, model, fleet, policy_version }: RolloutSpec): CallKind {
  return {
    ...{ scope, fleet_id, run_id, model, trains: policy_version !== undefined },
    ...(fleet?.weights_of !== undefined && { weights_of: fleet.weights_of }),
    ...(fleet?.initial_weights !== undefined && { loads_start: true as const }),
  };
}

/** `calls`: the subrequests of the object that plays the rollout. */
export function fleetReach(env: Env, spec: RolloutSpec, calls: Subrequests, now: () => number): Reach {
  const { scope, endpoint_id: fleet_id } = spec;
  const wayOf = async (call: ReachedCall): Promise<CallWay> => {
    const caller = callerOf(spec, call);
    try {
      return await blockWay(blockOf(env, spec, calls, now), kindOf(spec), caller);
    } catch (thrown) {
      if (!hasNoBlocks(thrown)) throw thrown;
    }
    const single = { ...caller, turn: call.from.turns.length };
    const fleet = () => fleetObject(env, scope, fleet_id);
    const object: Parameters<typeof singleWay>[0] = () => ({
      begin: (asked) => calls.object(() => fleet().begin(asked)),
      ended: (ended) => calls.object(() => fleet().ended(ended)),
    });
    return await singleWay(object, kindOf(spec), single, (thrown) => logError(NOT_NOTIFIED, idsOf(spec), thrown));
  };
  return async (call) => {
    const way = await wayOf(call);
    const { lease } = way;
    if (lease.kind === "wait") return heldBy(lease);
    if (lease.kind === "gone") return { kind: "unusable", error: serializeError(new ModelError(lease.reason)) };
    const left = now();
    try {
      const open = () => openReplica(env, scope, fleet_id, lease.replica_id, now());
      const { decide } = call;
      const decided = decide && ((where: Parameters<typeof decide>[0]) => decide(where, lease));
      const outcome = await callEndpoint({ ...call, open, decide: decided, call: () => call.call(lease) });
      const late = outcome.kind === "aborted" && now() - left >= call.waitMs;
      await way.end(lease, { outcome: late ? "failed" : endOf(outcome), ...labelOf(outcome) });
      return onReplica(outcome, lease.replica_id, () => noteOf(lease, way.note(lease, call.from)));
    } catch (thrown) {
      await way.end(lease, { outcome: "aborted" });
      throw thrown;
    }
  };
}

/**
 * The ends of the rollout's calls that are not numbered yet, once the fleet has been notified that the rollout is over
 * and needs no place any more. Called before its run is notified.
 */
export async function fleetEnds(
  env: Env,
  spec: RolloutSpec,
  turns: readonly Turn[],
  calls: Subrequests,
  now: () => number,
): Promise<TurnEnd[]> {
  const open = openCalls(turns);
  const block = blockOf(env, spec, calls, now);
  const ends = await block.settle(
    spec.rollout_id,
    open.map(({ number }) => number),
  );
  return open.map(({ turn }, at) => ({ turn, end: ends[at] ?? null }));
}

function callerOf({ rollout_id }: RolloutSpec, { from, waitMs }: ReachedCall): Caller {
  const failed_replica = failedLast(from);
  return {
    rollout_id,
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

function noteOf({ replica_id, number, model, version }: Taken, ends: ReturnType<CallWay["note"]>): FleetCallNote {
  return { replica_id, number, model, ...(version !== null && { version }), ...ends };
}

/** A fault of one replica is not a fault of the run: another replica may take the call. */
function onReplica(outcome: TurnOutcome, replica: string, note: () => FleetCallNote): TurnOutcome {
  switch (outcome.kind) {
    case "answered":
      return { ...outcome, fleet_call: note() };
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
