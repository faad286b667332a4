/** The part of the client about fleets and their replicas. */
import type { Deleted } from "../contract/endpoint.ts";
import type {
  FleetPatch,
  FleetRequestInput,
  FleetView,
  ReplicaPatch,
  ReplicaRequestInput,
  ReplicaView,
} from "../contract/fleet.ts";
import type { CallOptions, ListQuery, Page, PostOptions } from "./options.ts";
import { eachOf, search } from "./requests.ts";
import { WebhooksClient } from "./webhooks-client.ts";

export class FleetsClient extends WebhooksClient {
  /** Keys are sealed and never read back. Each replica is asked once what it can do. */
  createFleet(request: FleetRequestInput, options: PostOptions = {}): Promise<FleetView> {
    return this.requests.post("/fleets", request, options);
  }

  /** With each of its replicas, and how it is. */
  getFleet(idOrName: string, options: CallOptions = {}): Promise<FleetView> {
    return this.requests.json(pathOf(idOrName), options);
  }

  listFleets(query: ListQuery = {}, options: CallOptions = {}): Promise<Page<FleetView>> {
    return this.requests.json(`/fleets${search(query)}`, options);
  }

  fleets(query: ListQuery = {}, options: CallOptions = {}): AsyncGenerator<FleetView> {
    return eachOf(query, (page) => this.listFleets(page, options));
  }

  /** Only what is named changes; `update` as a whole. */
  updateFleet(idOrName: string, patch: FleetPatch, options: CallOptions = {}): Promise<FleetView> {
    return this.requests.patch(pathOf(idOrName), patch, options);
  }

  /** Refused with `conflict` while an unfinished run uses it. */
  deleteFleet(idOrName: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathOf(idOrName), options);
  }

  addReplica(fleet: string, request: ReplicaRequestInput, options: PostOptions = {}): Promise<ReplicaView> {
    return this.requests.post(`${pathOf(fleet)}/replicas`, request, options);
  }

  /** All of them, in the order in which they were added. */
  listReplicas(fleet: string, options: CallOptions = {}): Promise<Page<ReplicaView>> {
    return this.requests.json(`${pathOf(fleet)}/replicas`, options);
  }

  getReplica(fleet: string, replica: string, options: CallOptions = {}): Promise<ReplicaView> {
    return this.requests.json(pathOf(fleet, replica), options);
  }

  /** Only what is named changes. `draining: true`: it ends the rollouts it has, and gets no others. */
  updateReplica(fleet: string, replica: string, patch: ReplicaPatch, options: CallOptions = {}): Promise<ReplicaView> {
    return this.requests.patch(pathOf(fleet, replica), patch, options);
  }

  removeReplica(fleet: string, replica: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathOf(fleet, replica), options);
  }

  /** Looks again at what it can do. */
  probeReplica(fleet: string, replica: string, options: PostOptions = {}): Promise<ReplicaView> {
    return this.requests.post(`${pathOf(fleet, replica)}/probe`, {}, options);
  }
}

function pathOf(fleet: string, replica?: string): string {
  const path = `/fleets/${encodeURIComponent(fleet)}`;
  return replica === undefined ? path : `${path}/replicas/${encodeURIComponent(replica)}`;
}
