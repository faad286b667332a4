/**
 * Queries for the deletion of whole projects and organisations. Access ends with the batch that starts the deletion.
 * Rows are counted before they are deleted, slice by slice.
 */
import { asc, count, eq, inArray, isNull, ne, notExists, or, sql } from "drizzle-orm";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import {
  cachedJudgements,
  type DeletionRow,
  datasets,
  datasetUploads,
  deletions,
  endpoints,
  idempotencyKeys,
  organizations,
  projects,
  runs,
  secrets,
  trainerTokens,
} from "../kernel/db/schema.ts";
import {
  type Condition,
  inOrganization,
  inProject,
  type OrganizationTable,
  type ProjectTable,
} from "../kernel/db/scoped.ts";
import { tablesOf } from "../kernel/db/slice-tables.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import { type NewDeletion, rowOfNew, there } from "./deletion-queries.ts";

/** Closes the project, revokes its keys and writes its deletion; a repeat returns the first. Null: no project. */
export async function beginProjectDeletion(
  database: Database,
  orgId: string,
  projectId: string,
  made: NewDeletion,
): Promise<DeletionRow | null> {
  const owned = inOrganization(database, orgId);
  const now = made.created_at;
  const open = [eq(projects.id, projectId), isNull(projects.deleted_at)];
  const ofProject = [eq(deletions.kind, "project"), eq(deletions.target_id, projectId)];
  const row = rowOfNew(made, "project", projectId);
  const [, , , found] = await owned.batch([
    owned.insertIf(there(owned.columns({ id: projects.id }, projects, ...open)), deletions, {
      ...row,
      project_id: projectId,
    }),
    owned.update(projects, { deleted_at: now, name: null }, ...open),
    accounts().revokeKeys(database, { orgId, projectId }, now),
    owned.select(deletions, ...ofProject),
  ]);
  return found[0] ?? null;
}

/** The same for an organisation. Null also if it has an active key with `operator` and the caller lacks that. */
export async function beginOrganizationDeletion(
  database: Database,
  orgId: string,
  made: NewDeletion & { readonly byOperator: boolean },
): Promise<DeletionRow | null> {
  const owned = inOrganization(database, orgId);
  const { byOperator, ...begun } = made;
  const now = begun.created_at;
  const open = isNull(organizations.deleted_at);
  const operators = accounts().operatorKeys(database, orgId, now);
  const is = there(owned.columns({ id: organizations.id }, organizations, open));
  const own = () => [eq(deletions.kind, "organization"), eq(deletions.target_id, orgId)];
  const hasBegun = there(owned.columns({ id: deletions.id }, deletions, ...own()));
  const row = { ...rowOfNew(begun, "organization", orgId), project_id: null };
  const [, , , found] = await owned.batch([
    owned.insertIf(byOperator ? is : sql`${is} and ${notExists(operators)}`, deletions, row),
    owned.update(organizations, { deleted_at: now }, open, hasBegun),
    accounts().revokeKeys(database, { orgId, projectId: null }, now, hasBegun),
    owned.select(deletions, ...own()),
  ]);
  return found[0] ?? null;
}

/** Ids of the organisation's projects, also those being deleted, the oldest first. */
export async function projectsOf(database: Database, orgId: string, limit: number): Promise<string[]> {
  const rows = await inOrganization(database, orgId)
    .columns({ id: projects.id }, projects)
    .orderBy(asc(projects.created_at), asc(projects.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** Runs of a project, also those being deleted, the oldest first. */
export async function runsOf(database: Database, scope: Scope, limit: number): Promise<string[]> {
  const rows = await inProject(database, scope)
    .columns({ id: runs.id }, runs)
    .orderBy(asc(runs.created_at), asc(runs.id))
    .limit(limit);
  return rows.map(({ id }) => id);
}

/** The name of an organisation that is not being deleted; null otherwise. */
export async function nameOfOrganization(database: Database, orgId: string): Promise<string | null> {
  const rows = await inOrganization(database, orgId).select(organizations, isNull(organizations.deleted_at));
  return rows[0]?.name ?? null;
}

/** All tables with rows of a project, except the receipts of its deletions. */
function ofProject(): ProjectTable[] {
  return [
    datasets,
    datasetUploads,
    endpoints,
    idempotencyKeys,
    cachedJudgements,
    runs,
    secrets,
    trainerTokens,
    ...tablesOf("ofProject"),
  ];
}

/** The number of a project's rows, including its own row, without receipts. */
export async function countRowsOfProject(database: Database, scope: Scope): Promise<number> {
  const project = inProject(database, scope);
  const own = inOrganization(database, scope.orgId).columns({ n: count() }, projects, eq(projects.id, scope.projectId));
  const counted = await project.batches([own, ...ofProject().map((table) => project.columns({ n: count() }, table))]);
  return counted.reduce((sum, [row]) => sum + (row?.n ?? 0), 0);
}

/** Deletes at most `limit` rows per table. True: no table has any rows left, and the project's row is deleted. */
export async function deleteRowsOfProject(database: Database, scope: Scope, limit: number): Promise<boolean> {
  const project = inProject(database, scope);
  const receipts = project.delete(deletions, ne(deletions.kind, "project"));
  const gone = await project.batches([
    receipts,
    ...ofProject().map((table) =>
      project.delete(table, first(project.columns({ at: sql`rowid` }, table).limit(limit))),
    ),
  ]);
  if (gone.some(({ meta }) => meta.changes >= limit)) return false;
  await inOrganization(database, scope.orgId).delete(projects, eq(projects.id, scope.projectId));
  return true;
}

function first(rows: ReturnType<ReturnType<typeof inProject>["columns"]>): Condition {
  return inArray(sql`rowid`, rows);
}

function ofOrganization(): OrganizationTable[] {
  return [organizations, ...tablesOf("ofOrganization")];
}

/**
 * The number of rows of an organisation without projects, and the counts of its projects' deletions that `by` started.
 */
export async function countRowsOfOrganization(
  database: Database,
  orgId: string,
  by: string,
): Promise<{ readonly rows: number; readonly projects: readonly DeletionRow["counts"][] }> {
  const owned = inOrganization(database, orgId);
  const begun = await owned.select(deletions, eq(deletions.kind, "project"), eq(deletions.requested_by, by));
  const keys = inProject(database, { orgId, projectId: "" }).columns({ n: count() }, idempotencyKeys);
  const counted = await owned.batch([keys, ...ofOrganization().map((table) => owned.columns({ n: count() }, table))]);
  const people = await accounts().countOwnPeople(database, orgId);
  const rows = counted.reduce((sum, [row]) => sum + (row?.n ?? 0), people);
  return { rows, projects: begun.map(({ counts }) => counts) };
}

/** Deletes these rows, and all receipts of the organisation except its own. */
export async function deleteRowsOfOrganization(database: Database, orgId: string): Promise<void> {
  const owned = inOrganization(database, orgId);
  await accounts().deleteOwnPeople(database, orgId);
  await owned.batch([
    inProject(database, { orgId, projectId: "" }).delete(idempotencyKeys),
    owned.delete(deletions, or(ne(deletions.kind, "organization"), ne(deletions.target_id, orgId))),
    ...ofOrganization().map((table) => owned.delete(table)),
  ]);
}
