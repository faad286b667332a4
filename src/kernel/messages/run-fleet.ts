/**
 * What runs and trainers say to the object of the fleet that a run is on. Everything may come twice, and arguments and
 * results only ever gain optional fields.
 */
import type { Scope } from "../../contract/scope.ts";

/** A call of the past, as its turn tells of it. `end` null: its end was never numbered. */
export interface PastCall {
  readonly replica_id: string;
  readonly number: number;
  readonly end: number | null;
  /** The model that it was asked by. */
  readonly model: string;
}

/** What all replicas are to serve. A later generation, then a later version, wins. */
export interface WeightOrder {
  readonly scope: Scope;
  readonly fleet_id: string;
  readonly run_id: string;
  readonly generation: number;
  readonly version: number;
  /** Of the trainer that published it: reports of `applied` are made with it. */
  readonly epoch: number;
  readonly location: string | null;
  readonly label: string | null;
  /** Its run says where version 0 is: what a server was started with is not taken for it. */
  readonly loads_start?: true;
}

/** Somebody else brings a replica to a version: about to (`pending`), or done (`applied`), or it did not work. */
export interface ReplicaReport {
  readonly run_id: string;
  readonly generation: number;
  readonly version: number;
  readonly replica: string;
  readonly state: "pending" | "applied" | "failed";
}

/** What an object of the kernel asks of a fleet's object. */
export interface RunFleetRpc {
  /** The version that sampled each, in their order; null where nobody can say. */
  versions(run_id: string, calls: readonly PastCall[]): Promise<readonly (number | null)[]>;
  /** Brings the replicas to these weights, one after another, however long that takes. */
  update(order: WeightOrder): Promise<void>;
  reported(of: { readonly scope: Scope; readonly fleet_id: string }, report: ReplicaReport): Promise<void>;
  /** A run that trained on it is over: its weights are nobody's. */
  release(run_id: string): Promise<void>;
}
