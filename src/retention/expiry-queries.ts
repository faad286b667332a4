/** Queries for a project's retention, and for the data that is older than it. */
import { and, asc, eq, inArray, isNotNull, isNull, lt, notExists, sql } from "drizzle-orm";
import { DEFAULT_RETENTION, type Retention } from "../contract/identity.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { unfinishedRuns } from "../kernel/db/runs.ts";
import {
  cachedJudgements,
  datasets,
  datasetUploads,
  deletions,
  idempotencyKeys,
  projects,
  runs,
} from "../kernel/db/schema.ts";
import { type Condition, type InProject, inOrganization, inProject, type ProjectTable } from "../kernel/db/scoped.ts";
import { tablesOf } from "../kernel/db/slice-tables.ts";

/** Null for a project that does not exist or is being deleted. */
export async function retentionOf(database: Database, { orgId, projectId }: Scope): Promise<Retention | null> {
  const rows = await inOrganization(database, orgId).columns(
    { retention: projects.retention },
    projects,
    eq(projects.id, projectId),
    isNull(projects.deleted_at),
  );
  return rows[0] === undefined ? null : { ...DEFAULT_RETENTION, ...rows[0].retention };
}

/** Runs that ended before `before` (epoch milliseconds) and are not being deleted: the oldest, at most `limit`. */
export async function endedRunsBefore(
  database: Database,
  scope: Scope,
  before: number,
  limit: number,
): Promise<string[]> {
  const ended = and(isNotNull(runs.finished_at), lt(runs.finished_at, before), lt(runs.created_at, before));
  const rows = await inProject(database, scope)
    .columns({ id: runs.id }, runs, ended, isNull(runs.deleted_at))
    .orderBy(asc(runs.created_at), asc(runs.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** Datasets that no unfinished run uses: the oldest, at most `limit`. */
export async function datasetsBefore(
  database: Database,
  scope: Scope,
  before: number,
  limit: number,
): Promise<string[]> {
  const using = unfinishedRuns(database, scope, eq(runs.dataset_id, datasets.id));
  const rows = await inProject(database, scope)
    .columns({ id: datasets.id }, datasets, lt(datasets.created_at, before), notExists(using))
    .orderBy(asc(datasets.created_at), asc(datasets.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** Uploads in parts that began before `before`, finished or not: the oldest, at most `limit`. */
export async function uploadsBefore(
  database: Database,
  scope: Scope,
  before: number,
  limit: number,
): Promise<string[]> {
  const rows = await inProject(database, scope)
    .columns({ id: datasetUploads.id }, datasetUploads, lt(datasetUploads.created_at, before))
    .orderBy(asc(datasetUploads.created_at), asc(datasetUploads.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** Deletes at most `limit` judgements that are older. True: there may be more. */
export function dropJudgements(database: Database, scope: Scope, before: number, limit: number): Promise<boolean> {
  return dropSome(inProject(database, scope), cachedJudgements, lt(cachedJudgements.created_at, before), limit);
}

export function dropIdempotencyKeys(database: Database, scope: Scope, before: number, limit: number): Promise<boolean> {
  return dropSome(inProject(database, scope), idempotencyKeys, lt(idempotencyKeys.created_at, before), limit);
}

/** Deletes old receipts of the organisation, also those of deleted projects, which have no reconciliation. */
export async function dropReceipts(database: Database, orgId: string, before: number, limit: number): Promise<boolean> {
  const owned = inOrganization(database, orgId);
  const gone = and(eq(deletions.state, "done"), lt(deletions.finished_at, before));
  const first = owned.columns({ id: deletions.id }, deletions, gone).limit(limit);
  const { meta } = await owned.delete(deletions, inArray(deletions.id, first));
  return meta.changes >= limit;
}

async function dropSome(owned: InProject, table: ProjectTable, old: Condition, limit: number): Promise<boolean> {
  const first = owned.columns({ at: sql`rowid` }, table, old).limit(limit);
  const { meta } = await owned.delete(table, sql`rowid in ${first}`);
  return meta.changes >= limit;
}

/** True while the project has data that will expire some day. */
export async function hasToExpire(database: Database, scope: Scope, kept: Retention): Promise<boolean> {
  const project = inProject(database, scope);
  const tables: ProjectTable[] = [idempotencyKeys, datasetUploads, deletions, ...tablesOf("expiring")];
  if (kept.runs_days !== null) tables.push(runs);
  if (kept.datasets_days !== null) tables.push(datasets);
  if (kept.verdicts_days !== null) tables.push(cachedJudgements);
  const [one, ...others] = tables.map((table) => {
    return project.columns({ n: sql<number>`1` }, table).limit(1);
  });
  if (one === undefined) return false;
  const found = await project.batch([one, ...others]);
  return found.some((rows) => rows.length > 0);
}
