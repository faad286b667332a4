/**
 * Endpoints: addresses of models, and their sealed keys.
 *
 * Two kinds share the table. A named one is a resource of its project. An inline one has no name, belongs to one run
 * and is written together with it (runs.ts). A deleted one keeps its row for the runs that used it, without name and
 * key: for clients it is gone, and its name is free.
 */
import { eq, notExists, or, type SQL, sql } from "drizzle-orm";
import type { EndpointView } from "../../contract/endpoint.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { insertOnce, type Kept, type NewRow, type Remembered } from "./idempotency-keys.ts";
import { namedRows } from "./named-rows.ts";
import { seconds } from "./page.ts";
import { type Deleted, RUNS_LISTED, unfinishedRuns } from "./runs.ts";
import { type EndpointRow, endpoints, runs } from "./schema.ts";
import { inProject } from "./scoped.ts";

export type NamedEndpoint = EndpointRow & { readonly name: string };
export type NewEndpoint = Omit<NamedEndpoint, "org_id" | "project_id">;
export type EndpointChanges = {
  readonly [Column in Exclude<keyof NewEndpoint, "id" | "created_at">]?: NewEndpoint[Column] | undefined;
};

const named = namedRows(endpoints);
/** Named endpoints only. */
export const { find: findEndpoint, list: listEndpoints } = named;

/** An endpoint by id, deleted or not: for the runs that name it. */
export async function getEndpoint(database: Database, scope: Scope, id: string): Promise<EndpointRow | null> {
  const rows = await inProject(database, scope).select(endpoints, eq(endpoints.id, id));
  return rows[0] ?? null;
}

export function insertEndpoint(
  database: Database,
  scope: Scope,
  endpoint: NewRow<typeof endpoints>,
  made: Remembered | null,
): Promise<Kept> {
  return insertOnce(database, scope, endpoints, endpoint, made);
}

/** Null if its address or key differs from `before`, so that the caller's decision is outdated, or if it is gone. */
export function updateEndpoint(
  database: Database,
  scope: Scope,
  { id, base_url, sealed_key }: Pick<NamedEndpoint, "id" | "base_url" | "sealed_key">,
  changes: EndpointChanges,
) {
  const unmoved = [eq(endpoints.base_url, base_url), sql`${endpoints.sealed_key} is ${sealed_key}`];
  return named.update(database, scope, id, changes, ...unmoved);
}

/**
 * Adds a name to what an endpoint refuses, named or inline. True if it is stored, now or before; false if there are too
 * many names, or if the endpoint has another address by now.
 */
export async function keepRefused(
  database: Database,
  scope: Scope,
  { id, base_url, name }: { readonly id: string; readonly base_url: string; readonly name: string },
): Promise<boolean> {
  const before = sql`coalesce(${endpoints.refuses}, '[]')`;
  const known = sql`exists (select 1 from json_each(${before}) where value = ${name})`;
  const after = sql`case when ${known} then ${before} else json_insert(${before}, '$[#]', ${name}) end`;
  const fits = sql`(${known} or json_array_length(${before}) < ${LIMITS.refusedNames})`;
  const rows = await inProject(database, scope)
    .update(endpoints, { refuses: after }, eq(endpoints.id, id), eq(endpoints.base_url, base_url), fits)
    .returning({ id: endpoints.id });
  return rows.length > 0;
}

/**
 * Deletes an endpoint that no unfinished run uses; otherwise returns the runs that do, as far as the list of runs
 * knows; the list may be behind. A run that is being accepted at the same moment may still name it: its rollouts then
 * fail and say that the endpoint was deleted.
 */
export async function deleteEndpoint(database: Database, scope: Scope, id: string, now: number): Promise<Deleted> {
  const project = inProject(database, scope);
  const used = () => unfinishedRuns(database, scope, or(eq(runs.endpoint_id, id), judgesAt(id)));
  const [deleted, using] = await project.batch([
    project
      .update(endpoints, { name: null, sealed_key: null, deleted_at: now }, eq(endpoints.id, id), notExists(used()))
      .returning({ id: endpoints.id }),
    used().limit(RUNS_LISTED),
  ]);
  return { deleted: deleted.length > 0, usedBy: using.map((run) => run.id) };
}

/** Runs with a judge at this endpoint. */
function judgesAt(endpointId: string): SQL {
  return sql`exists (select 1 from json_each(${runs.spec}, '$.judges')
    where json_extract(value, '$.endpoint_id') = ${endpointId})`;
}

/**
 * A named endpoint in the shape of the API. Members are listed one by one, so that the sealed key is never included.
 */
export function endpointViewOf(endpoint: NamedEndpoint): EndpointView {
  return {
    object: "endpoint",
    id: endpoint.id,
    name: endpoint.name,
    base_url: endpoint.base_url,
    api_key_last4: endpoint.api_key_last4,
    max_concurrent: endpoint.max_concurrent,
    rpm: endpoint.rpm,
    prices: endpoint.prices,
    refuses: [...(endpoint.refuses ?? [])],
    silence_limit_s: endpoint.silence_limit_s,
    capabilities: endpoint.capabilities,
    created_at: seconds(endpoint.created_at),
    updated_at: seconds(endpoint.updated_at ?? endpoint.created_at),
  };
}
