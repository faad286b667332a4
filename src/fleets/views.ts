/** The wire form of fleets and replicas: the stored rows, with the current state from the fleet object. */

import type { Scope } from "../contract/scope.ts";
import { seconds } from "../kernel/db/page.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { type Result, refuse } from "../kernel/messages/refusal.ts";
import type { NamedFleet } from "./queries.ts";
import { type FleetStanding, fleetObject, type ReplicaStanding } from "./rpc.ts";
import type { ReplicaRow } from "./tables.ts";
import type { FleetView, ReplicaView } from "./wire.ts";

export async function replicaView(env: Env, scope: Scope, replica: ReplicaRow): Promise<ReplicaView> {
  const standing = await standingOf(env, scope, replica.fleet_id);
  return replicaViewOf(replica, standing);
}

/** If the object does not answer, the stored rows can still be read. */
export async function standingOf(
  env: Env,
  scope: Scope,
  fleet_id: string,
  look = false,
): Promise<FleetStanding | null> {
  try {
    return await fleetObject(env, scope, fleet_id).standing({ scope, fleet_id }, look);
  } catch (thrown) {
    logError("the fleet's object does not answer", idsOf({ scope }), thrown);
    return null;
  }
}

/**
 * Why a replica may not be removed or get another address now: its engine is paused. `replica_id` null: any of them.
 */
export async function refusePaused(
  env: Env,
  scope: Scope,
  fleet_id: string,
  replica_id: string | null,
): Promise<Result<never> | null> {
  const why = await fleetObject(env, scope, fleet_id).letGo({ scope, fleet_id }, replica_id);
  return why === null ? null : refuse("conflict", why, null);
}

/** Notifies the fleet object of changed rows. If this is lost, the object reads them some minutes later. */
export async function notifyFleet(env: Env, scope: Scope, fleet_id: string): Promise<void> {
  try {
    await fleetObject(env, scope, fleet_id).changed({ scope, fleet_id });
  } catch (thrown) {
    logError("the fleet was not notified of its change", idsOf({ scope }), thrown);
  }
}

export function fleetViewOf(
  fleet: NamedFleet,
  replicas: readonly ReplicaRow[],
  standing: FleetStanding | null,
): FleetView {
  const { removed: _, ...update } = fleet.update;
  return {
    object: "fleet",
    id: fleet.id,
    name: fleet.name,
    update,
    prices: fleet.prices,
    location_hint: fleet.location_hint,
    max_concurrent: standing?.max_concurrent ?? 0,
    weights: standing?.weights ?? null,
    replicas: replicas.map((replica) => replicaViewOf(replica, standing)),
    created_at: seconds(fleet.created_at),
    updated_at: seconds(fleet.updated_at),
  };
}

const JOINING = { state: "joining", in_flight: 0, version: null, since: null } as const;

/** Copies field by field: the sealed keys must not be included. */
export function replicaViewOf(replica: ReplicaRow, standing: FleetStanding | null): ReplicaView {
  const found = standing?.replicas.find(({ replica_id }) => replica_id === replica.id);
  const reason = standing === null ? "the fleet's object does not answer" : "the fleet's object has not checked it yet";
  return {
    object: "replica",
    id: replica.id,
    name: replica.name,
    base_url: replica.base_url,
    control_url: replica.control_url,
    api_key_last4: replica.api_key_last4,
    max_concurrent: replica.max_concurrent,
    ...(found === undefined ? { ...JOINING, reason } : standingViewOf(found)),
    capabilities: replica.capabilities,
    created_at: seconds(replica.created_at),
    updated_at: seconds(replica.updated_at),
  };
}

function standingViewOf({ state, reason, in_flight, version, since }: ReplicaStanding) {
  return { state, reason, in_flight, version, since: seconds(since) };
}
