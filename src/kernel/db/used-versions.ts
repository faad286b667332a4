/** Published versions that the runs of a project used. */
import { and, gte, isNull, lt, or, sql } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { runs } from "./schema.ts";
import { inProject } from "./scoped.ts";

/**
 * How many different published versions were played by runs that were unfinished at some time from `start` to before
 * `end` (epoch milliseconds). Reads an entry for each run of the project that was created before `end`.
 */
export async function publishedVersionsUsed(
  database: Database,
  scope: Scope,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<number> {
  const { environment_id, environment_version, created_at, finished_at } = runs;
  const named = sql<number>`count(distinct ${environment_id} || '@' || ${environment_version})`;
  const [row] = await inProject(database, scope).columns(
    { versions: named },
    runs,
    and(lt(created_at, end), or(isNull(finished_at), gte(finished_at, start))),
    // The ids of environments that come with the deployment have no slash.
    sql`instr(${environment_id}, '/') > 0`,
  );
  return row?.versions ?? 0;
}
