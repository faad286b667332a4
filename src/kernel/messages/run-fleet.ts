/**
 * What runs and trainers send to the object of their fleet. Every message may arrive twice, and arguments and results
 * only ever gain optional fields.
 */
import type { Scope } from "../../contract/scope.ts";

/** A past call, as its turn recorded it. `end` is null if its end was never numbered. */
export interface PastCall {
  readonly replica_id: string;
  readonly number: number;
  readonly end: number | null;
  /** The name of the model in the request. */
  readonly model: string;
}

/** The weights that all replicas must serve. A later generation wins, then a later version. */
export interface WeightOrder {
  readonly scope: Scope;
  readonly fleet_id: string;
  readonly run_id: string;
  readonly generation: number;
  readonly version: number;
  /** The epoch of the trainer that published it. Reports of `applied` use it. */
  readonly epoch: number;
  readonly location: string | null;
  readonly label: string | null;
  /** The run says where version 0 is, so the weights that a server was started with do not count as version 0. */
  readonly loads_start?: true;
}

/** Something other than the fleet updates a replica: it is about to (`pending`), has done so (`applied`), or failed. */
export interface ReplicaReport {
  readonly run_id: string;
  readonly generation: number;
  readonly version: number;
  readonly replica: string;
  readonly state: "pending" | "applied" | "failed";
}

/** The methods of a fleet's object that objects of the kernel call. */
export interface RunFleetRpc {
  /** The version that sampled each call, in order; null if it is unknown. */
  versions(run_id: string, calls: readonly PastCall[]): Promise<readonly (number | null)[]>;
  /** Updates the replicas to these weights, one after another, however long that takes. */
  update(order: WeightOrder): Promise<void>;
  reported(of: { readonly scope: Scope; readonly fleet_id: string }, report: ReplicaReport): Promise<void>;
  /** A run that trained on the fleet has ended: the fleet is free for other weights. */
  release(run_id: string): Promise<void>;
}
