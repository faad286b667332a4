/**
 * Fleets and their replicas: engines that serve one policy, with their keys, sealed. A deleted fleet keeps its row for the
 * runs that name it, without its name, so that the name is free.
 */
import { eq, isNotNull, or, sql } from "drizzle-orm";
import type { Scope } from "../contract/scope.ts";
import { type FleetRow, fleets, type ReplicaRow, replicas } from "./doors-schema.ts";
import { inProject } from "./scoped.ts";

export type NamedFleet = FleetRow & { readonly name: string };

/** A fleet by id, whatever became of it: for the runs that name it. */
export async function getFleet(database: D1Database, scope: Scope, id: string): Promise<FleetRow | null> {
  const rows = await inProject(database, scope).select(fleets, eq(fleets.id, id));
  return rows[0] ?? null;
}

/** A fleet by name or id; null for a deleted one. */
export async function findFleet(database: D1Database, scope: Scope, nameOrId: string): Promise<NamedFleet | null> {
  const named = or(eq(fleets.name, nameOrId), eq(fleets.id, nameOrId));
  const rows = await inProject(database, scope).select(fleets, isNotNull(fleets.name), named);
  return rows.find(isNamed) ?? null;
}

/** In the order in which they were added. */
export async function replicasOf(database: D1Database, scope: Scope, fleetId: string): Promise<ReplicaRow[]> {
  const rows = inProject(database, scope).select(replicas, eq(replicas.fleet_id, fleetId));
  return await rows.orderBy(sql`${replicas.created_at}`, sql`${replicas.id}`);
}

export async function getReplica(database: D1Database, scope: Scope, id: string): Promise<ReplicaRow | null> {
  const rows = await inProject(database, scope).select(replicas, eq(replicas.id, id));
  return rows[0] ?? null;
}

function isNamed(row: FleetRow): row is NamedFleet {
  return row.name !== null;
}
