/**
 * The rows that are deleted together with a run. They are counted first and deleted after that. So a caller that does
 * both counts each row once, even if it is interrupted and repeats.
 */
import { count, eq, exists, inArray, isNull, ne, notExists, sql } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { endpoints, runs, trainerTokens } from "./schema.ts";
import { type Condition, inProject } from "./scoped.ts";
import { tablesOf } from "./slice-tables.ts";

/**
 * Rows of a run: its own, the endpoints that came with it and that no other run uses, its trainer's tokens, and the
 * rows that slices have about it.
 */
export async function countRowsOfRun(database: Database, scope: Scope, runId: string): Promise<number> {
  const project = inProject(database, scope);
  const counts = await project.batch([
    project.columns({ n: count() }, trainerTokens, eq(trainerTokens.run_id, runId)),
    ...tablesOf("ofRun").map((table) => project.columns({ n: count() }, table, eq(table.run_id, runId))),
    project.columns({ n: count() }, endpoints, ...endpointOf(database, scope, runId)),
    project.columns({ n: count() }, endpoints, ...judgesOf(database, scope, runId)),
    project.columns({ n: count() }, runs, eq(runs.id, runId)),
  ]);
  return counts.reduce((sum, [row]) => sum + (row?.n ?? 0), 0);
}

/** Deletes all of them or none. */
export async function deleteRowsOfRun(database: Database, scope: Scope, runId: string): Promise<void> {
  const project = inProject(database, scope);
  await project.batch([
    project.delete(trainerTokens, eq(trainerTokens.run_id, runId)),
    ...tablesOf("ofRun").map((table) => project.delete(table, eq(table.run_id, runId))),
    project.delete(endpoints, ...endpointOf(database, scope, runId)),
    project.delete(endpoints, ...judgesOf(database, scope, runId)),
    project.delete(runs, eq(runs.id, runId)),
  ]);
}

/** Given inline in a run, and not deleted. */
function inline(): Condition[] {
  return [isNull(endpoints.name), isNull(endpoints.deleted_at)];
}

/** The policy's endpoint, unless another run that was derived from this one still names it. */
function endpointOf(database: Database, scope: Scope, runId: string): Condition[] {
  const project = inProject(database, scope);
  const own = project.columns({ id: runs.endpoint_id }, runs, eq(runs.id, runId));
  const others = project.columns({ id: runs.id }, runs, eq(runs.endpoint_id, endpoints.id), ne(runs.id, runId));
  return [...inline(), inArray(endpoints.id, own), notExists(others)];
}

/** The endpoints of its judges. The project's other runs are searched only if there are any. */
function judgesOf(database: Database, scope: Scope, runId: string): Condition[] {
  const project = inProject(database, scope);
  const asked = sql`exists (select 1 from json_each(${runs.spec}, '$.judges')
    where json_extract(value, '$.endpoint_id') = ${endpoints.id})`;
  const own = project.columns({ id: runs.id }, runs, eq(runs.id, runId), asked);
  const others = project.columns({ id: runs.id }, runs, ne(runs.id, runId), asked);
  return [...inline(), exists(own), notExists(others)];
}
