/** Unfinished runs of every organisation. */
import { and, gt, isNull } from "drizzle-orm";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { runs } from "../kernel/db/schema.ts";
import { unscoped } from "../kernel/db/scoped.ts";

export interface UnfinishedRun {
  readonly id: string;
  readonly scope: Scope;
}

/** In the order of their ids, after `after`; at most `limit`. */
export async function listUnfinishedRuns(database: Database, after: string, limit: number): Promise<UnfinishedRun[]> {
  const found = await database.each((d1) => unfinishedIn(d1, after, limit));
  return found
    .flat()
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .slice(0, limit);
}

async function unfinishedIn(d1: D1Database, after: string, limit: number): Promise<UnfinishedRun[]> {
  const rows = await unscoped(d1, "operator")
    .select({ id: runs.id, orgId: runs.org_id, projectId: runs.project_id })
    .from(runs)
    .where(and(isNull(runs.finished_at), isNull(runs.deleted_at), gt(runs.id, after)))
    .orderBy(runs.id)
    .limit(limit);
  return rows.map(({ id, ...scope }) => ({ id, scope }));
}
