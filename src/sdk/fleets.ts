/** Fleets: several servers of one model that runs use as one; by id or name. */
import type { FleetPatch, FleetRequestInput, FleetView } from "../fleets/wire.ts";
import { Replicas } from "./replicas.ts";
import { Editable } from "./resource.ts";

/**
 * Keys are sealed and never shown again. `create` asks each replica once what it supports. `update` replaces the field
 * `update` as a whole. `delete` throws `conflict` while an unfinished run uses the fleet.
 */
export class Fleets extends Editable<FleetView, FleetRequestInput, FleetPatch> {
  protected readonly path = "/fleets";
  readonly replicas: Replicas = new Replicas(this.requests);
}
