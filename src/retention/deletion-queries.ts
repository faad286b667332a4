/**
 * Deletions: their progress and their receipts. A deletion's row is written in the batch that hides its target, so that
 * a reader sees all of the target or nothing. Receipts are kept for some time after the end.
 */
import { and, asc, eq, exists, gte, isNull, lt, ne, notExists, type SQL, sql } from "drizzle-orm";
import { type DeletionKind, type DeletionView, recoverableUntil } from "../contract/deletion.ts";
import type { RunKind } from "../contract/run.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { type Page, pageOf, seconds } from "../kernel/db/page.ts";
import { RUNS_LISTED, unfinishedRuns } from "../kernel/db/runs.ts";
import { type DeletionRow, deletions, runs, trainerTokens } from "../kernel/db/schema.ts";
import { type Condition, inOrganization, inProject, type Rows, unscoped } from "../kernel/db/scoped.ts";

export type NewDeletion = Pick<DeletionRow, "id" | "requested_by" | "created_at">;

/** The row of a new deletion. */
export function rowOfNew(made: NewDeletion, kind: DeletionKind, target_id: string) {
  return { ...made, kind, target_id, state: "queued", counts: {}, finished_at: null } as const;
}

export function there(rows: Rows<unknown>): SQL {
  return exists(rows);
}

/** `usedBy`: ids of unfinished runs that rescore this run, at most `RUNS_LISTED`. */
export type BegunDeletion = { readonly deletion: DeletionRow | null; readonly usedBy: readonly string[] };

/**
 * Hides the run and writes its deletion, both or neither; a repeat returns the first deletion. Null: the run does not
 * exist, or unfinished runs use it. From here on its Idempotency-Key is free and its trainer's tokens are invalid.
 */
export async function beginRunDeletion(
  database: Database,
  scope: Scope,
  runId: string,
  made: NewDeletion,
): Promise<BegunDeletion> {
  const project = inProject(database, scope);
  const scoredAnew = sql`json_extract(${runs.spec}, '$.rescore.run_id') = ${runId}`;
  const using = () => unfinishedRuns(database, scope, scoredAnew);
  const is = there(project.columns({ id: runs.id }, runs, eq(runs.id, runId), isNull(runs.deleted_at)));
  const ofRun = () => [eq(deletions.kind, "run"), eq(deletions.target_id, runId)];
  const begun = exists(project.columns({ id: deletions.id }, deletions, ...ofRun()));
  const [, , , found, usedBy] = await project.batch([
    project.insertIf(both(is, notExists(using())), deletions, rowOfNew(made, "run", runId)),
    project.update(runs, hidden(made.created_at), eq(runs.id, runId), isNull(runs.deleted_at), begun),
    project.update(trainerTokens, { expires_at: made.created_at }, eq(trainerTokens.run_id, runId), begun),
    project.select(deletions, ...ofRun()),
    using().limit(RUNS_LISTED),
  ]);
  return { deletion: found[0] ?? null, usedBy: usedBy.map(({ id }) => id) };
}

/** Hides a run that is deleted with something else and has no deletion of its own. */
export async function hideRun(database: Database, scope: Scope, runId: string, now: number): Promise<void> {
  const project = inProject(database, scope);
  await project.batch([
    project.update(runs, hidden(now), eq(runs.id, runId), isNull(runs.deleted_at)),
    project.update(trainerTokens, { expires_at: now }, eq(trainerTokens.run_id, runId)),
  ]);
}

function hidden(now: number) {
  return { deleted_at: now, idempotency_key: null };
}

function both(one: SQL, other: SQL): SQL {
  return sql`${one} and ${other}`;
}

/**
 * Selects deletions of one project, or (`projectId` null) of a whole organisation, including the organisation's own.
 */
export interface Whose {
  readonly orgId: string;
  readonly projectId: string | null;
}

export async function getDeletion(database: Database, whose: Whose, id: string): Promise<DeletionRow | null> {
  const rows = await selectDeletions(database, whose, eq(deletions.id, id));
  return rows[0] ?? null;
}

/** A deletion of any organisation, for the operator: a deleted organisation has no callers left. */
export async function getAnyDeletion(database: Database, id: string): Promise<DeletionRow | null> {
  const found = await database.each((d1) =>
    unscoped(d1, "operator").select().from(deletions).where(eq(deletions.id, id)),
  );
  return found.flat()[0] ?? null;
}

/** Deletions ordered by time, then id; at most `page.limit`. */
export function listDeletions(database: Database, whose: Whose, page: Page): Promise<DeletionRow[]> {
  return pageOf(deletions, page, (beyond) => selectDeletions(database, whose, beyond));
}

function selectDeletions(database: Database, { orgId, projectId }: Whose, condition: Condition): Rows<DeletionRow> {
  return projectId === null
    ? inOrganization(database, orgId).select(deletions, condition)
    : inProject(database, { orgId, projectId }).select(deletions, condition);
}

/** Unfinished deletions, the oldest first. */
export async function unfinishedDeletions(database: Database, scope: Scope, limit: number): Promise<DeletionRow[]> {
  return await inProject(database, scope)
    .select(deletions, ne(deletions.state, "done"))
    .orderBy(asc(deletions.created_at), asc(deletions.id))
    .limit(limit);
}

/** Stores a deletion's progress. A deletion that is done does not change. */
export async function noteDeletion(
  database: Database,
  orgId: string,
  id: string,
  changes: Pick<DeletionRow, "state" | "counts" | "finished_at">,
): Promise<void> {
  await inOrganization(database, orgId).update(deletions, changes, eq(deletions.id, id), ne(deletions.state, "done"));
}

/** Null for a run without a row. */
export async function kindOfRun(database: Database, scope: Scope, id: string): Promise<RunKind | null> {
  const rows = await inProject(database, scope).columns({ kind: runs.kind }, runs, eq(runs.id, id));
  return rows[0]?.kind ?? null;
}

/** Evals of a training run, at most `limit`, by their Idempotency-Keys, which evals being deleted do not have. */
export async function evalsOf(database: Database, scope: Scope, runId: string, limit: number): Promise<string[]> {
  const key = runs.idempotency_key;
  // `0` is the character after `/`.
  const own = and(gte(key, `${runId}/eval/`), lt(key, `${runId}/eval0`));
  const mine = sql`json_extract(${runs.metadata}, '$.training_run') = ${runId}`;
  const rows = await inProject(database, scope).columns({ id: runs.id }, runs, own, mine).limit(limit);
  return rows.map(({ id }) => id);
}

export function deletionViewOf(row: DeletionRow): DeletionView {
  const { id, kind, target_id, state, counts, created_at, finished_at } = row;
  const finished = finished_at === null ? null : seconds(finished_at);
  return {
    object: "deletion",
    ...{ id, kind, target_id, state, counts: { ...counts } },
    created_at: seconds(created_at),
    finished_at: finished,
    recoverable_until: finished === null ? null : recoverableUntil(finished),
  };
}
