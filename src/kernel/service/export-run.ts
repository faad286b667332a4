/**
 * Exports a run, one page of lines at a time: the run's object lists the rollouts, and their trajectories are read
 * here.
 */
import {
  dpoRow,
  type ExportQuery,
  type LeftOut,
  type Made,
  type Origin,
  sftRow,
  type Worth,
} from "../../contract/export.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { verifiersRow } from "../../core/verifiers/row.ts";
import type { RunRecord } from "../db/runs.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { RunRpc } from "../messages/rpc.ts";
import type { RolloutRecord } from "../messages/run-records.ts";
import { type ReviewsOf, reviewsOfPage } from "./page-reviews.ts";
import { readPage, resultOf, stepsOfTurns } from "./read-rollouts.ts";
import { lostRun, openRun } from "./read-run.ts";

/** Steps of reading the rows of a page in the run's object. */
const PAGE_STEPS = 500_000;

export interface ExportLines {
  readonly rows: readonly object[];
  /** Rollouts and pairs on this page that cannot be rows. */
  readonly left_out: readonly LeftOut[];
  readonly next: string | null;
}

export async function exportRun(
  env: Env,
  scope: Scope,
  runId: string,
  query: ExportQuery,
): Promise<Result<ExportLines>> {
  const found = await openRun(env, scope, runId);
  if (!found.ok) return found;
  const { object, record } = found.value;
  // A segment may be written between the listing and the reads. Then the page is read again.
  for (let tries = 0; tries < 3; tries += 1) {
    const page = await reviewedPage(env, scope, object, query);
    if (page === null) return lostRun(runId);
    const { items, segments, next, reviewsOf } = page;
    const read = await readPage(env, { scope, run_id: runId }, { rows: items.flat(), segments });
    if (read === null) continue;
    const trajectories = new Map(read.map(({ entry, trajectory }) => [entry.id, trajectory]));
    const kept = { trajectories, reviewsOf };
    const origin = originOf(record);
    const made: Made<object>[] = [];
    for (const item of items) {
      const steps = item.map(({ entry }) => stepsOfTurns(trajectories.get(entry.id) ?? null));
      await PROCESS_SCHEDULER.spend(scope.orgId, Math.max(...steps) * steps.length);
      const row = rowOf(query.format, origin, item, kept);
      if (row !== null) made.push(row);
    }
    const rows = made.flatMap((one) => ("row" in one ? [one.row] : []));
    const left_out = made.flatMap((one) => ("row" in one ? [] : [one.left_out]));
    return { ok: true, value: { rows, left_out, next } };
  }
  return refuse("in_progress", "the trajectories are being compacted: try again", null);
}

/** A page whose reviews fit into it: if they do not, a shorter page with the same first lines. Null: the run is lost. */
async function reviewedPage(env: Env, scope: Scope, object: RunRpc, query: ExportQuery) {
  for (let { limit } = query; ; ) {
    await PROCESS_SCHEDULER.spend(scope.orgId, PAGE_STEPS);
    const page = await object.exportPage({ ...query, limit });
    if (page === null) return null;
    const ids = page.items.map((item) => item.map(({ entry }) => entry.id));
    const { lines, reviewsOf } = await reviewsOfPage(env, scope, ids);
    if (lines === ids.length) return { ...page, reviewsOf };
    limit = lines;
  }
}

/** What a page has of its rollouts, by id. */
interface Kept {
  readonly trajectories: ReadonlyMap<string, Trajectory | null>;
  readonly reviewsOf: ReviewsOf;
}

function originOf({ run }: RunRecord): Origin {
  const { environment, model } = run.spec;
  return { run_id: run.id, environment: `${environment.id}@${environment.version}`, model };
}

/** Null if no trajectory is left to make a row from. */
function rowOf(
  format: ExportQuery["format"],
  origin: Origin,
  item: readonly RolloutRecord[],
  kept: Kept,
): Made<object> | null {
  const [first, second] = item;
  if (first === undefined) return null;
  if (format === "verifiers") {
    const row = resultOf(first, kept.trajectories.get(first.entry.id) ?? null, null);
    const { rollout_id, task_key } = row;
    const reviews = kept.reviewsOf(rollout_id);
    return { row: verifiersRow(row, { rollout_id, ...origin, task_key, ...(reviews && { reviews }) }) };
  }
  const worth = worthOf(first, kept);
  if (worth === null) return null;
  if (format === "sft") return sftRow(origin, worth);
  const other = second === undefined ? null : worthOf(second, kept);
  return other === null ? null : dpoRow(origin, worth, other);
}

function worthOf({ entry: { id, reward } }: RolloutRecord, { trajectories, reviewsOf }: Kept): Worth | null {
  const trajectory = trajectories.get(id) ?? null;
  return trajectory === null || reward === null ? null : { trajectory, reward, reviews: reviewsOf(id) };
}
