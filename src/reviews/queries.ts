/** Queries for reviews of rollouts. A reviewer has at most one for each rollout. */
import { and, asc, count, eq, exists, isNull, type SQL, sql } from "drizzle-orm";
import { LIMITS } from "../contract/limits.ts";
import type { RowReview } from "../contract/row-review.ts";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { insertOnce } from "../kernel/db/idempotency-keys.ts";
import { type Page, pageOf, seconds } from "../kernel/db/page.ts";
import { runs } from "../kernel/db/schema.ts";
import { inProject } from "../kernel/db/scoped.ts";
import { type ReviewRow, reviews } from "./tables.ts";
import type { ReviewView } from "./wire.ts";

export type NewReview = Omit<ReviewRow, "org_id" | "project_id">;
/** What a person can change. */
export type ReviewText = Pick<ReviewRow, "mark" | "note" | "values" | "why" | "updated_at">;

/**
 * `taken`: the reviewer already has a review of the rollout; `gone`: the run does not exist, or it or the rollout has
 * the maximum number of reviews.
 */
export async function insertReview(database: Database, scope: Scope, review: NewReview) {
  const project = inProject(database, scope);
  const run = project.columns({ id: runs.id }, runs, eq(runs.id, review.run_id), isNull(runs.deleted_at));
  const ofRun = project.columns({ n: count() }, reviews, eq(reviews.run_id, review.run_id));
  const ofRollout = project.columns({ n: count() }, reviews, eq(reviews.rollout_id, review.rollout_id));
  const room = sql`${ofRun} < ${LIMITS.reviewsPerRun} and ${ofRollout} < ${LIMITS.reviewsPerRollout}`;
  return await insertOnce(database, scope, reviews, review, null, { also: sql`${exists(run)} and ${room}` });
}

/** Null if the reviewer has no review of the rollout. */
export async function updateReview(
  database: Database,
  scope: Scope,
  { rolloutId, who }: { readonly rolloutId: string; readonly who: string },
  changes: ReviewText,
): Promise<ReviewRow | null> {
  const own = and(eq(reviews.rollout_id, rolloutId), eq(reviews.created_by, who));
  const rows = await inProject(database, scope).update(reviews, changes, own).returning();
  return rows[0] ?? null;
}

/** Returns the id of the deleted review; null if there is none. */
export async function deleteReview(
  database: Database,
  scope: Scope,
  rolloutId: string,
  who: string,
): Promise<string | null> {
  const own = and(eq(reviews.rollout_id, rolloutId), eq(reviews.created_by, who));
  const rows = await inProject(database, scope).delete(reviews, own).returning({ id: reviews.id });
  return rows[0]?.id ?? null;
}

export async function findReview(database: Database, scope: Scope, id: string): Promise<ReviewRow | null> {
  const rows = await inProject(database, scope).select(reviews, eq(reviews.id, id));
  return rows[0] ?? null;
}

/** Reviews of the run, or of one rollout, ordered by creation time, then id; at most `page.limit`. */
export async function listReviews(
  database: Database,
  scope: Scope,
  { runId, rolloutId }: { readonly runId: string; readonly rolloutId?: string },
  page: Page,
): Promise<ReviewRow[]> {
  const of = and(eq(reviews.run_id, runId), rolloutId === undefined ? undefined : eq(reviews.rollout_id, rolloutId));
  return await pageOf(reviews, page, (beyond) => inProject(database, scope).select(reviews, of, beyond));
}

export type ReviewValues = Pick<ReviewRow, "id" | "created_at" | "rollout_id" | "mark" | "values">;

/** The same of a run, without the texts. */
export async function listReviewValues(
  database: Database,
  scope: Scope,
  runId: string,
  page: Page,
): Promise<ReviewValues[]> {
  const { id, created_at, rollout_id, mark, values } = reviews;
  const fields = { id, created_at, rollout_id, mark, values };
  return await pageOf(reviews, page, (beyond) => {
    return inProject(database, scope).columns(fields, reviews, eq(reviews.run_id, runId), beyond);
  });
}

export type ReviewMarks = Pick<ReviewRow, "rollout_id" | "created_by" | "mark">;

/** Of all reviews of the run: at most `LIMITS.reviewsPerRun`. */
export async function listReviewMarks(database: Database, scope: Scope, runId: string): Promise<ReviewMarks[]> {
  const { rollout_id, created_by, mark } = reviews;
  const ofRun = eq(reviews.run_id, runId);
  return await inProject(database, scope).columns({ rollout_id, created_by, mark }, reviews, ofRun);
}

/** How many characters the reviews of each of these rollouts have; a rollout without reviews is not in it. */
export async function reviewSizes(
  database: Database,
  scope: Scope,
  rolloutIds: readonly string[],
): Promise<{ readonly rollout_id: string; readonly characters: number }[]> {
  const { rollout_id, note, why, values } = reviews;
  const characters = sql<number>`sum(length(${values}) + ifnull(length(${note}), 0) + ifnull(length(${why}), 0))`;
  const sums = inProject(database, scope).columns({ rollout_id, characters }, reviews, isAmong(rolloutIds));
  return await sums.groupBy(sql`${rollout_id}`);
}

/** All reviews of these rollouts, the oldest first. Ask for their sizes first. */
export async function reviewsOfRollouts(
  database: Database,
  scope: Scope,
  rolloutIds: readonly string[],
): Promise<ReviewRow[]> {
  const rows = inProject(database, scope).select(reviews, isAmong(rolloutIds));
  return await rows.orderBy(asc(reviews.created_at), asc(reviews.id));
}

/** Any number of ids, so they are one parameter. */
function isAmong(rolloutIds: readonly string[]): SQL {
  return sql`${reviews.rollout_id} in (select value from json_each(${JSON.stringify(rolloutIds)}))`;
}

/** How many reviews each of these runs has. A run without reviews, and one that does not exist, is not in it. */
export async function countReviews(
  database: Database,
  scope: Scope,
  runIds: readonly string[],
): Promise<{ readonly run_id: string; readonly reviews: number }[]> {
  const project = inProject(database, scope);
  const { run_id } = reviews;
  const isAsked = sql`${run_id} in (select value from json_each(${JSON.stringify(runIds)}))`;
  const run = project.columns({ id: runs.id }, runs, eq(runs.id, run_id), isNull(runs.deleted_at));
  return await project.columns({ run_id, reviews: count() }, reviews, isAsked, exists(run)).groupBy(sql`${run_id}`);
}

export function reviewViewOf(row: NewReview): ReviewView {
  const { id, run_id, rollout_id } = row;
  return { object: "review", id, run_id, rollout_id, ...rowReviewOf(row) };
}

export function rowReviewOf(row: NewReview): RowReview {
  const { created_by, mark, note, values, why, created_at, updated_at } = row;
  const times = { created_at: seconds(created_at), updated_at: seconds(updated_at) };
  return { created_by, mark, note, values: [...values], why, ...times };
}
