/** The functions of fleets that the rest of the platform calls. */
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import type { FleetHooks, FleetLimits } from "../kernel/kit/fleet-hooks.ts";
import type { OwnedObject } from "../kernel/kit/slice-hooks.ts";
import { findPlace } from "./place.ts";
import { fleetsOfProject } from "./queries.ts";
import { fleetEnds, fleetReach } from "./reach.ts";
import { fleetObject, type ReplicaStanding } from "./rpc.ts";

async function limits(env: Env, scope: Scope, fleet_id: string, waits: boolean): Promise<FleetLimits> {
  const fleet = fleetObject(env, scope, fleet_id);
  const { max_concurrent, replicas } = await fleet.standing({ scope, fleet_id }, false, waits);
  return { max_concurrent, down: max_concurrent > 0 ? null : whyDown(replicas) };
}

function whyDown(replicas: readonly ReplicaStanding[]): string {
  if (replicas.length === 0) return "the fleet has no replica";
  const [first] = replicas;
  const why =
    first === undefined ? "" : `: ${first.replica_id} is ${first.state}${first.reason ? `, ${first.reason}` : ""}`;
  return `no replica of the fleet takes calls${why}`;
}

export const fleetHooks: FleetHooks = {
  find: findPlace,
  reach: fleetReach,
  ends: fleetEnds,
  limits,
  object: fleetObject,
};

/**
 * The objects to free when a project is deleted. A fleet whose engine is paused in a step that has not ended must stay:
 * only the fleet object can resume the engine, and only while the replica's keys exist.
 */
export async function fleetObjects(env: Env, scope: Scope, limit: number): Promise<OwnedObject[]> {
  const ids = await fleetsOfProject(databaseOf(env), scope, limit);
  return ids.map((id) => () => fleetObject(env, scope, id).free());
}
