/**
 * Brings new weights to replicas: chooses the next step for each replica and applies the step's outcome. Pure.
 *
 * Invariants. A step is in the state before it starts. After a crash between the two, the step is started again. Every
 * path from `pause` on leads through `resume`, which is repeated until it is answered. From `load` on, the replica's
 * weights are unknown until `verify` has seen them. At most half of the replicas that take calls are updated at a time,
 * or one if there is only one.
 */
import type { WeightOrder } from "../kernel/messages/run-fleet.ts";
import {
  again,
  FIRST_WAIT_MS,
  type FleetState,
  interrupts,
  isAt,
  isOfStart,
  LONGEST_WAIT_MS,
  type Phase,
  type PhaseName,
  REASON_CHARS,
  type Replica,
  takesCalls,
  UNLOADS_TRIED,
  withReplica,
} from "./state.ts";
import { beginInterval, endInterval } from "./version-intervals.ts";
import { isSameWeights, type Weights } from "./weights.ts";

/** A request to an engine. */
export type Step =
  | { readonly do: "probe" }
  | { readonly do: "pause" }
  | { readonly do: "load"; readonly order: WeightOrder }
  | { readonly do: "resume" }
  | { readonly do: "unload"; readonly weights: Weights };

/** A point in time: the clock time, and the number that orders it among the version intervals. */
export interface Moment {
  readonly now: number;
  readonly number: number;
}

/** Engines that load at the same time: each holds a connection for minutes. */
const DRIVEN_AT_ONCE = 3;
/** Versions of a run that stay loaded: calls in flight and rollouts that lag use older ones. */
const ADAPTERS_KEPT = 3;

/**
 * Starts the updates that may start now. Replicas with the fewest calls in flight come first. `settlesMs`: how long
 * objects may still begin calls at free places of the replica; calls that begin while its weights change have no version.
 */
export function beginUpdates(
  before: FleetState,
  now: number,
  inFlight: (replica: string) => number,
  settlesMs: (replica: string) => number = () => 0,
): FleetState {
  let state = before;
  const waiting = Object.values(before.replicas).filter((replica) => mayBegin(before, replica, now));
  for (const { id } of waiting.sort((one, other) => inFlight(one.id) - inFlight(other.id))) {
    const replica = state.replicas[id];
    if (replica !== undefined && mayBegin(state, replica, now)) state = begin(state, replica, now, settlesMs(id));
  }
  return state;
}

export function mayBegin(state: FleetState, replica: Replica, now: number): boolean {
  const { phase, outage, probed, draining, failing } = replica;
  if (state.update.mode === "reported" || phase !== null || outage !== null || !probed || draining) return false;
  if (Math.max(failing?.at ?? 0, replica.held_until) > now || wantedOf(state, replica) === null) return false;
  const all = Object.values(state.replicas);
  if (all.filter((one) => one.phase !== null).length >= DRIVEN_AT_ONCE) return false;
  if (!takesCalls(replica) || !interrupts(state.update)) return true;
  const out = all.filter((one) => one.phase?.left === true).length;
  const serving = all.filter(({ shown }) => shown === "ready").length;
  return out + 1 <= Math.max(1, Math.floor((serving + out) / 2));
}

/** After this many resumes without an answer, an engine is no longer waited for. */
const RESUMES_AWAITED = 3;

/**
 * Why a replica may not be removed from its fleet now: its engine is paused, or about to be. Null if it may be removed.
 */
export function whyNotNow({ update }: FleetState, { name, phase, paused }: Replica): string | null {
  if (phase === null || (phase.name === "resume" && phase.misses >= RESUMES_AWAITED)) return null;
  const pauses = interrupts(update) && update.mode !== "reported";
  if (!paused && !pauses) return null;
  const until =
    "and its engine has to be resumed: try again when that has ended; a draining replica starts no other update";
  return `replica ${name} is being updated (${phase.name}), ${until}`;
}

/** The first order that the replica does not meet and could be brought to. */
export function wantedOf(state: FleetState, replica: Replica): WeightOrder | null {
  if ((replica.twin ?? null) !== null) return null;
  return state.orders.find((order) => !isOfStart(order) && !isAt(state, replica, order)) ?? null;
}

function begin(state: FleetState, replica: Replica, now: number, settlesMs: number): FleetState {
  const { pause, pause_s } = state.update;
  if (!interrupts(state.update)) return startLoading(state, replica, now);
  // With `wait`, calls in flight end first, so that their weights are known.
  const name = pause === "wait" ? "drain" : "pause";
  const at = name === "pause" ? now + settlesMs : now;
  const phase = { ...phaseOf(name, at + pause_s * 1000, now), at };
  const paused = replica.paused || name === "pause";
  return withReplica(state, replica.id, { phase: { ...phase, left: takesCalls(replica) }, paused }, now);
}

export function phaseOf(name: PhaseName, until: number, now: number): Phase {
  return { name, until, at: now, target: null, fault: null, left: false, since: now, misses: 0, late: null };
}

/** Moves the replica to its next phase. */
export function go(
  state: FleetState,
  { id, phase }: Replica,
  changes: Partial<Phase> & Pick<Phase, "name">,
  now: number,
): FleetState {
  const { pause_s, update_s, resume_s } = state.update;
  const seconds = { drain: pause_s, pause: pause_s, load: update_s, reported: update_s };
  const until = now + 1000 * { ...seconds, look: resume_s, verify: resume_s, resume: resume_s }[changes.name];
  const before = phase ?? phaseOf(changes.name, until, now);
  return withReplica(state, id, { phase: { ...before, at: now, misses: 0, late: null, until, ...changes } }, now);
}

/** The next step for a replica whose update is in progress, and the state to store before the step starts. */
export function nextStep(
  before: FleetState,
  id: string,
  { now, number, inFlight }: Moment & { readonly inFlight: number },
): { readonly state: FleetState; readonly step: Step | null } {
  const replica = before.replicas[id];
  const phase = replica?.phase ?? null;
  if (replica === undefined || phase === null || phase.at > now) return { state: before, step: null };
  switch (phase.name) {
    case "reported":
      return { state: phase.until <= now ? unheard(before, replica, now) : before, step: null };
    case "drain":
      return drained(before, replica, { now, number, inFlight });
    case "pause":
      return { state: before, step: { do: "pause" } };
    case "look":
    case "verify":
      return { state: before, step: { do: "probe" } };
    case "load":
      return loading(before, replica, { now, number });
    case "resume":
      if (replica.paused) return { state: before, step: { do: "resume" } };
      return { state: ended(before, replica, { now, number }), step: null };
  }
}

function drained(
  before: FleetState,
  replica: Replica,
  { now, number, inFlight }: Moment & { readonly inFlight: number },
): { readonly state: FleetState; readonly step: Step | null } {
  if (wantedOf(before, replica) === null) return { state: ended(before, replica, { now, number }), step: null };
  const { until = now } = replica.phase ?? {};
  if (inFlight > 0 && until > now) return { state: before, step: null };
  const state = go(withReplica(before, replica.id, { paused: true }, now), replica, { name: "pause" }, now);
  return { state, step: { do: "pause" } };
}

/** From here on, the replica's weights are unknown. The target is decided here: the latest order. */
function loading(
  before: FleetState,
  replica: Replica,
  { now, number }: Moment,
): { readonly state: FleetState; readonly step: Step | null } {
  const order = wantedOf(before, replica);
  if (order === null) return { state: go(before, replica, { name: "resume" }, now), step: null };
  const { id } = replica;
  const { run_id, generation, version } = order;
  const target = { run_id, generation, version };
  const intervals = { ...before.intervals, [id]: endInterval(before.intervals[id] ?? [], number) };
  const unknown = interrupts(before.update) ? { holds: null, doubt: "an update of its weights has not ended" } : {};
  const phase = replica.phase === null ? null : { ...replica.phase, target };
  const state = withReplica(
    { ...before, ...(interrupts(before.update) && { intervals }) },
    id,
    { ...unknown, phase },
    now,
  );
  return { state, step: { do: "load", order } };
}

function startLoading(state: FleetState, replica: Replica, now: number): FleetState {
  return withReplica(state, replica.id, { phase: phaseOf("load", now + state.update.update_s * 1000, now) }, now);
}

/** The party that was to change the replica's weights has not reported the result in time. */
function unheard(before: FleetState, { id, failing }: Replica, now: number): FleetState {
  const reason = "somebody else was to change its weights and has not reported the result";
  return withReplica(before, id, { phase: null, doubt: reason, failing: again(failing, reason, now) }, now);
}

/** The outcome of a step other than a probe. */
export interface StepOutcome {
  readonly ok: boolean;
  readonly message: string;
}

export function stepDone(
  before: FleetState,
  id: string,
  step: Exclude<Step, { do: "probe" }>,
  { ok, message, now, number }: StepOutcome & Moment,
): FleetState {
  const replica = before.replicas[id];
  if (replica === undefined) return before;
  if (step.do === "unload") {
    return ok ? unloaded(before, replica, step.weights, now) : stillLoaded(before, replica, message, now);
  }
  const { phase } = replica;
  // The phase has ended in another way meanwhile.
  if (phase === null || phase.name !== step.do) return before;
  switch (step.do) {
    case "pause":
      return ok ? go(before, replica, { name: "look" }, now) : fail(before, replica, `pause: ${message}`, now);
    case "load":
      if (!ok) return fail(before, replica, `load: ${message}`, now);
      return go(before, replica, { name: "verify" }, now);
    case "resume":
      return resumed(before, replica, { ok, message, now, number });
  }
}

/** Continues with `resume`: the engine may be paused, whatever it answered. */
export function fail(before: FleetState, replica: Replica, fault: string, now: number): FleetState {
  return go(before, replica, { name: "resume", fault: fault.slice(0, REASON_CHARS) }, now);
}

function resumed(before: FleetState, replica: Replica, { ok, message, now, number }: StepOutcome & Moment): FleetState {
  const { id, phase } = replica;
  if (phase === null) return before;
  if (!ok) {
    const misses = phase.misses + 1;
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** phase.misses);
    const late = `it is paused, and was not resumed: ${message}`.slice(0, REASON_CHARS);
    return withReplica(before, id, { phase: { ...phase, misses, at: now + wait, late } }, now);
  }
  const fresh = { ...replica, paused: false };
  const state = withReplica(before, id, { paused: false }, now);
  // The engine may have been restarted meanwhile.
  if (phase.misses > 0 && phase.fault === null && phase.target !== null)
    return go(state, fresh, { name: "verify" }, now);
  return ended(state, fresh, { now, number });
}

/** Puts the replica back into rotation, or marks its update as failed if it has a fault. */
function ended(before: FleetState, replica: Replica, { now, number }: Moment): FleetState {
  const { id, phase, holds, proof } = replica;
  if (phase === null) return before;
  if (phase.fault !== null) {
    return withReplica(before, id, { phase: null, failing: again(replica.failing, phase.fault, now) }, now);
  }
  const took = phase.since === undefined || phase.target === null ? {} : { took_ms: now - phase.since };
  const state = withReplica(before, id, { phase: null, failing: null, ...took }, now);
  const going = before.intervals[id]?.at(-1)?.to === null;
  if (holds === null || going) return state;
  return withInterval(state, id, { from: number, weights: holds, proof: proof ?? NO_PROOF });
}

export const NO_PROOF = { process: null, label: null } as const;

export function withInterval(
  state: FleetState,
  id: string,
  begun: Parameters<typeof beginInterval>[1] | { readonly end: number },
): FleetState {
  const before = state.intervals[id] ?? [];
  const after = "end" in begun ? endInterval(before, begun.end) : beginInterval(before, begun);
  return { ...state, intervals: { ...state.intervals, [id]: after } };
}

/** An adapter that is loaded and no longer needed, or null. */
export function toUnload(state: FleetState, replica: Replica, now: number): Weights | null {
  const { phase, outage, unload_at } = replica;
  if (phase !== null || outage !== null || unload_at > now) return null;
  return unwantedOf(state, replica)[0] ?? null;
}

/** Adapters of runs that are over, and adapters older than the ones to keep. */
export function unwantedOf(state: FleetState, { adapters }: Replica): readonly Weights[] {
  return adapters.filter((one, at) => {
    const newer = adapters.slice(at + 1).filter(({ run_id }) => run_id === one.run_id);
    const wanted = state.orders.some(({ run_id }) => run_id === one.run_id);
    return !wanted || newer.length >= ADAPTERS_KEPT;
  });
}

function unloaded(state: FleetState, { id, adapters }: Replica, weights: Weights, now: number): FleetState {
  const left = adapters.filter((one) => !isSameWeights(one, weights));
  return withReplica(state, id, { adapters: left, unload_failed: null }, now);
}

/** Such an adapter takes no replica out of rotation. After `UNLOADS_TRIED` failures it is forgotten. */
function stillLoaded(state: FleetState, replica: Replica, message: string, now: number): FleetState {
  const { id, adapters, unload_failed } = replica;
  const tries = (unload_failed?.tries ?? 0) + 1;
  const given = tries < UNLOADS_TRIED ? [] : unwantedOf(state, replica);
  const failed = { tries, reason: message.slice(0, REASON_CHARS) };
  const left = adapters.filter((one) => !given.includes(one));
  return withReplica(state, id, { adapters: left, unload_at: now + LONGEST_WAIT_MS, unload_failed: failed }, now);
}
