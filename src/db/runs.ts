/**
 * Runs: accepted here, then kept up to date by their object. A run is read with what may be shown of its endpoint,
 * never with the sealed key.
 */
import { and, asc, desc, eq, like, or, SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { RunRequest, RunStatus } from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import { type EndpointRow, endpoints, type RunRow, runs } from "./schema.ts";

export type NewRun = Omit<RunRow, "org_id" | "project_id">;
export type NewEndpoint = Omit<EndpointRow, "org_id" | "project_id">;
export interface RunRecord {
  readonly run: RunRow;
  readonly endpoint: Pick<EndpointRow, "base_url" | "api_key_last4">;
}

/** Where a page begins: after this run, in the order of the list. */
export type RunPosition = Pick<RunRow, "id" | "created_at">;

export interface RunFilter {
  readonly kind: RunRequest["kind"] | null;
  readonly status: RunStatus | null;
  /** A version matches itself and what it begins: "1" matches "1.0.2". */
  readonly environment: { readonly id: string; readonly version: string | null } | null;
  /** Pairs that must all stand in the run's metadata. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly after: RunPosition | null;
  readonly limit: number;
  readonly order: "asc" | "desc";
}

/**
 * Writes a run and its endpoint, both or neither, in one call. `conflict`: a run with this idempotency key is already
 * there, and nothing was written.
 */
export async function insertRun(
  database: D1Database,
  scope: Scope,
  run: NewRun,
  endpoint: NewEndpoint,
): Promise<"inserted" | "conflict"> {
  const d1 = drizzle(database);
  const owner = { org_id: scope.orgId, project_id: scope.projectId };
  const [inserted] = await d1.batch([
    d1
      .insert(runs)
      .values({ ...run, ...owner })
      .onConflictDoNothing({ target: [runs.org_id, runs.project_id, runs.idempotency_key] })
      .returning({ id: runs.id }),
    // Only beside its run: a refused run must not leave an endpoint behind. Columns in the order of the table.
    d1.insert(endpoints).select(sql`
      select ${endpoint.id}, ${scope.orgId}, ${scope.projectId}, ${endpoint.base_url},
             ${endpoint.sealed_key}, ${endpoint.api_key_last4}, ${endpoint.created_at}
      where exists (select 1 from ${runs} where ${runs.id} = ${run.id})`),
  ]);
  return inserted.length === 1 ? "inserted" : "conflict";
}

export async function getRun(
  database: D1Database,
  scope: Scope,
  id: string,
): Promise<RunRecord | null> {
  const rows = await selectRuns(database, scope, [eq(runs.id, id)]);
  return rows[0] ?? null;
}

export async function findRunByIdempotencyKey(
  database: D1Database,
  scope: Scope,
  key: string,
): Promise<RunRecord | null> {
  const rows = await selectRuns(database, scope, [eq(runs.idempotency_key, key)]);
  return rows[0] ?? null;
}

/** Runs by time of creation, then id, beginning after `after`; at most `limit` of them. */
export async function listRuns(
  database: D1Database,
  scope: Scope,
  filter: RunFilter,
): Promise<RunRecord[]> {
  const direction = filter.order === "asc" ? asc : desc;
  return selectRuns(database, scope, conditionsOf(filter))
    .orderBy(direction(runs.created_at), direction(runs.id))
    .limit(filter.limit);
}

/** Brings the projection up to date. Fields left out stay as they are. */
export async function updateRun(
  database: D1Database,
  scope: Scope,
  id: string,
  changes: Partial<Pick<RunRow, "status" | "counts" | "report" | "error" | "finished_at">>,
): Promise<void> {
  await drizzle(database)
    .update(runs)
    .set(changes)
    .where(and(...within(scope), eq(runs.id, id)));
}

function selectRuns(database: D1Database, scope: Scope, conditions: readonly SQL[]) {
  return drizzle(database)
    .select({
      run: runs,
      endpoint: { base_url: endpoints.base_url, api_key_last4: endpoints.api_key_last4 },
    })
    .from(runs)
    .innerJoin(endpoints, eq(endpoints.id, runs.endpoint_id))
    .where(and(...within(scope), ...conditions))
    .$dynamic();
}

function within(scope: Scope): SQL[] {
  return [eq(runs.org_id, scope.orgId), eq(runs.project_id, scope.projectId)];
}

function conditionsOf(filter: RunFilter): SQL[] {
  const conditions = [
    filter.kind && eq(runs.kind, filter.kind),
    filter.status && eq(runs.status, filter.status),
    filter.environment && eq(runs.environment_id, filter.environment.id),
    filter.environment?.version && versionIs(filter.environment.version),
    filter.after && beyond(filter.after, filter.order),
    ...Object.entries(filter.metadata).map(([key, value]) => metadataIs(key, value)),
  ];
  return conditions.filter((condition) => condition instanceof SQL);
}

function versionIs(version: string): SQL | undefined {
  return or(eq(runs.environment_version, version), like(runs.environment_version, `${version}.%`));
}

function beyond(position: RunPosition, order: "asc" | "desc"): SQL {
  const sign = sql.raw(order === "asc" ? ">" : "<");
  return sql`(${runs.created_at}, ${runs.id}) ${sign} (${position.created_at}, ${position.id})`;
}

/** Compares keys as values rather than as a JSON path, where a quote in a key would need an escape SQLite lacks. */
function metadataIs(key: string, value: string): SQL {
  return sql`exists (select 1 from json_each(${runs.metadata}) where key = ${key} and value = ${value})`;
}
