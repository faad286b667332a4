/** The conditions and the orders of the list of runs. */
import { and, eq, inArray, like, or, SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { RunKind, RunSort, RunStatus } from "../../contract/run.ts";
import type { Page } from "./page.ts";
import { runs } from "./schema.ts";

export interface RunFilter extends Page {
  readonly kind: RunKind | null;
  readonly status: RunStatus | null;
  /** A version matches itself and versions that begin with it: "1" matches "1.0.2". */
  readonly environment: { readonly id: string; readonly version: string | null } | null;
  readonly model: string | null;
  /** A part of the id, the name, the model, the environment, or of a pair of metadata as `key=value`. */
  readonly search: string | null;
  /** Pairs that must all be in the run's metadata. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly sort: RunSort;
}

/** A search, a model and an order other than by time read every run that they cover: they cover this many, the newest. */
export const RUNS_SEARCHED = 10_000;

/** `newest`: selects the ids of the newest `RUNS_SEARCHED` runs. */
export function runConditions(filter: RunFilter, newest: SQLWrapper): SQL[] {
  const conditions = [
    filter.kind && eq(runs.kind, filter.kind),
    filter.status && eq(runs.status, filter.status),
    filter.environment && eq(runs.environment_id, filter.environment.id),
    filter.environment?.version && versionIs(filter.environment.version),
    filter.model !== null && eq(MODEL, filter.model),
    filter.search !== null && contains(filter.search),
    ...Object.entries(filter.metadata).map(([key, value]) => metadataIs(key, value)),
    (filter.search !== null || filter.model !== null || filter.sort !== "created") && inArray(runs.id, sql`${newest}`),
  ];
  return conditions.filter((condition) => condition instanceof SQL);
}

const MODEL = sql<string>`${runs.spec} ->> '$.model'`;
const usage = (part: string) => sql`coalesce(${runs.report} ->> ${`$.usage.${part}`}, 0)`;

/** The values by which runs are ordered besides their time; null comes last in either order. */
export const SORTED_BY = {
  name: sql<string | null>`lower(${runs.name})`,
  reward: sql<number | null>`${runs.report} ->> '$.reward.mean'`,
  // The parts that are known, as the page shows them.
  cost: sql<number | null>`case when ${runs.report} is not null
    then ${usage("cost_micros")} + ${usage("judge.cost_micros")} + ${usage("charged_micros")} end`,
} as const satisfies Record<Exclude<RunSort, "created">, SQL>;

/** The runs after `after`, whose own value is `value`, in the order by `by`. */
export function beyondValue(by: SQL, value: string | number | null, { after, order }: RunFilter): SQL | undefined {
  if (after === null) return undefined;
  const here = sql`(${runs.created_at}, ${runs.id})`;
  const there = sql`(${after.created_at}, ${after.id})`;
  const later = order === "asc" ? sql`${here} > ${there}` : sql`${here} < ${there}`;
  if (value === null) return and(sql`${by} is null`, later);
  const further = order === "asc" ? sql`${by} > ${value}` : sql`${by} < ${value}`;
  return or(sql`${by} is null`, further, and(sql`${by} = ${value}`, later));
}

function versionIs(version: string): SQL | undefined {
  return or(eq(runs.environment_version, version), like(runs.environment_version, `${version}.%`));
}

/** Without `like`, whose patterns are limited to 50 bytes. Letters of ASCII match in either case. */
function contains(text: string): SQL | undefined {
  const has = (value: SQL) => sql`instr(lower(${value}), lower(${text})) > 0`;
  return or(
    ...[runs.id, runs.name, runs.environment_id].map((column) => has(sql`${column}`)),
    has(MODEL),
    sql`exists (select 1 from json_each(${runs.metadata}) where ${has(sql`key || '=' || value`)})`,
  );
}

/** Compares keys as values and not as a JSON path: a quote in a key would need an escape that SQLite lacks. */
function metadataIs(key: string, value: string): SQL {
  return sql`exists (select 1 from json_each(${runs.metadata}) where key = ${key} and value = ${value})`;
}
