/** The replicas of a fleet. Fleets and replicas go by id or name. */
import type { Deleted } from "../contract/endpoint.ts";
import type { ReplicaPatch, ReplicaRequestInput, ReplicaView } from "../fleets/wire.ts";
import type { CallOptions, PostOptions } from "./options.ts";
import { type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Replicas extends Resource {
  add(fleet: string, request: ReplicaRequestInput, options: PostOptions = {}): Promise<ReplicaView> {
    return this.requests.post(pathTo`/fleets/${fleet}/replicas`, request, options);
  }

  /** All of them on one page, in the order in which they were added. */
  list(fleet: string, options: CallOptions = {}): PagePromise<ReplicaView> {
    return this.requests.list(pathTo`/fleets/${fleet}/replicas`, {}, options);
  }

  get(fleet: string, replica: string, options: CallOptions = {}): Promise<ReplicaView> {
    return this.requests.json(pathTo`/fleets/${fleet}/replicas/${replica}`, options);
  }

  /** Changes only the fields that are given. With `draining: true` it finishes its rollouts and gets no new ones. */
  update(fleet: string, replica: string, patch: ReplicaPatch, options: CallOptions = {}): Promise<ReplicaView> {
    return this.requests.patch(pathTo`/fleets/${fleet}/replicas/${replica}`, patch, options);
  }

  remove(fleet: string, replica: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathTo`/fleets/${fleet}/replicas/${replica}`, options);
  }

  /** Asks the replica again what it supports. */
  probe(fleet: string, replica: string, options: PostOptions = {}): Promise<ReplicaView> {
    return this.requests.post(pathTo`/fleets/${fleet}/replicas/${replica}/probe`, {}, options);
  }
}
