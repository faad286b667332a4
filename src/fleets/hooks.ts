/** What the rest of the platform asks of fleets. */
import type { Scope } from "../contract/scope.ts";
import type { FleetHooks, FleetLimits } from "../kernel/kit/fleet-hooks.ts";
import type { OwnedObject } from "../kernel/kit/slice-hooks.ts";
import { findPlace } from "./place.ts";
import { fleetsOfProject } from "./queries.ts";
import { fleetReach } from "./reach.ts";
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

export const fleetHooks: FleetHooks = { find: findPlace, reach: fleetReach, limits, object: fleetObject };

/**
 * An engine that is paused in a step which has not ended keeps its fleet: only the fleet knows of it, and only while its keys
 * are there.
 */
export async function fleetObjects(env: Env, scope: Scope, limit: number): Promise<OwnedObject[]> {
  const ids = await fleetsOfProject(env.DB, scope, limit);
  return ids.map((id) => () => fleetObject(env, scope, id).free());
}
