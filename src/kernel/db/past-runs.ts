/** The newest runs of an environment: for the cost of similar runs, and for its results. */
import { desc, eq, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunReport } from "../../contract/report.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { type RunRow, runs } from "./schema.ts";
import { inProject } from "./scoped.ts";

/** The latest runs of the same environment and model that sampled something. Uses the index of runs by environment. */
export async function pastRuns(
  database: Database,
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

/** What the results of an environment need of a run. */
export interface RunResults extends Pick<RunRow, "id" | "name" | "kind" | "status" | "counts" | "created_at"> {
  readonly version: string;
  readonly digest: string;
  readonly dataset: string | null;
  /** Whether its rows came in the request. */
  readonly inline: number;
  readonly planned: number;
  readonly model: string;
  /** The training run whose weights its fleet served. */
  readonly weightsOf: string | null;
  /** Null if they are longer than `LIMITS.resultArgsCharacters` as JSON. */
  readonly args: JsonObject | null;
  /** Null if they are too long, as for `args`. */
  readonly judges: NonNullable<RunSpec["judges"]> | null;
  readonly reward: RunReport["reward"] | null;
  readonly forked: number;
  readonly rescored: number;
}

/** Of any kind and version, the newest first. A condition on the version would read all runs to find few. */
export async function runsOfEnvironment(
  database: Database,
  scope: Scope,
  { id, limit }: { readonly id: string; readonly limit: number },
): Promise<RunResults[]> {
  const { spec, report, dataset_id, environment_version } = runs;
  const unlessLong = <T>(json: SQL) =>
    sql`case when length(${json}) <= ${LIMITS.resultArgsCharacters} then ${json} end`.mapWith(
      (text: string) => JSON.parse(text) as T,
    );
  const reward = sql`${report} -> '$.reward'`;
  return await inProject(database, scope)
    .columns(
      {
        ...{ id: runs.id, name: runs.name, kind: runs.kind, status: runs.status, counts: runs.counts },
        ...{ created_at: runs.created_at, version: environment_version, dataset: dataset_id },
        inline: sql<number>`${dataset_id} is null and ${spec} ->> '$.dataset.kind' = 'uploaded'`,
        planned: sql<number>`${spec} ->> '$.num_examples' * ${spec} ->> '$.rollouts_per_example'`,
        model: sql<string>`${spec} ->> '$.model'`,
        digest: sql<string>`${spec} ->> '$.environment.digest'`,
        weightsOf: sql<string | null>`${spec} ->> '$.fleet.weights_of'`,
        args: unlessLong<RunResults["args"]>(sql`${spec} -> '$.environment_args'`),
        judges: unlessLong<RunResults["judges"]>(sql`coalesce(${spec} -> '$.judges', '{}')`),
        reward: sql`${reward}`.mapWith((text: string) => JSON.parse(text) as RunReport["reward"]),
        forked: sql<number>`${spec} ->> '$.fork' is not null`,
        rescored: sql<number>`${spec} ->> '$.rescore' is not null`,
      },
      runs,
      eq(runs.environment_id, id),
      isNull(runs.deleted_at),
    )
    .orderBy(desc(runs.created_at), desc(runs.id))
    .limit(limit);
}
