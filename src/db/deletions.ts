/**
 * Deletions: what is being deleted, or was, and what of it is gone. A row is written in the batch that hides its target
 * from every read, so that whoever reads meets the whole of it or nothing. Receipts stay for some time after the end.
 */
import { and, eq, exists, gte, isNull, lt, ne, type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { type DeletionView, recoverableUntil } from "../contract/deletion.ts";
import type { RunKind } from "../contract/run.ts";
import type { Scope } from "../contract/scope.ts";
import { type Page, pageOf, rowsOf, seconds, within } from "./page.ts";
import { RUNS_TOLD, unfinishedRuns } from "./runs.ts";
import { type DeletionRow, deletions, runs, trainerTokens } from "./schema.ts";

export type NewDeletion = Pick<DeletionRow, "id" | "requested_by" | "created_at">;

/** Who waits for the run: ids of unfinished runs that score what it left, at most `RUNS_TOLD`. */
export type BegunDeletion = { readonly deletion: DeletionRow | null; readonly usedBy: readonly string[] };

/**
 * Hides the run and writes its deletion, both or neither; a repeat gives the first one. Null: there is no such run, or
 * unfinished runs use it. From here on its Idempotency-Key is free, and its trainer's tokens are good for nothing.
 */
export async function beginRunDeletion(
  database: D1Database,
  scope: Scope,
  runId: string,
  made: NewDeletion,
): Promise<BegunDeletion> {
  const d1 = drizzle(database);
  const using = () => unfinishedRuns(database, scope, sql`json_extract(${runs.spec}, '$.rescore.run_id') = ${runId}`);
  const free = sql`exists (select 1 from ${runs} where ${and(...within(runs, scope), eq(runs.id, runId), isNull(runs.deleted_at))})
    and not exists ${using()}`;
  const begun = exists(
    d1
      .select({ one: sql`1` })
      .from(deletions)
      .where(and(...within(deletions, scope), eq(deletions.kind, "run"), eq(deletions.target_id, runId))),
  );
  const [, , , found, usedBy] = await d1.batch([
    d1.insert(deletions).select(rowIf(scope, { ...made, kind: "run", target_id: runId }, free)),
    d1
      .update(runs)
      .set({ deleted_at: made.created_at, idempotency_key: null })
      .where(and(...within(runs, scope), eq(runs.id, runId), isNull(runs.deleted_at), begun)),
    d1
      .update(trainerTokens)
      .set({ expires_at: made.created_at })
      .where(and(...within(trainerTokens, scope), eq(trainerTokens.run_id, runId), begun)),
    d1
      .select()
      .from(deletions)
      .where(and(...within(deletions, scope), eq(deletions.kind, "run"), eq(deletions.target_id, runId))),
    using().limit(RUNS_TOLD),
  ]);
  return { deletion: found[0] ?? null, usedBy: usedBy.map(({ id }) => id) };
}

/** Hides a run that goes with something else; it has no deletion of its own. */
export async function hideRun(database: D1Database, scope: Scope, runId: string, now: number): Promise<void> {
  const d1 = drizzle(database);
  await d1.batch([
    d1
      .update(runs)
      .set({ deleted_at: now, idempotency_key: null })
      .where(and(...within(runs, scope), eq(runs.id, runId), isNull(runs.deleted_at))),
    d1
      .update(trainerTokens)
      .set({ expires_at: now })
      .where(and(...within(trainerTokens, scope), eq(trainerTokens.run_id, runId))),
  ]);
}

type Targeted = NewDeletion & Pick<DeletionRow, "kind" | "target_id">;

/** The values of a deletion, to be inserted where the condition holds. Columns in the order of the table. */
function rowIf({ orgId, projectId }: Scope, made: Targeted, condition: SQL): SQL {
  const { id, kind, target_id, requested_by, created_at } = made;
  return sql`select ${id}, ${orgId}, ${projectId}, ${kind}, ${target_id}, 'queued', '{}', ${requested_by}, ${created_at}, null
    where ${condition}`;
}

export async function getDeletion(database: D1Database, scope: Scope, id: string): Promise<DeletionRow | null> {
  const rows = await rowsOf(database, deletions, scope, eq(deletions.id, id));
  return rows[0] ?? null;
}

/** Lists deletions by time, then id; at most `page.limit` of them. */
export function listDeletions(database: D1Database, scope: Scope, page: Page): Promise<DeletionRow[]> {
  return pageOf(database, deletions, scope, page);
}

/** Deletions that have not ended, the oldest first. */
export async function unfinishedDeletions(database: D1Database, scope: Scope, limit: number): Promise<DeletionRow[]> {
  return await drizzle(database)
    .select()
    .from(deletions)
    .where(and(...within(deletions, scope), ne(deletions.state, "done")))
    .orderBy(deletions.created_at, deletions.id)
    .limit(limit);
}

/** What of it is gone by now; of one that is done nothing changes any more. `projectId` null: of an organisation. */
export async function noteDeletion(
  database: D1Database,
  { orgId, projectId }: { readonly orgId: string; readonly projectId: string | null },
  id: string,
  changes: Pick<DeletionRow, "state" | "counts" | "finished_at">,
): Promise<void> {
  const project = projectId === null ? isNull(deletions.project_id) : eq(deletions.project_id, projectId);
  await drizzle(database)
    .update(deletions)
    .set(changes)
    .where(and(eq(deletions.org_id, orgId), project, eq(deletions.id, id), ne(deletions.state, "done")));
}

/** Null for a run whose row is gone. */
export async function kindOfRun(database: D1Database, scope: Scope, id: string): Promise<RunKind | null> {
  const rows = await drizzle(database)
    .select({ kind: runs.kind })
    .from(runs)
    .where(and(...within(runs, scope), eq(runs.id, id)));
  return rows[0]?.kind ?? null;
}

/** Forgets receipts of what was gone before `before`, epoch milliseconds. */
export async function dropReceipts(database: D1Database, scope: Scope, before: number): Promise<void> {
  const old = and(eq(deletions.state, "done"), lt(deletions.finished_at, before));
  await drizzle(database)
    .delete(deletions)
    .where(and(...within(deletions, scope), old));
}

/**
 * Evals that a training run began, at most `limit`: their Idempotency-Keys name it. One whose deletion has begun has no
 * such key any more.
 */
export async function evalsOf(database: D1Database, scope: Scope, runId: string, limit: number): Promise<string[]> {
  const key = runs.idempotency_key;
  // `0` is the character after `/`.
  const own = and(gte(key, `${runId}/eval/`), lt(key, `${runId}/eval0`));
  const mine = sql`json_extract(${runs.metadata}, '$.training_run') = ${runId}`;
  const rows = await drizzle(database)
    .select({ id: runs.id })
    .from(runs)
    .where(and(...within(runs, scope), own, mine))
    .limit(limit);
  return rows.map(({ id }) => id);
}

export function deletionViewOf({
  id,
  kind,
  target_id,
  state,
  counts,
  created_at,
  finished_at,
}: DeletionRow): DeletionView {
  const finished = finished_at === null ? null : seconds(finished_at);
  return {
    object: "deletion",
    ...{ id, kind, target_id, state, counts: { ...counts } },
    created_at: seconds(created_at),
    finished_at: finished,
    recoverable_until: finished === null ? null : recoverableUntil(finished),
  };
}
