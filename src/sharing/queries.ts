/** Queries for links with which anybody can read a run's report. */
import { and, count, eq, exists, gt, isNull, lte, type SQL, sql } from "drizzle-orm";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database, HashedToken } from "../kernel/db/database.ts";
import { insertOnce, type Kept, type Remembered } from "../kernel/db/idempotency-keys.ts";
import { type Page, pageOf, seconds } from "../kernel/db/page.ts";
import { organizations, projects, type RunRow, runs } from "../kernel/db/schema.ts";
import { type InProject, inProject, unscoped } from "../kernel/db/scoped.ts";
import { type ReportLinkRow, reportLinks } from "./tables.ts";
import type { ReportLinkView } from "./wire.ts";

export type NewReportLink = Omit<ReportLinkRow, "org_id" | "project_id">;

/** `gone`: the run does not exist, or has the maximum number of links. */
export async function insertReportLink(
  database: Database,
  scope: Scope,
  link: NewReportLink,
  made: Remembered | null,
): Promise<Kept> {
  const project = inProject(database, scope);
  const ofRun = eq(reportLinks.run_id, link.run_id);
  const open = project.columns({ n: count() }, reportLinks, ofRun, gt(reportLinks.expires_at, link.created_at));
  const also = sql`${isThere(project, link.run_id)} and ${open} < ${LIMITS.reportLinksPerRun}`;
  const ended = project.delete(reportLinks, ofRun, lte(reportLinks.expires_at, link.created_at));
  return await insertOnce(database, scope, reportLinks, link, made, { also, beside: [ended] });
}

function isThere(project: InProject, runId: string): SQL {
  return exists(project.columns({ id: runs.id }, runs, eq(runs.id, runId), isNull(runs.deleted_at)));
}

export async function findReportLink(database: Database, scope: Scope, id: string): Promise<ReportLinkRow | null> {
  const rows = await inProject(database, scope).select(reportLinks, eq(reportLinks.id, id));
  return rows[0] ?? null;
}

/** Links of the run, ordered by creation time, then id; at most `page.limit`. */
export async function listReportLinks(
  database: Database,
  scope: Scope,
  runId: string,
  page: Page,
): Promise<ReportLinkRow[]> {
  const ofRun = eq(reportLinks.run_id, runId);
  return await pageOf(reportLinks, page, (beyond) => inProject(database, scope).select(reportLinks, ofRun, beyond));
}

/** Returns false if there is no such link. */
export async function deleteReportLink(database: Database, scope: Scope, id: string): Promise<boolean> {
  const rows = await inProject(database, scope).delete(reportLinks, eq(reportLinks.id, id)).returning();
  return rows.length > 0;
}

/** Deletes at most `limit` links of a project that ended before. True: there may be more. */
export async function dropReportLinks(
  database: Database,
  scope: Scope,
  before: number,
  limit: number,
): Promise<boolean> {
  const project = inProject(database, scope);
  const first = project.columns({ at: sql`rowid` }, reportLinks, lte(reportLinks.expires_at, before)).limit(limit);
  const { meta } = await project.delete(reportLinks, sql`rowid in ${first}`);
  return meta.changes >= limit;
}

/**
 * Finds the run that a report link shows, by the link's token. Also returns who created the link and when it expires.
 * Null if the link does not exist, or if the run, project or organisation is deleted or being deleted.
 */
export async function findSharedRun(
  database: Database,
  token: HashedToken,
): Promise<({ readonly run: RunRow } & Pick<ReportLinkRow, "created_by" | "expires_at">) | null> {
  const rows = await unscoped(database.at(token.database), "report link by hash")
    .select({ run: runs, created_by: reportLinks.created_by, expires_at: reportLinks.expires_at })
    .from(reportLinks)
    .innerJoin(runs, and(eq(runs.id, reportLinks.run_id), eq(runs.org_id, reportLinks.org_id), isNull(runs.deleted_at)))
    .innerJoin(projects, and(eq(projects.id, runs.project_id), isNull(projects.deleted_at)))
    .innerJoin(organizations, and(eq(organizations.id, runs.org_id), isNull(organizations.deleted_at)))
    .where(and(eq(reportLinks.hash, token.hash), eq(runs.project_id, reportLinks.project_id)));
  return rows[0] ?? null;
}

export function reportLinkViewOf(row: NewReportLink): ReportLinkView {
  const { id, run_id, created_by, created_at, expires_at } = row;
  const times = { created_at: seconds(created_at), expires_at: seconds(expires_at) };
  return { object: "report_link", id, run_id, created_by, ...times };
}
