/**
 * Rows of runs that are made again from the index of runs, after the database was taken back to an earlier time.
 *
 * Invariant. A row that exists is not changed here, and nothing is written into a project that does not exist or is
 * being deleted.
 */
import { and, eq, exists, inArray, isNull, notExists, type SQL, sql } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import type { InlineEndpointRow, NewRun } from "./runs.ts";
import { endpoints, projects, type RunRow, runs } from "./schema.ts";
import { inOrganization, inProject, isOpenProject, type Rows } from "./scoped.ts";

/** What the row of a run says, and whether an endpoint that it names has no row. */
export type StoredRun = Pick<
  RunRow,
  "id" | "status" | "counts" | "dead_letters" | "stored_bytes" | "finished_at" | "deleted_at"
> & { readonly lacks_endpoint: number };

/** The rows of these runs, and whether their project exists and is not being deleted. At most 90 ids. */
export async function findStoredRuns(
  database: Database,
  scope: Scope,
  ids: readonly string[],
): Promise<{ readonly stored: readonly StoredRun[]; readonly isOpen: boolean }> {
  const project = inProject(database, scope);
  const { id, status, counts, dead_letters, stored_bytes, finished_at, deleted_at } = runs;
  const isAmong = (named: SQL) => exists(project.columns({ id: endpoints.id }, endpoints, eq(endpoints.id, named)));
  const lacks_endpoint = sql<number>`(json_extract(${runs.spec}, '$.fleet') is null
    and not ${isAmong(sql`${runs.endpoint_id}`)}) or exists (select 1 from json_each(${runs.spec}, '$.judges') as judge
    where not ${isAmong(sql`json_extract(judge.value, '$.endpoint_id')`)})`;
  const columns = { id, status, counts, dead_letters, stored_bytes, finished_at, deleted_at, lacks_endpoint };
  const open = inOrganization(database, scope.orgId).columns(
    { id: projects.id },
    projects,
    eq(projects.id, scope.projectId),
    isNull(projects.deleted_at),
  );
  const [stored, [isOpen]] = await project.batch([project.columns(columns, runs, inArray(id, [...ids])), open]);
  return { stored, isOpen: isOpen !== undefined };
}

/**
 * Writes the run and its endpoints, as far as they do not exist. True: something was written. If another run has its
 * Idempotency-Key by now, the run gets none.
 */
export async function restoreRun(
  database: Database,
  scope: Scope,
  run: NewRun,
  inline: readonly InlineEndpointRow[],
): Promise<boolean> {
  const project = inProject(database, scope);
  const runsThat = (condition: SQL): Rows<{ id: string }> => project.columns({ id: runs.id }, runs, condition);
  const [taken] = run.idempotency_key === null ? [] : await runsThat(eq(runs.idempotency_key, run.idempotency_key));
  const row = taken === undefined ? run : { ...run, idempotency_key: null };
  const open = isOpenProject(database, scope);
  const hasEndpoint = (id: string) => project.columns({ id: endpoints.id }, endpoints, eq(endpoints.id, id));
  const written = await project.batch([
    project.insertIf(sql`${open} and ${notExists(runsThat(eq(runs.id, run.id)))}`, runs, row),
    ...inline.map((endpoint) => {
      const isThere = exists(runsThat(sql`${runs.id} = ${run.id} and ${runs.deleted_at} is null`));
      return project.insertIf(sql`${isThere} and ${notExists(hasEndpoint(endpoint.id))}`, endpoints, endpoint);
    }),
  ]);
  return written.some(({ meta }) => meta.changes > 0);
}

/** The run's row as it began, and the endpoints that came with it. Null: no such run, or it is being deleted. */
export async function findBegunRun(
  database: Database,
  scope: Scope,
  id: string,
): Promise<{ readonly run: NewRun; readonly endpoints: readonly InlineEndpointRow[] } | null> {
  const project = inProject(database, scope);
  const [row] = await project.select(runs, eq(runs.id, id), isNull(runs.deleted_at));
  if (row === undefined) return null;
  const { org_id: _, project_id: __, ...stored } = row;
  const state = { counts: null, report: null, error: null, finished_at: null, written_at: null, dead_letters: 0 };
  const run: NewRun = { ...stored, ...state, status: "queued", stored_bytes: 0 };
  const named = [row.endpoint_id, ...Object.values(row.spec.judges ?? {}).map(({ endpoint_id }) => endpoint_id)];
  const isNamed = sql`${endpoints.id} in (select value from json_each(${JSON.stringify(named)}))`;
  const inline = and(isNamed, isNull(endpoints.name), isNull(endpoints.deleted_at));
  return { run, endpoints: await project.select(endpoints, inline) };
}
