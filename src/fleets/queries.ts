/**
 * Queries for fleets and their replicas. A replica's row holds its sealed keys. A deleted fleet keeps its row for the
 * runs that name it, but without its name, so that the name can be used again.
 */
import { and, count, eq, exists, inArray, isNotNull, notExists, or, sql } from "drizzle-orm";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { insertOnce, insertWithin, isThere, type Kept, type Remembered } from "../kernel/db/idempotency-keys.ts";
import { type Named, namedRows } from "../kernel/db/named-rows.ts";
import { type Deleted, RUNS_LISTED, trainingOn, unfinishedRuns } from "../kernel/db/runs.ts";
import { runs } from "../kernel/db/schema.ts";
import { inProject } from "../kernel/db/scoped.ts";
import { type FleetRow, fleets, type ReplicaRow, replicas } from "./tables.ts";

type Owner = "org_id" | "project_id";
export type NamedFleet = Named<typeof fleets>;
export type NewFleet = Omit<NamedFleet, Owner>;
export type NewReplica = Omit<ReplicaRow, Owner>;
type Some<Row> = { readonly [Name in keyof Row]?: Row[Name] | undefined };
export type FleetChanges = Some<Pick<NamedFleet, "name" | "update" | "prices" | "location_hint">>;
export type ReplicaChanges = Some<Omit<NewReplica, "id" | "fleet_id" | "name" | "created_at">>;

const named = namedRows(fleets);
/** Only fleets that are not deleted. */
export const { find: findFleet, list: listFleets } = named;

/** A fleet by id, deleted or not: for the runs that name it. */
export async function getFleet(database: Database, scope: Scope, id: string): Promise<FleetRow | null> {
  const rows = await inProject(database, scope).select(fleets, eq(fleets.id, id));
  return rows[0] ?? null;
}

/** In the order of creation. */
export async function replicasOf(database: Database, scope: Scope, fleetId: string): Promise<ReplicaRow[]> {
  const rows = inProject(database, scope).select(replicas, eq(replicas.fleet_id, fleetId));
  return await rows.orderBy(sql`${replicas.created_at}`, sql`${replicas.id}`);
}

export async function getReplica(database: Database, scope: Scope, id: string): Promise<ReplicaRow | null> {
  const rows = await inProject(database, scope).select(replicas, eq(replicas.id, id));
  return rows[0] ?? null;
}

/** The first ids of a project's fleets, ordered by id. Includes deleted fleets, since they have objects. */
export async function fleetsOfProject(database: Database, scope: Scope, limit: number): Promise<string[]> {
  const rows = await inProject(database, scope)
    .columns({ id: fleets.id }, fleets)
    .orderBy(sql`${fleets.id}`)
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** The replicas of several fleets, in the order of creation. */
export async function replicasOfAll(
  database: Database,
  scope: Scope,
  fleetIds: readonly string[],
): Promise<ReplicaRow[]> {
  if (fleetIds.length === 0) return [];
  const rows = inProject(database, scope).select(replicas, inArray(replicas.fleet_id, [...fleetIds]));
  return await rows.orderBy(sql`${replicas.created_at}`, sql`${replicas.id}`);
}

/** A replica of the fleet, by name or id. */
export async function findReplica(
  database: Database,
  scope: Scope,
  fleetId: string,
  nameOrId: string,
): Promise<ReplicaRow | null> {
  const meant = or(eq(replicas.name, nameOrId), eq(replicas.id, nameOrId));
  const rows = await inProject(database, scope).select(replicas, eq(replicas.fleet_id, fleetId), meant);
  return rows[0] ?? null;
}

/**
 * Inserts a fleet and its first replicas, all or none. `full`: the project already has the maximum number of fleets.
 */
export function insertFleet(
  database: Database,
  scope: Scope,
  fleet: NewFleet,
  first: readonly NewReplica[],
  made: Remembered | null,
): Promise<Kept | "full"> {
  const project = inProject(database, scope);
  const beside = first.map((replica) => project.insertIf(isThere(project, fleets, fleet.id), replicas, replica));
  const room = { atMost: LIMITS.fleetsPerProject, counted: isNotNull(fleets.name) };
  return insertWithin(database, scope, fleets, fleet, made, { ...room, beside });
}

/** `gone`: the fleet does not exist, or already has the maximum number of replicas. */
export function insertReplica(
  database: Database,
  scope: Scope,
  replica: NewReplica,
  made: Remembered | null,
): Promise<Kept> {
  const project = inProject(database, scope);
  const there = project.columns({ id: fleets.id }, fleets, eq(fleets.id, replica.fleet_id), isNotNull(fleets.name));
  const beside = project.columns({ n: count() }, replicas, eq(replicas.fleet_id, replica.fleet_id));
  const also = sql`${exists(there)} and (${beside}) < ${LIMITS.fleetReplicas}`;
  return insertOnce(database, scope, replicas, replica, made, { also });
}

/** Null: no such fleet, or `untrained` is set and an unfinished training run uses it. `taken`: the name is used. */
export function updateFleet(
  database: Database,
  scope: Scope,
  id: string,
  changes: FleetChanges & { readonly updated_at: number },
  untrained = false,
) {
  const free = untrained ? [notExists(trainingOn(database, scope, id))] : [];
  return named.update(database, scope, id, changes, ...free);
}

/**
 * Null: the replica is gone, or its addresses or keys differ from `before`, so a decision based on them is not valid.
 */
export async function updateReplica(
  database: Database,
  scope: Scope,
  before: ReplicaRow,
  changes: ReplicaChanges,
): Promise<ReplicaRow | null> {
  const unmoved = [
    eq(replicas.id, before.id),
    eq(replicas.base_url, before.base_url),
    sql`${replicas.control_url} is ${before.control_url}`,
    sql`${replicas.sealed_key} is ${before.sealed_key}`,
    sql`${replicas.sealed_control_key} is ${before.sealed_control_key}`,
  ];
  const rows = await inProject(database, scope)
    .update(replicas, changes, ...unmoved)
    .returning();
  return rows[0] ?? null;
}

/** Its keys are deleted too. */
export async function deleteReplica(database: Database, scope: Scope, id: string): Promise<void> {
  await inProject(database, scope).delete(replicas, eq(replicas.id, id));
}

/** Ids of unfinished runs that name the fleet, at most `RUNS_LISTED`. */
export async function runsOnFleet(database: Database, scope: Scope, id: string): Promise<string[]> {
  const using = await unfinishedRuns(database, scope, eq(runs.endpoint_id, id)).limit(RUNS_LISTED);
  return using.map((run) => run.id);
}

/** Deletes a fleet that no unfinished run uses, with its replicas; otherwise returns the runs that use it. */
export async function deleteFleet(database: Database, scope: Scope, id: string, now: number): Promise<Deleted> {
  const project = inProject(database, scope);
  const used = () => unfinishedRuns(database, scope, eq(runs.endpoint_id, id));
  const [deleted, , using] = await project.batch([
    project
      .update(fleets, { name: null, deleted_at: now }, eq(fleets.id, id), notExists(used()))
      .returning({ id: fleets.id }),
    project.delete(replicas, and(eq(replicas.fleet_id, id), notExists(used()))),
    used().limit(RUNS_LISTED),
  ]);
  return { deleted: deleted.length > 0, usedBy: using.map((run) => run.id) };
}
