/**
 * What a fleet's object knows of its replicas, and what is read off it. Pure; times are epoch milliseconds.
 *
 * Invariants. `holds` is what a replica certainly serves: from the moment at which its weights may become others it is
 * null, and it is set again only after a probe. A replica of which nobody knows what it serves takes no calls.
 */

import type { FleetUpdate } from "../contract/fleet.ts";
import { LIMITS } from "../contract/limits.ts";
import type { WeightOrder } from "../kernel/messages/run-fleet.ts";
import { type StoredUpdate, whyRemoved } from "./stored-update.ts";
import type { Stretch } from "./stretches.ts";
import { type Places, twinsOf } from "./twins.ts";
import { type Holds, isSameWeights, type Proof, type Weights } from "./weights.ts";
import type { ReplicaState } from "./wire.ts";

/**
 * What is being done about a replica's weights. It is on disk before it is begun, and repeated after a kill.
 * `reported`: somebody else changes them. `look`: who answers before they are changed. `resume` is reached from all.
 */
export type PhaseName = "reported" | "drain" | "pause" | "look" | "load" | "verify" | "resume";

export interface Phase {
  readonly name: PhaseName;
  /** When its time is over. */
  readonly until: number;
  /** Not before. */
  readonly at: number;
  /** What it is to have; null until they are loaded. */
  readonly target: Weights | null;
  /** What went wrong on the way. */
  readonly fault: string | null;
  /** It took calls when it was taken out for this. */
  readonly left: boolean;
  /** When its first phase began. */
  readonly since?: number;
  /** Tries of resuming it that failed. */
  readonly misses: number;
  readonly late: string | null;
}

/** What a look at an engine tells. `started_at`: of its process. `weights`: as it names them. Null: it does not say. */
export type EngineCheck =
  | {
      readonly kind: "alive";
      /** Its adapters among them. */
      readonly models: readonly string[];
      readonly started_at: number | null;
      readonly weights: string | null;
    }
  | { readonly kind: "down"; readonly message: string };

/** Something that is tried again, after twice as long each time. */
export interface Again {
  readonly at: number;
  readonly wait_ms: number;
  readonly reason: string;
}

/** What the trainer of a run has heard of a replica: it serves the version (`applied`), or is not to be waited for. */
export interface Told {
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
  /** Where it is: another address is another server. */
  readonly address: string;
  /** The name of another that is the same engine: this one takes no calls, and nothing is loaded by it. */
  readonly twin?: string | null;
  readonly probed: boolean;
  readonly probed_at: number;
  readonly holds: Holds;
  /** It came when the fleet had weights, was started anew, or lost an adapter: it gets what is ordered before calls. */
  readonly behind: boolean;
  /** LoRA adapters that are loaded on it, in the order in which they were. */
  readonly adapters: readonly Weights[];
  readonly proof: Proof | null;
  readonly outage: Again | null;
  readonly phase: Phase | null;
  /** A pause was begun, and no resume has been answered since. */
  readonly paused: boolean;
  /** No update of it begins before: it is about to be taken out, or to get another address. */
  readonly held_until: number;
  /** Milliseconds that its last update took, from its first phase until it was back. */
  readonly took_ms?: number;
  /** Its last update failed. */
  readonly failing: Again | null;
  /** Not before: an adapter that nobody wants could not be unloaded. */
  readonly unload_at: number;
  /** Tries in a row of unloading one that failed, and why the last did. */
  readonly unload_failed?: { readonly tries: number; readonly reason: string } | null;
  /** Of `reported`: the newest weights that somebody said were coming or there. */
  readonly claimed: Weights | null;
  /** Why nobody knows what it serves. */
  readonly doubt: string | null;
  /** One of each run at most. */
  readonly told: readonly Told[];
  /** `since` of when it was last said that it is down, to whoever wants to know. */
  readonly announced: number | null;
  readonly since: number;
  /** As of `since`. */
  readonly shown: ReplicaState;
}

export type Settings = Pick<Replica, "id" | "name" | "max_concurrent" | "draining" | "address"> & {
  readonly places?: Places;
};

export interface FleetState {
  readonly update: StoredUpdate;
  readonly replicas: Readonly<Record<string, Replica>>;
  /** What replicas are to serve, the latest last: one a run. Several only where versions are adapters. */
  readonly orders: readonly WeightOrder[];
  /** Runs that trained on it and are over, the latest last. */
  readonly released: readonly string[];
  /** Replicas that are gone, and of which trainers have heard: they are not to be counted on any more. */
  readonly leaving: readonly { readonly id: string; readonly told: readonly Told[] }[];
  /** Of each replica, oldest first. */
  readonly stretches: Readonly<Record<string, readonly Stretch[]>>;
}

export const FIRST_WAIT_MS = 5000;
export const LONGEST_WAIT_MS = 60_000;
export const REASON_CHARS = 500;
/** Then adapters that nobody wants are left to the engine, and forgotten. */
export const UNLOADS_TRIED = 3;

export function newFleet(update: StoredUpdate): FleetState {
  return { update, replicas: {}, orders: [], released: [], leaving: [], stretches: {} };
}

/**
 * `since` follows its state by itself, and one that has all that is ordered is not behind. Nothing happens to a replica
 * that is gone.
 */
export function withReplica(state: FleetState, id: string, changes: Partial<Replica>, now: number): FleetState {
  const before = state.replicas[id];
  if (before === undefined) return state;
  const merged = { ...before, ...changes };
  const changed = { ...merged, behind: merged.behind && state.orders.some((order) => !isAt(state, merged, order)) };
  const shown = stateOf(state, changed);
  const since = shown === before.shown ? before.since : now;
  return { ...state, replicas: { ...state.replicas, [id]: { ...changed, shown, since } } };
}

/** What is tried again after a failure. */
export function again(before: Again | null, reason: string, now: number): Again {
  const wait_ms = before === null ? FIRST_WAIT_MS : Math.min(LONGEST_WAIT_MS, 2 * before.wait_ms);
  return { at: now + wait_ms, wait_ms, reason: reason.slice(0, REASON_CHARS) };
}

/** Its replicas as they are set now: new ones join, those that are not there any more are gone. */
export function setReplicas(
  before: FleetState,
  update: StoredUpdate,
  settings: readonly Settings[],
  now: number,
): FleetState {
  const kept: Record<string, Replica> = {};
  const stretches: Record<string, readonly Stretch[]> = {};
  const isSettled = ({ id, address }: Settings) => {
    const known = before.replicas[id];
    return known?.address === address && (known.twin ?? null) === null;
  };
  const sameMode = update.mode === before.update.mode && update.removed === before.update.removed;
  const twins = twinsOf(update.mode, settings, isSettled);
  for (const { places: _, ...set } of settings) {
    const one = { ...set, twin: twins.get(set.name) ?? null };
    const known = before.replicas[one.id];
    // What is loaded onto its twin is loaded onto it as well.
    const alike = known?.address === one.address && (known.twin ?? null) === one.twin;
    const same = alike && (sameMode || isUntouched(known));
    kept[one.id] = same ? { ...known, ...one } : joining(one, known, before, now);
    if (same) stretches[one.id] = before.stretches[one.id] ?? [];
  }
  const left = Object.values(before.replicas).filter(({ id, told }) => kept[id] === undefined && told.length > 0);
  const leaving = [...before.leaving, ...left.map(({ id, told }) => ({ id, told }))].slice(-LIMITS.fleetReplicas);
  const orders = interrupts(update) && before.orders.length > 1 ? before.orders.slice(-1) : before.orders;
  let state: FleetState = { ...before, update, orders, replicas: kept, leaving, stretches };
  for (const { id } of settings) state = withReplica(state, id, {}, now);
  return state;
}

/** Its weights are the ones that it was started with, and nobody is about to change them. */
function isUntouched({ holds, adapters, phase }: Replica): boolean {
  return holds === "start" && adapters.length === 0 && phase === null;
}

/** Calls that were about to leave for another address may do so yet: it is not called before they have. */
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
  const twin = known.twin ?? settings.twin ?? null;
  const trained = orders.length + released.length > 0 && interrupts(update);
  if (twin !== null && !trained && !paused) return { ...replica, told };
  const way = twin === null ? "in another mode than the fleet's current one" : `as those of ${twin}`;
  const doubt = `its weights were changed ${way}: restart it`;
  const resume = { name: "resume", until: now, at: now, target: null, fault: doubt, left: false } as const;
  const phase = paused ? { ...resume, misses: 0, late: null } : null;
  return { ...replica, told, probed, proof, paused, phase, doubt };
}

/** An update takes it out of rotation, unless versions are adapters: then it serves the older ones meanwhile. */
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
/** What brings a replica to version 0 of a run. */
const BEGIN_ANEW = "restart it, or remove it and add it again with the initial weights of a run";

/** Version 0 is what a server is started with: nobody says where else it could be loaded from. */
export function isOfStart({ version, location }: WeightOrder): boolean {
  return version === 0 && location === null;
}

/** Why no training run could begin on it by what it has; null where one could, as far as is known. */
export function unfitness({ update: { mode } }: FleetState, replica: Replica): string | null {
  const { holds, doubt, probed, phase, outage, draining } = replica;
  // An adapter leaves what it lies on as it is; whoever updates it by `reported` may report version 0.
  if (mode === "lora_versioned" || mode === "reported" || holds === "start") return null;
  if (!probed || phase !== null || outage !== null || draining) return null;
  return `${holds === null ? (doubt ?? UNKNOWN) : `it has weights of ${holds.run_id}`}: ${BEGIN_ANEW}`;
}

/** Why its weights are not the ones it should have; null where they are. */
function staleness(state: FleetState, replica: Replica): string | null {
  const { failing, holds, behind, doubt, twin = null } = replica;
  const removed = whyRemoved(state.update);
  if (removed !== null) return removed;
  if (twin !== null) return `it is the same engine as ${twin}: remove it, or set another address`;
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

/** Why it takes no calls, or what is wrong with it all the same; null where nothing is. */
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

/** It is down, and nobody who wants to know has heard. */
export function isNewlyDown({ shown, since, announced }: Replica): boolean {
  return shown === "down" && announced !== since;
}

/** It may be given calls, if only those of rollouts that it serves already. */
export function takesCalls({ shown }: Replica): boolean {
  return shown === "ready" || shown === "draining";
}

/** Calls at once that the fleet bears: of the replicas that take new ones, or will once their update has ended. */
export function permitsOf({ replicas }: FleetState): number {
  const ready = Object.values(replicas).filter(({ shown, phase }) => shown === "ready" || phase?.left === true);
  return ready.reduce((sum, { max_concurrent }) => sum + max_concurrent, 0);
}

/**
 * A run's adapter of a version, by which its calls name it: neither another run nor what the run took back has the same
 * name.
 */
export function adapterName({ adapter }: FleetUpdate, { run_id, generation, version }: Weights): string {
  return `${adapter}.${run_id.replace(/^run_/, "")}.g${generation}@${version}`;
}

type Wanted = Weights & Pick<WeightOrder, "loads_start">;

/** Whether a replica has what an order wants. */
export function isAt({ update }: FleetState, { holds, adapters }: Replica, order: Wanted): boolean {
  if (update.mode === "lora_versioned") {
    return order.version === 0 || adapters.some((one) => isSameWeights(one, order));
  }
  if (order.version === 0 && holds === "start" && order.loads_start !== true) return true;
  return holds !== null && holds !== "start" && isSameWeights(holds, order);
}
