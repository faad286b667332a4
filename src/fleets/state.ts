/**
 * The state that a fleet object keeps of its replicas, and what follows from it. Pure; times are epoch milliseconds.
 *
 * Invariants. `holds` is what a replica certainly serves. It is null from the moment at which the weights may change,
 * and is set again only after a probe. A replica whose weights are unknown takes no calls.
 */

import type { FleetUpdate } from "../contract/fleet.ts";
import { LIMITS } from "../contract/limits.ts";
import type { WeightOrder } from "../kernel/messages/run-fleet.ts";
import { aliasesOf, type Places } from "./aliases.ts";
import { type StoredUpdate, whyRemoved } from "./stored-update.ts";
import type { VersionInterval } from "./version-intervals.ts";
import { type Holds, isSameWeights, type Proof, type Weights } from "./weights.ts";
import type { ReplicaState } from "./wire.ts";

/**
 * The current phase of an update of a replica. A phase is on disk before it starts, and is repeated after a kill.
 * `reported`: another party changes the weights. `look`: identifies the server before the change. Every other phase can
 * lead to `resume`.
 */
export type PhaseName = "reported" | "drain" | "pause" | "look" | "load" | "verify" | "resume";

export interface Phase {
  readonly name: PhaseName;
  /** The deadline of the phase. */
  readonly until: number;
  /** The earliest time of the next step. */
  readonly at: number;
  /** The weights to load; null before they are chosen. */
  readonly target: Weights | null;
  /** What went wrong in an earlier phase. */
  readonly fault: string | null;
  /** The replica took calls before it was taken out for this update. */
  readonly left: boolean;
  /** When the first phase of the update started. */
  readonly since?: number;
  /** Failed attempts to resume the engine. */
  readonly misses: number;
  readonly late: string | null;
}

/** The result of a probe. `started_at`: of its process. `weights`: the label it reports. Null: not reported. */
export type EngineCheck =
  | {
      readonly kind: "alive";
      /** Includes its adapters. */
      readonly models: readonly string[];
      readonly started_at: number | null;
      readonly weights: string | null;
    }
  | { readonly kind: "down"; readonly message: string };

/** Something that is retried, with a wait that doubles each time. */
export interface Again {
  readonly at: number;
  readonly wait_ms: number;
  readonly reason: string;
}

/** What a run's trainer was notified of: it serves the version (`applied`), or must not be waited for (`failed`). */
export interface TrainerNotice {
  readonly run_id: string;
  readonly generation: number;
  readonly version: number;
  readonly state: "applied" | "failed";
}

export interface Replica {
  readonly id: string;
  readonly name: string;
  readonly max_concurrent: number;
  readonly draining: boolean;
  /** The address of the engine. Another address means another server. */
  readonly address: string;
  /** The other name of this engine (an alias). This replica takes no calls, and no weights are loaded through it. */
  readonly twin?: string | null;
  readonly probed: boolean;
  readonly probed_at: number;
  readonly holds: Holds;
  /** It joined a fleet with weights, was restarted, or lost an adapter: it gets the ordered weights before calls. */
  readonly behind: boolean;
  /** Loaded LoRA adapters, in the order of loading. */
  readonly adapters: readonly Weights[];
  readonly proof: Proof | null;
  readonly outage: Again | null;
  readonly phase: Phase | null;
  /** A pause was started, and no resume has been answered since. */
  readonly paused: boolean;
  /** No update starts before this time: the replica may be about to be removed or to get another address. */
  readonly held_until: number;
  /** How long its last update took, in milliseconds, from its first phase to its return. */
  readonly took_ms?: number;
  /** Set if its last update failed. */
  readonly failing: Again | null;
  /** The earliest time of the next attempt to unload an adapter that is no longer needed. */
  readonly unload_at: number;
  /** Failed attempts to unload in a row, and the reason of the last failure. */
  readonly unload_failed?: { readonly tries: number; readonly reason: string } | null;
  /** In mode `reported`: the newest weights that were reported as loading or loaded. */
  readonly claimed: Weights | null;
  /** Why its weights are unknown. */
  readonly doubt: string | null;
  /** At most one entry per run. */
  readonly told: readonly TrainerNotice[];
  /** The `since` of the last outage for which `replica.down` was emitted. */
  readonly announced: number | null;
  readonly since: number;
  /** The state since `since`. */
  readonly shown: ReplicaState;
}

export type Settings = Pick<Replica, "id" | "name" | "max_concurrent" | "draining" | "address"> & {
  readonly places?: Places;
};

export interface FleetState {
  readonly update: StoredUpdate;
  readonly replicas: Readonly<Record<string, Replica>>;
  /** The weights to serve, the latest last; at most one order per run. Several only in mode `lora_versioned`. */
  readonly orders: readonly WeightOrder[];
  /** Runs that trained on the fleet and are over, the latest last. */
  readonly released: readonly string[];
  /** Removed replicas that trainers were notified of: they must be notified that these are gone. */
  readonly leaving: readonly { readonly id: string; readonly told: readonly TrainerNotice[] }[];
  /** The version intervals of each replica, oldest first. */
  readonly intervals: Readonly<Record<string, readonly VersionInterval[]>>;
}

export const FIRST_WAIT_MS = 5000;
export const LONGEST_WAIT_MS = 60_000;
export const REASON_CHARS = 500;
/** After this many attempts, adapters that are no longer needed stay on the engine and are forgotten. */
export const UNLOADS_TRIED = 3;

export function newFleet(update: StoredUpdate): FleetState {
  return { update, replicas: {}, orders: [], released: [], leaving: [], intervals: {} };
}

/** Updates `since` and `behind` along with the state. Does nothing for a replica that was removed. */
export function withReplica(state: FleetState, id: string, changes: Partial<Replica>, now: number): FleetState {
  const before = state.replicas[id];
  if (before === undefined) return state;
  const merged = { ...before, ...changes };
  const changed = { ...merged, behind: merged.behind && state.orders.some((order) => !isAt(state, merged, order)) };
  const shown = stateOf(state, changed);
  const since = shown === before.shown ? before.since : now;
  return { ...state, replicas: { ...state.replicas, [id]: { ...changed, shown, since } } };
}

/** The next attempt after a failure. */
export function again(before: Again | null, reason: string, now: number): Again {
  const wait_ms = before === null ? FIRST_WAIT_MS : Math.min(LONGEST_WAIT_MS, 2 * before.wait_ms);
  return { at: now + wait_ms, wait_ms, reason: reason.slice(0, REASON_CHARS) };
}

/** Applies the fleet's settings: new replicas join, and replicas that are no longer listed are removed. */
export function setReplicas(
  before: FleetState,
  update: StoredUpdate,
  settings: readonly Settings[],
  now: number,
): FleetState {
  const kept: Record<string, Replica> = {};
  const intervals: Record<string, readonly VersionInterval[]> = {};
  const isSettled = ({ id, address }: Settings) => {
    const known = before.replicas[id];
    return known?.address === address && (known.twin ?? null) === null;
  };
  const sameMode = update.mode === before.update.mode && update.removed === before.update.removed;
  const aliases = aliasesOf(update.mode, settings, isSettled);
  for (const { places: _, ...set } of settings) {
    const one = { ...set, twin: aliases.get(set.name) ?? null };
    const known = before.replicas[one.id];
    // An engine with an alias also has the weights that were loaded through the alias.
    const alike = known?.address === one.address && (known.twin ?? null) === one.twin;
    const same = alike && (sameMode || isUntouched(known));
    kept[one.id] = same ? { ...known, ...one } : joining(one, known, before, now);
    if (same) intervals[one.id] = before.intervals[one.id] ?? [];
  }
  const left = Object.values(before.replicas).filter(({ id, told }) => kept[id] === undefined && told.length > 0);
  const leaving = [...before.leaving, ...left.map(({ id, told }) => ({ id, told }))].slice(-LIMITS.fleetReplicas);
  const orders = interrupts(update) && before.orders.length > 1 ? before.orders.slice(-1) : before.orders;
  let state: FleetState = { ...before, update, orders, replicas: kept, leaving, intervals };
  for (const { id } of settings) state = withReplica(state, id, {}, now);
  return state;
}

/** The replica has its initial weights, and no update is in progress. */
function isUntouched({ holds, adapters, phase }: Replica): boolean {
  return holds === "start" && adapters.length === 0 && phase === null;
}

/** How long a replica with a new address is not called: calls to its old address may be about to be sent. */
const OTHER_ADDRESS_MS = 10_000;

type Joining = Omit<Settings, "places"> & Pick<Replica, "twin">;

function joining(settings: Joining, known: Replica | undefined, before: FleetState, now: number): Replica {
  const { orders, released, update } = before;
  const replica: Replica = {
    ...settings,
    ...{ probed: false, probed_at: 0, holds: null, behind: orders.length > 0, adapters: [], proof: null },
    ...{ outage: null, phase: null, paused: false, failing: null, held_until: 0, unload_at: 0, claimed: null },
    ...{ doubt: null, told: [], announced: null, since: now, shown: "joining" },
  };
  if (known === undefined) return replica;
  const { probed, proof, paused, told, address } = known;
  if (address !== settings.address) {
    const reason = "its address was changed";
    return { ...replica, told, outage: { at: now + OTHER_ADDRESS_MS, wait_ms: FIRST_WAIT_MS, reason } };
  }
  const alias = known.twin ?? settings.twin ?? null;
  const trained = orders.length + released.length > 0 && interrupts(update);
  if (alias !== null && !trained && !paused) return { ...replica, told };
  const way = alias === null ? "in another mode than the fleet's current one" : `as those of ${alias}`;
  const doubt = `its weights were changed ${way}: restart it`;
  const resume = { name: "resume", until: now, at: now, target: null, fault: doubt, left: false } as const;
  const phase = paused ? { ...resume, misses: 0, late: null } : null;
  return { ...replica, told, probed, proof, paused, phase, doubt };
}

/** An update takes the replica out of rotation, unless versions are adapters: then it serves the older ones. */
export function interrupts({ mode }: FleetUpdate): boolean {
  return mode !== "lora_versioned";
}

function stateOf(state: FleetState, replica: Replica): ReplicaState {
  const { phase, outage, probed, draining } = replica;
  if (phase !== null && interrupts(state.update)) return "updating";
  if (outage !== null) return "down";
  if (!probed) return "joining";
  if (staleness(state, replica) !== null) return "stale";
  return draining ? "draining" : "ready";
}

const UNKNOWN = "its weights are unknown";
/** How to bring a replica to version 0 of a run. */
const BEGIN_ANEW = "restart the engine, or remove the replica and add it again with the initial weights of a run";

/** Version 0 is what a server was started with, and no location to load it from is given. */
export function isOfStart({ version, location }: WeightOrder): boolean {
  return version === 0 && location === null;
}

/** Why no training run could start on the replica with its current weights; null if one could, as far as is known. */
export function unfitness({ update: { mode } }: FleetState, replica: Replica): string | null {
  const { holds, doubt, probed, phase, outage, draining } = replica;
  // An adapter does not change the base weights. In mode `reported`, the other party may report version 0.
  if (mode === "lora_versioned" || mode === "reported" || holds === "start") return null;
  if (!probed || phase !== null || outage !== null || draining) return null;
  return `${holds === null ? (doubt ?? UNKNOWN) : `it has weights of ${holds.run_id}`}: ${BEGIN_ANEW}`;
}

/** Why the replica does not have the weights it should have; null if it has them. */
function staleness(state: FleetState, replica: Replica): string | null {
  const { failing, holds, behind, doubt, twin: alias = null } = replica;
  const removed = whyRemoved(state.update);
  if (removed !== null) return removed;
  if (alias !== null) return `it is the same engine as ${alias}: remove it, or set another address`;
  if (failing !== null) return failing.reason;
  if (holds === null) return doubt ?? UNKNOWN;
  const order = state.orders.at(-1);
  if (holds === "start" && order?.loads_start === true) return startedWith(order);
  const other = holds !== "start" && order !== undefined && isOfStart(order) && !isAt(state, replica, order);
  if (other) return `it has weights of ${holds.run_id}: ${BEGIN_ANEW}`;
  if (!behind || order === undefined || order.version === 0) return null;
  return startedWith(order);
}

function startedWith({ version }: WeightOrder): string {
  return `it has the weights of its start: version ${version} is loaded first`;
}

/** Why the replica takes no calls, or another fault of it; null if there is none. */
export function reasonOf(state: FleetState, replica: Replica): string | null {
  const { phase, outage, failing, unload_failed } = replica;
  switch (stateOf(state, replica)) {
    case "updating":
      return phase?.late ?? phase?.fault ?? failing?.reason ?? `its weights are being changed: ${phase?.name ?? ""}`;
    case "down":
      return outage?.reason ?? null;
    case "joining":
      return "it has not been probed yet";
    case "stale":
      return staleness(state, replica);
    case "draining":
      return "it is finishing its calls";
    case "ready":
      if ((unload_failed?.tries ?? 0) < UNLOADS_TRIED) return null;
      return `unused adapters could not be unloaded: ${unload_failed?.reason}`;
  }
}

/** The replica is down, and `replica.down` was not emitted for this outage. */
export function isNewlyDown({ shown, since, announced }: Replica): boolean {
  return shown === "down" && announced !== since;
}

/** Whether the replica takes calls, even if only from rollouts that it already serves. */
export function takesCalls({ shown }: Replica): boolean {
  return shown === "ready" || shown === "draining";
}

/** The fleet's calls at once: the sum over the replicas that take new calls or will do so after their update. */
export function quotaOf({ replicas }: FleetState): number {
  const ready = Object.values(replicas).filter(({ shown, phase }) => shown === "ready" || phase?.left === true);
  return ready.reduce((sum, { max_concurrent }) => sum + max_concurrent, 0);
}

/** The name of a run's adapter of a version in calls: unique over all runs and generations. */
export function adapterName({ adapter }: FleetUpdate, { run_id, generation, version }: Weights): string {
  return `${adapter}.${run_id.replace(/^run_/, "")}.g${generation}@${version}`;
}

type Wanted = Weights & Pick<WeightOrder, "loads_start">;

/** Whether a replica has the weights of an order. */
export function isAt({ update }: FleetState, { holds, adapters }: Replica, order: Wanted): boolean {
  if (update.mode === "lora_versioned") {
    return order.version === 0 || adapters.some((one) => isSameWeights(one, order));
  }
  if (order.version === 0 && holds === "start" && order.loads_start !== true) return true;
  return holds !== null && holds !== "start" && isSameWeights(holds, order);
}
