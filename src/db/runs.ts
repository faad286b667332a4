/**
 * Runs: accepted here, then kept up to date by their object. A run is read with what may be shown of its endpoint,
 * never with the sealed key.
 */
import { and, eq, getTableColumns, like, or, SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { RunKind, RunStatus } from "../contract/run.ts";
import type { RunPatch } from "../contract/run-control.ts";
import type { Scope } from "../contract/scope.ts";
import { beyond, byTime, ownedBy, type Page, within } from "./page.ts";
import { type EndpointRow, endpoints, type RunRow, runs } from "./schema.ts";

export type NewRun = Omit<RunRow, "org_id" | "project_id">;
/** An endpoint that was given with the run and belongs to it. */
export type InlineEndpointRow = Pick<EndpointRow, "id" | "base_url" | "sealed_key" | "api_key_last4" | "created_at">;
export interface RunRecord {
  readonly run: RunRow;
  readonly endpoint: Pick<EndpointRow, "id" | "name" | "base_url" | "api_key_last4">;
}

export interface RunFilter extends Page {
  readonly kind: RunKind | null;
  readonly status: RunStatus | null;
  /** A version matches itself and what it begins: "1" matches "1.0.2". */
  readonly environment: { readonly id: string; readonly version: string | null } | null;
  /** Pairs that must all stand in the run's metadata. */
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Writes a run and the endpoint that came with it, if one did, both or neither, in one call. `conflict`: a run with this
 * idempotency key is already there, and nothing was written.
 */
export async function insertRun(
  database: D1Database,
  scope: Scope,
  run: NewRun,
  endpoint: InlineEndpointRow | null,
  judges: readonly InlineEndpointRow[] = [],
): Promise<"inserted" | "conflict"> {
  const d1 = drizzle(database);
  const beside = endpoint === null ? judges : [endpoint, ...judges];
  const [inserted] = await d1.batch([
    d1
      .insert(runs)
      .values({ ...run, ...ownedBy(scope) })
      .onConflictDoNothing({ target: [runs.org_id, runs.project_id, runs.idempotency_key] })
      .returning({ id: runs.id }),
    ...beside.map((row) => d1.insert(endpoints).select(besideItsRun(scope, run, row))),
  ]);
  return inserted.length === 1 ? "inserted" : "conflict";
}

/** A refused run must not leave an endpoint behind. Columns in the order of the table; those not given are null. */
function besideItsRun(scope: Scope, run: NewRun, endpoint: InlineEndpointRow): SQL {
  const row: Readonly<Record<string, string | number | null>> = { ...endpoint, ...ownedBy(scope) };
  const columns = Object.keys(getTableColumns(endpoints));
  const values = columns.map((name) => sql`${row[name] ?? null}`);
  return sql`
    select ${sql.join(values, sql`, `)}
    where exists (select 1 from ${runs} where ${runs.id} = ${run.id})`;
}

export async function getRun(database: D1Database, scope: Scope, id: string): Promise<RunRecord | null> {
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
export async function listRuns(database: D1Database, scope: Scope, filter: RunFilter): Promise<RunRecord[]> {
  return selectRuns(database, scope, conditionsOf(filter))
    .orderBy(...byTime(runs, filter.order))
    .limit(filter.limit);
}

/** Brings the projection up to date. Fields left out stay as they are. */
export async function updateRun(
  database: D1Database,
  scope: Scope,
  id: string,
  changes: Partial<Pick<RunRow, "status" | "counts" | "report" | "error" | "finished_at" | "dead_letters">>,
): Promise<void> {
  await drizzle(database)
    .update(runs)
    .set(changes)
    .where(and(...within(runs, scope), eq(runs.id, id)));
}

/** What its owner may change of a run while it goes on, or after. Fields left out stay as they are. */
export async function changeRun(
  database: D1Database,
  scope: Scope,
  id: string,
  { max_concurrent, ...plain }: RunPatch,
): Promise<void> {
  const request =
    max_concurrent === undefined
      ? {}
      : { request: sql`json_set(${runs.request}, '$.max_concurrent', ${max_concurrent})` };
  const changes = { ...plain, ...request };
  if (Object.keys(changes).length === 0) return;
  await drizzle(database)
    .update(runs)
    .set(changes)
    .where(and(...within(runs, scope), eq(runs.id, id)));
}

function selectRuns(database: D1Database, scope: Scope, conditions: readonly SQL[]) {
  return drizzle(database)
    .select({
      run: runs,
      endpoint: {
        id: endpoints.id,
        name: endpoints.name,
        base_url: endpoints.base_url,
        api_key_last4: endpoints.api_key_last4,
      },
    })
    .from(runs)
    .innerJoin(endpoints, eq(endpoints.id, runs.endpoint_id))
    .where(and(...within(runs, scope), ...conditions))
    .$dynamic();
}

function conditionsOf(filter: RunFilter): SQL[] {
  const conditions = [
    filter.kind && eq(runs.kind, filter.kind),
    filter.status && eq(runs.status, filter.status),
    filter.environment && eq(runs.environment_id, filter.environment.id),
    filter.environment?.version && versionIs(filter.environment.version),
    ...beyond(runs, filter),
    ...Object.entries(filter.metadata).map(([key, value]) => metadataIs(key, value)),
  ];
  return conditions.filter((condition) => condition instanceof SQL);
}

function versionIs(version: string): SQL | undefined {
  return or(eq(runs.environment_version, version), like(runs.environment_version, `${version}.%`));
}

/** Compares keys as values rather than as a JSON path, where a quote in a key would need an escape SQLite lacks. */
function metadataIs(key: string, value: string): SQL {
  return sql`exists (select 1 from json_each(${runs.metadata}) where key = ${key} and value = ${value})`;
}
