/** Rows of a fleet and its replicas in the database. */
import { env } from "cloudflare:workers";
import { FleetUpdate } from "../../src/contract/fleet.ts";
import type { Scope } from "../../src/contract/scope.ts";
import { mintId } from "../../src/core/ids.ts";
import { type FleetRow, fleets, type ReplicaRow, replicas } from "../../src/fleets/tables.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { inProject } from "../../src/kernel/db/scoped.ts";
import { minting } from "../../src/kernel/kit/secrets.ts";

export type BareFleet = Omit<FleetRow, "org_id" | "project_id">;
export type BareReplica = Omit<ReplicaRow, "org_id" | "project_id">;

export function fleetRow(changes: Partial<BareFleet> = {}): BareFleet {
  return {
    id: mintId("fl", minting(env, Date.now())),
    name: "trained",
    update: FleetUpdate.parse({ mode: "reload" }),
    prices: null,
    location_hint: null,
    ...{ created_at: 1000, updated_at: 1000, deleted_at: null },
    ...changes,
  };
}

export function replicaRow(fleet_id: string, changes: Partial<BareReplica> = {}): BareReplica {
  return {
    id: mintId("rp", minting(env, Date.now())),
    fleet_id,
    name: "gpu-0",
    base_url: env.MODEL_URL,
    ...{ control_url: null, sealed_key: null, api_key_last4: null, sealed_control_key: null },
    ...{ max_concurrent: 4, draining: false, capabilities: null, created_at: 1000, updated_at: 1000 },
    ...changes,
  };
}

/** A fleet with one replica, which is the scripted model. */
export async function insertFleet(
  scope: Scope,
  changes: Partial<BareFleet> = {},
): Promise<{ readonly fleet: BareFleet; readonly replica: BareReplica }> {
  const project = inProject(databaseOf(env), scope);
  const fleet = fleetRow(changes);
  const replica = replicaRow(fleet.id);
  await project.batch([project.insert(fleets, fleet), project.insert(replicas, replica)]);
  return { fleet, replica };
}
