/**
 * Applies the result of a probe to a replica: whether it answers, whether it is the same process as before, and what it
 * serves. Pure.
 *
 * Invariants. A restarted server has the weights that it was started with. If a server was unreachable and reports
 * neither its process nor its weights, its weights stay unknown until they are reported again.
 */

import { fail, go, type Moment, unwantedOf, wantedOf, withInterval } from "./driving.ts";
import type { EndedCall } from "./rpc.ts";
import {
  adapterName,
  again,
  type EngineCheck,
  type FleetState,
  interrupts,
  type PhaseName,
  type Replica,
  withReplica,
} from "./state.ts";
import { confirm, endAtConfirmed, voidInterval } from "./version-intervals.ts";
import { contradicted, isLabelOf, isSameWeights, namesVersion, type Proof, type Weights } from "./weights.ts";

type Alive = Extract<EngineCheck, { kind: "alive" }>;

/** `at`: the number at which the probe started; `number`: the number of now. */
export interface Probed extends Moment {
  readonly at: number;
  /** The phase in which the probe started; null: none. The result does not decide a later phase. */
  readonly phase: PhaseName | null;
  readonly check: EngineCheck;
}

export function probeDone(before: FleetState, id: string, probed: Probed): FleetState {
  const replica = before.replicas[id];
  if (replica === undefined) return before;
  const { check, now } = probed;
  const phase = replica.phase?.name ?? null;
  if (phase !== probed.phase) return check.kind === "down" ? before : confirmed(before, replica, check, probed);
  if (check.kind === "down") return notThere(before, replica, check.message, probed);
  const state = withReplica(before, id, { probed: true, probed_at: now, outage: null }, now);
  const seen = { ...replica, probed: true, probed_at: now, outage: null };
  switch (phase) {
    case "look":
      return looked(confirmed(state, seen, check, probed), seen, check, now);
    case "verify":
      return verified(state, seen, check, probed);
    case null:
      return confirmed(compared(state, seen, check, probed), seen, check, probed);
    default:
      return confirmed(state, seen, check, probed);
  }
}

function proofOf({ started_at, weights }: Alive): Proof {
  return { process: started_at === null ? null : String(started_at), label: weights };
}

/** The weights are changed next. Stores the identity of the server, to compare it afterwards. */
function looked(state: FleetState, replica: Replica, check: Alive, now: number): FleetState {
  const known = withReplica(state, replica.id, { proof: proofOf(check), ...restart(replica, check) }, now);
  const fresh = known.replicas[replica.id] ?? replica;
  return go(known, fresh, { name: "load" }, now);
}

function restart({ proof }: Replica, check: Alive): Partial<Replica> {
  return isRestarted(proof, check) ? { adapters: [], unload_failed: null, holds: "start" } : {};
}

function isRestarted(proof: Proof | null, { started_at }: Alive): boolean {
  const process = proof?.process ?? null;
  return process !== null && started_at !== null && process !== String(started_at);
}

function verified(before: FleetState, replica: Replica, check: Alive, moment: Probed): FleetState {
  const { id, phase, proof } = replica;
  const { now } = moment;
  const target = phase?.target ?? null;
  if (target === null) return go(before, replica, { name: "resume" }, now);
  const fault = faultOf(before, replica, target, check);
  if (fault !== null) {
    if (interrupts(before.update)) return fail(withReplica(before, id, UNKNOWN, now), replica, fault, now);
    // Adapters are loaded without a `look` before. The next try needs the new process and an empty list of adapters.
    const known = isRestarted(proof, check) ? startedAnew(before, replica, proofOf(check), moment) : before;
    return fail(known, known.replicas[id] ?? replica, fault, now);
  }
  const process = proofOf(check).process ?? proof?.process ?? null;
  const has = interrupts(before.update)
    ? { holds: target }
    : { adapters: [...replica.adapters.filter((one) => !isSameWeights(one, target)), target] };
  const known = { ...has, proof: { process, label: check.weights }, behind: false, doubt: null };
  const state = withReplica(before, id, known, now);
  return go(state, { ...replica, ...known }, { name: "resume" }, now);
}

const UNKNOWN = { holds: null, doubt: "its weights were changed to unexpected ones" } as const;

/** Why the replica does not certainly have these weights now; null if it has them. */
function faultOf({ update }: FleetState, { proof }: Replica, target: Weights, check: Alive): string | null {
  if (proof === null) return "it was not probed before its weights were changed: report them again";
  if (isRestarted(proof, check)) return "it was restarted while its weights were being changed";
  if (update.mode === "lora_versioned") {
    const adapter = adapterName(update, target);
    return check.models.includes(adapter) ? null : `it does not list ${adapter} among its models`;
  }
  const reported = contradicted(check.weights, target);
  if (reported !== null) return `it reports ${reported} after ${target.version} was applied`;
  if (check.started_at !== null || isLabelOf(check.weights, target)) return null;
  return (
    "its weights are unknown: make it answer GET /metrics (process_start_time_seconds) or GET /weight_info " +
    "at control_url"
  );
}

/** Between updates: compares the replica with what was known of it. */
function compared(state: FleetState, replica: Replica, check: Alive, moment: Probed): FleetState {
  const { id, holds, proof, adapters, doubt } = replica;
  const { now, number } = moment;
  const seen = proofOf(check);
  if (isRestarted(proof, check)) return startedAnew(state, replica, seen, moment);
  const first = proof === null && holds === null && doubt === null;
  const unnamed = holds === "start" && (proof?.label ?? null) === null;
  const changed = first || unnamed ? changedBefore(state, seen) : null;
  if (changed !== null) {
    const intervals = { ...state.intervals, [id]: voidInterval(state.intervals[id] ?? []) };
    return withReplica({ ...state, intervals }, id, { holds: null, proof: seen, doubt: changed }, now);
  }
  if (first) {
    const started = withReplica(state, id, { holds: "start", proof: seen }, now);
    return withInterval(started, id, { from: number, weights: "start", proof: seen });
  }
  const why = changedBy(replica, check);
  if (why !== null) return doubted(state, id, why, moment);
  const known = { process: seen.process ?? proof?.process ?? null, label: proof?.label ?? seen.label };
  const listed = adapters.filter((one) => check.models.includes(adapterName(state.update, one)));
  const updates = { proof: known, ...without(state, replica, listed) };
  return withReplica(state, id, { ...updates, failing: stillFailing(state, replica, now) }, now);
}

/** The adapters that are left. A missing one that was not needed counts as unloaded, even without an answer. */
function without(state: FleetState, replica: Replica, adapters: readonly Weights[]): Partial<Replica> {
  const lost = replica.adapters.filter((one) => !adapters.includes(one));
  if (lost.length === 0) return {};
  const unwanted = unwantedOf(state, replica);
  const unloaded = lost.some((one) => unwanted.includes(one));
  const missed = lost.some((one) => !unwanted.includes(one));
  return { adapters, ...(unloaded && { unload_failed: null }), ...(missed && { behind: true }) };
}

/** It was taken to have its initial weights, but reports a version. A bare 0 may be the name of initial weights. */
function changedBefore({ update }: FleetState, { label }: Proof): string | null {
  if (!interrupts(update) || label === null || label === "0" || !namesVersion(label)) return null;
  return `it already reports version ${label}: its weights were changed before it was attached`;
}

/** A failure is cleared if the update that failed is no longer needed. */
function stillFailing(state: FleetState, replica: Replica, now: number): Replica["failing"] {
  const { failing, holds } = replica;
  if (failing === null || failing.at > now || holds === null) return failing;
  return wantedOf(state, replica) === null ? null : failing;
}

/** Another party has loaded other weights. */
function changedBy({ holds, proof }: Replica, check: Alive): string | null {
  if (holds === null) return null;
  const { label = null } = proof ?? {};
  if (holds !== "start") {
    const reported = contradicted(check.weights, holds);
    if (reported !== null) return `it reports ${reported} after ${holds.version} was applied`;
  }
  if (label === null || check.weights === null || label === check.weights) return null;
  return `it reports ${check.weights} after ${label}: somebody else changed its weights`;
}

/** The replica does not serve the expected weights, and it is unknown since when. */
export function doubted(state: FleetState, id: string, why: string, { now }: Moment): FleetState {
  const intervals = { ...state.intervals, [id]: endAtConfirmed(state.intervals[id] ?? []) };
  return withReplica({ ...state, intervals }, id, { holds: null, doubt: why }, now);
}

function startedAnew(before: FleetState, replica: Replica, proof: Proof, moment: Probed): FleetState {
  const { id } = replica;
  const { now, number } = moment;
  const behind = before.orders.some(({ version }) => version > 0);
  const { failing } = replica;
  // The party that updates the replica may have done so before this probe.
  if (replica.claimed !== null) {
    const again = withReplica(before, id, { proof, failing: null }, now);
    return doubted(again, id, "it was restarted: report its weights again", moment);
  }
  const fresh = { holds: "start", adapters: [], unload_failed: null } as const;
  const state = withReplica(before, id, { ...fresh, proof, behind, doubt: null, failing }, now);
  return withInterval(state, id, { from: number, weights: "start", proof });
}

/** Confirms the version intervals with this probe: the versions of calls that ended before it started are now known. */
function confirmed(state: FleetState, { id }: Replica, check: Alive, { at }: Probed): FleetState {
  const before = state.intervals[id];
  if (before === undefined) return state;
  const replica = state.replicas[id];
  const seen = proofOf(check);
  const last = before.at(-1);
  const going = last !== undefined && last.to === null && replica !== undefined && isStill(replica, last.proof, seen);
  return { ...state, intervals: { ...state.intervals, [id]: confirm(before, seen, { at, going }) } };
}

/** Whether it is the same server. One that never shows its identity is the same as long as it was not away. */
function isStill({ holds }: Replica, was: Proof, seen: Proof): boolean {
  if (holds === null) return false;
  if (holds === "start") return was.label === null || seen.label === null || was.label === seen.label;
  if (was.process === null) return was.label === seen.label;
  const labelled = was.label === null || seen.label === null || was.label === seen.label;
  return was.process === seen.process && labelled;
}

function notThere(before: FleetState, replica: Replica, message: string, moment: Probed): FleetState {
  if (replica.phase === null) return isAway(before, replica, message, moment);
  return fail(before, replica, `probe: ${message}`, moment.now);
}

/** What a reply's label says, if it contradicts the replica's known weights; null if it does not. */
export function contradiction(
  { replicas, intervals }: FleetState,
  {
    replica_id,
    number,
    label,
    weights,
  }: Pick<EndedCall, "replica_id" | "number" | "label"> & {
    /** The weights that the call was given for; null: unknown, or none. */
    readonly weights: Weights | null;
  },
): string | null {
  const { holds = null, proof = null } = replicas[replica_id] ?? {};
  const last = intervals[replica_id]?.at(-1);
  const held = holds !== null && holds !== "start" && last?.to === null && last.from < number ? holds : null;
  const applied = weights ?? held;
  const reported = contradicted(label, applied);
  // The engine's own name for the weights it was started with.
  if (reported === null || (applied?.version === 0 && label === proof?.label)) return null;
  return `it reports ${reported} after ${applied?.version} was applied`;
}

/** A reply of the replica contradicts its known weights, so nothing that it reported earlier is relied on. */
export function lied(before: FleetState, id: string, reported: string, moment: Moment): FleetState {
  const replica = before.replicas[id];
  if (replica === undefined) return before;
  const intervals = { ...before.intervals, [id]: voidInterval(before.intervals[id] ?? []) };
  const failing = again(replica.failing, reported, moment.now);
  const holds = interrupts(before.update) ? null : replica.holds;
  return withReplica({ ...before, intervals }, id, { holds, adapters: [], doubt: reported, failing }, moment.now);
}

/** The replica answered that it has no adapter of that name: the adapter is loaded again. */
export function lacksAdapter(before: FleetState, id: string, model: string, now: number): FleetState {
  const replica = before.replicas[id];
  if (replica === undefined || replica.phase !== null) return before;
  const adapters = replica.adapters.filter((one) => adapterName(before.update, one) !== model);
  return withReplica(before, id, without(before, replica, adapters), now);
}

/** The replica does not answer: it gets no calls until a probe succeeds. */
export function isAway(before: FleetState, replica: Replica, message: string, moment: Moment): FleetState {
  const { id, outage, holds, proof } = replica;
  const { now } = moment;
  const away = { probed_at: now, outage: again(outage, message, now) };
  const state = withReplica(before, id, away, now);
  const shows = holds === null || holds === "start" || proof?.process !== null || isLabelOf(proof.label, holds);
  if (shows) return state;
  return doubted(state, id, "it was unreachable, and its weights are unknown: report them as applied again", moment);
}
