/** An organisation's usage per hour: a copy of what its ledger counts. */
import { and, gte, lt, type SQL, sql } from "drizzle-orm";
import { CHARGE_LINES, type ChargeLine } from "../../contract/money.ts";
import type { Database } from "../../kernel/db/database.ts";
import { inOrganization } from "../../kernel/db/scoped.ts";
import { usageHours } from "../tables.ts";
import { USAGE_GROUPS, USE_COUNTS, type UsageGroup, type UsageNames, type UseCount } from "../wire.ts";

export interface UsageQuery {
  /** Null: all projects. */
  readonly projectId: string | null;
  /** Epoch seconds; multiples of `width`. */
  readonly from: number;
  readonly to: number;
  /** Seconds of a bucket. */
  readonly width: 3600 | 86400;
  readonly groups: readonly UsageGroup[];
  /** Only rows with these names. */
  readonly only: UsageNames;
  /** The most rows. */
  readonly limit: number;
}

/** The sums of one group in one bucket. A name is null if the rows are not grouped by it. */
export interface UsageSums {
  readonly bucket: number;
  readonly names: Readonly<Record<UsageGroup, string | null>>;
  readonly counts: Readonly<Record<UseCount, number>>;
  readonly lines: Readonly<Record<ChargeLine, number>>;
}

const COLUMN_OF = {
  project: usageHours.project_id,
  key: usageHours.payer,
  environment: usageHours.environment,
  model: usageHours.model,
  kind: usageHours.kind,
} as const satisfies Record<UsageGroup, unknown>;

/**
 * Literals, not parameters: D1 would bind a parameter as a float, and the division would not be an integer division.
 */
const BUCKET_OF = {
  3600: sql<number>`${usageHours.hour} / 3600 * 3600`,
  86400: sql<number>`${usageHours.hour} / 86400 * 86400`,
} as const;

/** Uses an index and reads one row for each hour and combination of names. Ordered by time, then by names. */
export async function usageBetween(database: Database, orgId: string, query: UsageQuery): Promise<UsageSums[]> {
  const { projectId, from, to, groups, only, limit } = query;
  const named = USAGE_GROUPS.flatMap((group) => {
    const name = only[group];
    return name === undefined ? [] : [sql`${COLUMN_OF[group]} = ${name}`];
  });
  const bucket = BUCKET_OF[query.width];
  const grouped = groups.map((group) => sql`${COLUMN_OF[group]}`);
  const fields = {
    bucket: bucket.as("bucket"),
    ...Object.fromEntries(groups.map((group) => [group, sql<string>`${COLUMN_OF[group]}`.as(group)])),
    ...Object.fromEntries(USE_COUNTS.map((name) => [name, sumOf(usageHours.counts, name).as(name)])),
    ...Object.fromEntries(
      CHARGE_LINES.map((name) => [`line_${name}`, sumOf(usageHours.lines, name).as(`line_${name}`)]),
    ),
  };
  const rows: Record<string, unknown>[] = await inOrganization(database, orgId)
    .columns(
      fields,
      usageHours,
      and(gte(usageHours.hour, from), lt(usageHours.hour, to)),
      projectId === null ? undefined : sql`${usageHours.project_id} = ${projectId}`,
      ...named,
    )
    .groupBy(bucket, ...grouped)
    .orderBy(bucket, ...grouped)
    .limit(limit);
  return rows.map(sumsOf);
}

function sumOf(column: typeof usageHours.counts | typeof usageHours.lines, name: string): SQL<number> {
  return sql<number>`coalesce(sum(${column} ->> ${name}), 0)`;
}

function sumsOf(row: Record<string, unknown>): UsageSums {
  const name = (group: UsageGroup) => (typeof row[group] === "string" ? row[group] : null);
  const number = (key: string) => Number(row[key] ?? 0);
  return {
    bucket: number("bucket"),
    names: {
      project: name("project"),
      key: name("key"),
      environment: name("environment"),
      model: name("model"),
      kind: name("kind"),
    },
    counts: recordOf(USE_COUNTS, number),
    lines: recordOf(CHARGE_LINES, (line) => number(`line_${line}`)),
  };
}

function recordOf<Name extends string>(names: readonly Name[], of: (name: Name) => number): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Name, number>;
}
