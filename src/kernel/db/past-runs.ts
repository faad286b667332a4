/** Ended runs, for estimating the cost of similar runs. */
import { desc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import { type RunRow, runs } from "./schema.ts";
import { inProject } from "./scoped.ts";

/** The latest runs of the same environment and model that sampled something. Uses the index of runs by time. */
export async function pastRuns(
  database: D1Database,
  scope: Scope,
  { environment, model, limit }: { readonly environment: string; readonly model: string; readonly limit: number },
): Promise<Pick<RunRow, "counts" | "report">[]> {
  return await inProject(database, scope)
    .columns(
      { counts: runs.counts, report: runs.report },
      runs,
      eq(runs.environment_id, environment),
      sql`${runs.spec} ->> '$.model' = ${model}`,
      sql`${runs.spec} ->> '$.rescore' is null`,
      isNotNull(runs.finished_at),
      isNull(runs.deleted_at),
    )
    .orderBy(desc(runs.created_at))
    .limit(limit);
}
