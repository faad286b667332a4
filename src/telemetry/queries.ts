/** Counts of the deployment. The cost of each statement depends on current work, never on the number of past runs. */
import { isNull, sql } from "drizzle-orm";
import type { Scope } from "../contract/scope.ts";
import type { Database } from "../kernel/db/database.ts";
import { runs, totals } from "../kernel/db/schema.ts";
import { unscoped } from "../kernel/db/scoped.ts";

/** Unfinished runs by status, with their pending and in-flight rollouts. */
export interface UnfinishedRuns {
  readonly status: string;
  readonly runs: number;
  readonly pending: number;
  readonly in_flight: number;
}

/** An all-time count of ended runs (`kind` `runs`), ended rollouts (the outcome), or messages (`dead_letters`). */
export interface Total {
  readonly kind: string;
  /** The status, cause, class or reason; empty if there is none. */
  readonly name: string;
  readonly n: number;
}

export interface EndpointInUse {
  readonly endpoint_id: string;
  readonly scope: Scope;
  /** The number of endpoints in use, including this one. */
  readonly of: number;
}

export async function countUnfinishedRuns(database: Database): Promise<UnfinishedRuns[]> {
  const rows = (await database.each(unfinishedIn)).flat();
  const statuses = [...new Set(rows.map(({ status }) => status))];
  return statuses.map((status) => {
    const own = rows.filter((row) => row.status === status);
    const sumOf = (name: "runs" | "pending" | "in_flight") => own.reduce((sum, row) => sum + row[name], 0);
    return { status, runs: sumOf("runs"), pending: sumOf("pending"), in_flight: sumOf("in_flight") };
  });
}

async function unfinishedIn(d1: D1Database): Promise<UnfinishedRuns[]> {
  const sumOf = (path: string) => sql<number>`coalesce(sum(${runs.counts} ->> ${path}), 0)`;
  return await unscoped(d1, "operator")
    .select({
      status: runs.status,
      runs: sql<number>`count(*)`,
      pending: sumOf("$.pending"),
      in_flight: sumOf("$.in_flight"),
    })
    .from(runs)
    .where(isNull(runs.finished_at))
    .groupBy(runs.status);
}

/** Counts of ended and unfinished runs. Each D1 database is read at one point in time: the sums never decrease. */
export async function readTotals(database: Database): Promise<Total[]> {
  const sums = new Map<string, Total>();
  for (const row of (await database.each(totalsIn)).flat()) {
    const key = JSON.stringify([row.kind, row.name]);
    sums.set(key, { ...row, n: row.n + (sums.get(key)?.n ?? 0) });
  }
  return [...sums.values()];
}

async function totalsIn(d1: D1Database): Promise<Total[]> {
  const going = sql`${runs.finished_at} is null`;
  return await unscoped(d1, "operator").all<Total>(sql`
    select kind, name, sum(n) as n from (
      select ${totals.kind} as kind, ${totals.name} as name, ${totals.n} as n from ${totals}
      union all select 'dead_letters', '', ${runs.dead_letters} from ${runs} where ${going}
      union all select 'scored', '', ${runs.counts} ->> '$.scored' from ${runs} where ${going}
      union all select o.key, r.key, r.value
        from ${runs}, json_each(${runs.counts}) o, json_each(o.value) r where ${going} and o.type = 'object'
    ) group by kind, name order by kind, name`);
}

/**
 * Endpoints of policies and judges that runs use, or used after `since` (epoch milliseconds): those with the most
 * unfinished runs first, at most `limit`.
 */
export async function listEndpointsInUse(
  database: Database,
  { since, limit }: { readonly since: number; readonly limit: number },
): Promise<EndpointInUse[]> {
  const found = await database.each((d1) => endpointsIn(d1, since, limit));
  const of = found.reduce((sum, rows) => sum + (rows[0]?.of ?? 0), 0);
  const rows = found.flat().sort((one, other) => other.unfinished - one.unfinished);
  return rows.slice(0, limit).map(({ endpoint_id, org_id, project_id }) => {
    return { endpoint_id, scope: { orgId: org_id, projectId: project_id }, of };
  });
}

async function endpointsIn(d1: D1Database, since: number, limit: number): Promise<Listed[]> {
  const lately = sql`(${runs.finished_at} is null or ${runs.finished_at} > ${since})`;
  return await unscoped(d1, "operator").all<Listed>(sql`
    select endpoint_id, org_id, project_id, sum(finished_at is null) as unfinished, count(*) over () as "of" from (
      select ${runs.endpoint_id} as endpoint_id, ${runs.org_id} as org_id, ${runs.project_id} as project_id,
        ${runs.finished_at} as finished_at from ${runs} where ${lately}
      union all
      select j.value ->> '$.endpoint_id', ${runs.org_id}, ${runs.project_id}, ${runs.finished_at}
        from ${runs}, json_each(${runs.spec}, '$.judges') j where ${lately}
    ) group by endpoint_id, org_id, project_id
      order by sum(finished_at is null) desc, endpoint_id limit ${limit}`);
}

interface Listed {
  readonly endpoint_id: string;
  readonly org_id: string;
  readonly project_id: string;
  /** Runs that have not ended. */
  readonly unfinished: number;
  readonly of: number;
}
