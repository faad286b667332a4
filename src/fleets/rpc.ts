/**
 * The interface of a fleet object. The part that runs and trainers call is declared in
 * src/kernel/messages/run-fleet.ts. Every message may arrive twice; arguments and results only gain optional fields.
 * Times are epoch milliseconds.
 *
 * Calls need no request each: an object that plays rollouts has a block of places for them, and renews it (`renew`).
 *
 * The version that sampled a call is found without clocks. The object numbers events: the start and the end of each
 * call, and each point from which a replica's weights may differ. A call was sampled by one version if no such point
 * lies between its two numbers.
 */

import type { Scope } from "../contract/scope.ts";
import { folderOf } from "../kernel/kit/names.ts";
import type { CalledBy } from "../kernel/messages/endpoint-wire.ts";
import type { RunFleetRpc } from "../kernel/messages/run-fleet.ts";
import type { ReplicaState } from "./wire.ts";

/** A rollout's call that is about to be sent. */
export interface FleetCall {
  readonly scope: Scope;
  readonly fleet_id: string;
  readonly run_id: string;
  /** The run whose weights must sample the call; absent: its own run. */
  readonly weights_of?: string;
  /** The run names a location for version 0: see `WeightOrder`. */
  readonly loads_start?: true;
  readonly rollout_id: string;
  readonly turn: number;
  /** The model that the run names. */
  readonly model: string;
  /** True if its tokens are for training: then it gets only replicas whose weights are known. */
  readonly trains: boolean;
  /** The replica that answered the rollout's previous turn and has its prefix cached. */
  readonly last_replica: string | null;
  /** A replica that has just failed the call: another is preferred. */
  readonly failed_replica?: string;
  /** How long the call may take. After that it counts as ended, even if no end was reported. */
  readonly wait_ms: number;
}

export type CallLease =
  | (CalledBy & { readonly kind: "go"; readonly number: number; readonly replica_id: string })
  /** No replica takes the call now: ask again at `again_at`. `update_ms`: the longest update by the settings. */
  | { readonly kind: "wait"; readonly again_at: number; readonly reason: string; readonly update_ms?: number }
  /** The fleet no longer exists. */
  | { readonly kind: "gone"; readonly reason: string };

export interface EndedCall {
  readonly number: number;
  readonly replica_id: string;
  /** `unreachable`: no connection, or a broken one. `unknown_model`: 404 for its model. `failed`: other failures. */
  readonly outcome: "answered" | "unreachable" | "unknown_model" | "failed" | "aborted";
  /** The name of the weights in the reply. */
  readonly label?: string;
}

/** Calls that can use each other's places: those of one run, with one model. */
export type CallKind = Pick<
  FleetCall,
  "scope" | "fleet_id" | "run_id" | "weights_of" | "loads_start" | "model" | "trains"
>;

/** A call that waits for a place. */
export type WantedPlace = Pick<FleetCall, "last_replica" | "failed_replica" | "wait_ms">;

/** A replica that takes calls of a kind, and what they need there. */
export interface Place extends CalledBy {
  readonly replica_id: string;
}

/** A call in flight at a place of a block. */
export interface HeldCall {
  readonly replica_id: string;
  /** How long the call may still take. */
  readonly left_ms: number;
}

/** A call that ended at a place of a block. */
export interface EndedHeldCall extends EndedCall, CalledBy {
  readonly rollout_id: string;
}

/** What an object that plays rollouts has, and what it wants. It replaces what the object reported before. */
export interface BlockAsk extends CallKind {
  /** Names this instance of the object, and the kind of calls. */
  readonly holder: string;
  /** The number of this request among those of the holder: an earlier one that arrives later is ignored. */
  readonly request: number;
  readonly calls: readonly HeldCall[];
  /** The replica of each place that it keeps without a call. */
  readonly idle: readonly string[];
  readonly ended: readonly EndedHeldCall[];
  readonly wants: readonly WantedPlace[];
}

export interface GrantedBlock {
  readonly kind: "block";
  /** A number after the ends of all calls that were reported as ended. */
  readonly end: number;
  /** Those of the ended calls that get no version, by number. */
  readonly unknown: readonly number[];
  /** Numbers for calls that begin at the block's places from now on. */
  readonly numbers: { readonly from: number; readonly count: number };
  /** Replicas whose places may be used again for other calls while this is fresh. Places at other replicas end with their calls. */
  readonly again: readonly Place[];
  /** For each call that waited, in order. */
  readonly granted: readonly (({ readonly kind: "go" } & Place) | Extract<CallLease, { kind: "wait" }>)[];
  /** The least time between two reports. */
  readonly every_ms: number;
  /** How long calls may begin at free places without another request. */
  readonly fresh_ms: number;
  /** Calls wait because replicas are at their limits. */
  readonly full: boolean;
}

/** `late`: a later request of the holder came first. */
export type BlockReply = GrantedBlock | Extract<CallLease, { kind: "gone" }> | { readonly kind: "late" };

export interface ReplicaStanding {
  readonly replica_id: string;
  readonly state: ReplicaState;
  readonly reason: string | null;
  /** Why no training run could start on the replica with its current weights. */
  readonly unfit?: string | null;
  readonly in_flight: number;
  readonly version: number | null;
  readonly since: number;
}

export interface FleetStanding {
  readonly replicas: readonly ReplicaStanding[];
  readonly max_concurrent: number;
  readonly weights: { readonly run_id: string; readonly version: number; readonly generation: number } | null;
}

export interface FleetRpc extends RunFleetRpc {
  /**
   * Reports ended calls, gets places for calls that wait, and keeps the block valid. A holder sends one at a time. After
   * a lost reply it has no free places.
   */
  renew(ask: BlockAsk): Promise<BlockReply>;
  /**
   * For one call without a block, by objects of an earlier release. Called once before a call is sent. A repeat after a
   * lost reply gets another number.
   */
  begin(call: FleetCall): Promise<CallLease>;
  /**
   * Called once when a call that began with `begin` has ended. Returns the call's end number; `end` is null if the version that sampled it
   * cannot be known. Null: the fleet does not exist here.
   */
  ended(call: EndedCall): Promise<{ readonly end: number | null } | null>;
  /**
   * Called before a replica is removed or its address changes, since its engine could not be resumed afterwards. No
   * update of the replica starts for some minutes. Returns why it may not be removed now; null: it may. `replica_id`
   * null: all replicas, and no update starts for a minute.
   */
  letGo(of: Pick<FleetCall, "scope" | "fleet_id">, replica_id: string | null): Promise<string | null>;
  /** The settings or the replicas have changed. Creates the object's state if necessary. */
  changed(of: Pick<FleetCall, "scope" | "fleet_id">): Promise<void>;
  /**
   * `look`: first probes each replica with whose weights no training run could start. `waits`: a run waits for the
   * replicas, so they are probed as often as if calls used them.
   */
  standing(of: Pick<FleetCall, "scope" | "fleet_id">, look?: boolean, waits?: boolean): Promise<FleetStanding>;
  /**
   * For a deletion: starts nothing more, resumes each paused engine once, and frees the storage; afterwards the fleet
   * is unknown. Returns false if an engine is paused in a step that has not ended: try again later.
   */
  free(): Promise<boolean>;
}

/** The object of a fleet. */
export function fleetObject(env: Env, scope: Scope, fleetId: string): FleetRpc {
  const stub: unknown = env.FLEET.getByName(`${folderOf(scope)}${fleetId}`);
  return stub as FleetRpc;
}
