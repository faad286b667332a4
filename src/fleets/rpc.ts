/**
 * What a fleet's object is asked; what runs and trainers ask of it is declared in src/kernel/messages/run-fleet.ts. Everything
 * may come twice, and arguments and results only ever gain optional fields. Times are epoch milliseconds.
 *
 * Which weights sampled a call is told without clocks. The object numbers what happens: each call as it begins and as it
 * ends, and each moment from which a replica's weights may be others. A call was sampled by one version if no such
 * moment lies between its two numbers.
 */

import type { Scope } from "../contract/scope.ts";
import { folderOf } from "../kernel/kit/names.ts";
import type { CalledBy } from "../kernel/messages/endpoint-wire.ts";
import type { RunFleetRpc } from "../kernel/messages/run-fleet.ts";
import type { ReplicaState } from "./wire.ts";

/** A call of a rollout that is about to leave. */
export interface FleetCall {
  readonly scope: Scope;
  readonly fleet_id: string;
  readonly run_id: string;
  /** The run whose weights are to sample it; absent: its own. */
  readonly weights_of?: string;
  /** That run says where version 0 is: see `WeightOrder`. */
  readonly loads_start?: true;
  readonly rollout_id: string;
  readonly turn: number;
  /** The model that its run names. */
  readonly model: string;
  /** True where its tokens are to train: then it gets no replica whose weights nobody knows. */
  readonly trains: boolean;
  /** Who answered the rollout's turn before, and has its prefix cached. */
  readonly last_replica: string | null;
  /** A replica that has just failed it: another is preferred. */
  readonly failed_replica?: string;
  /** How long the call may take: then it counts as over, whether or not anybody says so. */
  readonly wait_ms: number;
}

export type FleetPermit =
  | (CalledBy & { readonly kind: "go"; readonly number: number; readonly replica_id: string })
  /** No replica takes it now: ask again then. `update_ms`: what an update of a replica may take by the fleet's settings. */
  | { readonly kind: "wait"; readonly again_at: number; readonly reason: string; readonly update_ms?: number }
  /** There is no such fleet any more. */
  | { readonly kind: "gone"; readonly reason: string };

export interface EndedCall {
  readonly number: number;
  readonly replica_id: string;
  /** `unreachable`: no connection, or one that broke. `unknown_model`: 404 for its model. `failed`: any other failure. */
  readonly outcome: "answered" | "unreachable" | "unknown_model" | "failed" | "aborted";
  /** How the reply named the weights that sampled it. */
  readonly label?: string;
}

export interface ReplicaStanding {
  readonly replica_id: string;
  readonly state: ReplicaState;
  readonly reason: string | null;
  /** Why no training run could begin on it by the weights that it has. */
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
  /** Once before a call leaves. A repeat of one whose reply was lost gets another number. */
  begin(call: FleetCall): Promise<FleetPermit>;
  /** Once it has ended; its number at that moment, null where nobody can say what sampled it. Null: no such fleet here. */
  ended(call: EndedCall): Promise<{ readonly end: number | null } | null>;
  /**
   * Before a replica is taken out or gets another address, by which its engine could not be resumed any more: no update
   * of it begins for some minutes. Why it may not be taken out now; null: it may. `replica_id` null: all of them, and
   * none begins for a minute.
   */
  letGo(of: Pick<FleetCall, "scope" | "fleet_id">, replica_id: string | null): Promise<string | null>;
  /** Its settings or its replicas are not what they were. Also begins it. */
  changed(of: Pick<FleetCall, "scope" | "fleet_id">): Promise<void>;
  /**
   * `look`: after a look at each replica by whose weights no training run could begin. `waits`: a run waits for its
   * replicas, so that they are looked at as while calls use them.
   */
  standing(of: Pick<FleetCall, "scope" | "fleet_id">, look?: boolean, waits?: boolean): Promise<FleetStanding>;
  /**
   * Begins nothing more, resumes what it has paused, once, and frees its storage, since it is deleted: it is unknown from
   * here on. False: an engine is paused in a step that has not ended, so that it is to be asked again.
   */
  free(): Promise<boolean>;
}

/** A fleet: which of its replicas takes a call, and which weights they have. */
export function fleetObject(env: Env, scope: Scope, fleetId: string): FleetRpc {
  const stub: unknown = env.FLEET.getByName(`${folderOf(scope)}${fleetId}`);
  return stub as FleetRpc;
}
