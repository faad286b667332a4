/**
 * Finished rollouts, as their run's object reports them. A row is written once, since terminal is final; what is added
 * to it later is the attempt that took its place.
 */
import { and, count, eq, getTableColumns, inArray, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { countOutcomes, type OutcomeCounts } from "../contract/audit.ts";
import type { Scope } from "../contract/scope.ts";
import { ownedBy, rowsOf, within } from "./page.ts";
import { type RolloutRow, rollouts } from "./schema.ts";

const COLUMNS = Object.values(getTableColumns(rollouts)).map(({ name }) => name);

export type NewRollout = Omit<RolloutRow, "org_id" | "project_id">;

/**
 * Writes all rows or none, in one statement. Rows already there stay as they are but for `superseded_by`. The rows
 * travel as one JSON parameter: D1 refuses a statement with more than 100, which is four rows.
 */
export async function insertRollouts(database: D1Database, scope: Scope, rows: readonly NewRollout[]): Promise<void> {
  if (rows.length === 0) return;
  const owned = rows.map((row) => ({
    ...row,
    ...ownedBy(scope),
    metrics: JSON.stringify(row.metrics),
  }));
  const values = COLUMNS.map((name) => sql`json_extract(value, ${sql.raw(`'$.${name}'`)})`);
  await drizzle(database).run(sql`
    insert into ${rollouts} (${sql.join(
      COLUMNS.map((name) => sql.identifier(name)),
      sql`, `,
    )})
    select ${sql.join(values, sql`, `)} from json_each(${JSON.stringify(owned)}) where true
    on conflict (id) do update set superseded_by = excluded.superseded_by
    where ${rollouts.superseded_by} is null and excluded.superseded_by is not null`);
}

/** Rows of a run, and how they ended. */
export async function countRollouts(
  database: D1Database,
  scope: Scope,
  runId: string,
): Promise<OutcomeCounts & { readonly rows: number }> {
  const { outcome, reason } = rollouts;
  const groups = await drizzle(database)
    .select({ outcome, reason, n: count() })
    .from(rollouts)
    .where(and(...within(rollouts, scope), eq(rollouts.run_id, runId)))
    .groupBy(outcome, reason);
  return { ...countOutcomes(groups), rows: groups.reduce((sum, { n }) => sum + n, 0) };
}

/** What an audit compares of a row. */
const AUDITED = {
  id: rollouts.id,
  outcome: rollouts.outcome,
  reason: rollouts.reason,
  reward: rollouts.reward,
  turns: rollouts.turns,
  calls: rollouts.calls,
  prompt_tokens: rollouts.prompt_tokens,
  completion_tokens: rollouts.completion_tokens,
  judge_calls: rollouts.judge_calls,
  judge_prompt_tokens: rollouts.judge_prompt_tokens,
  judge_completion_tokens: rollouts.judge_completion_tokens,
  judge_micros: rollouts.judge_micros,
  digest: rollouts.digest,
  superseded_by: rollouts.superseded_by,
};
export type AuditedRollout = Pick<RolloutRow, keyof typeof AUDITED>;

/** The rows that are there under these ids, which travel as one JSON parameter, as rows do. */
export async function rolloutsById(
  database: D1Database,
  scope: Scope,
  ids: readonly string[],
): Promise<AuditedRollout[]> {
  const asked = sql`(select value from json_each(${JSON.stringify(ids)}))`;
  return await drizzle(database)
    .select(AUDITED)
    .from(rollouts)
    .where(and(...within(rollouts, scope), inArray(rollouts.id, asked)));
}

export async function getRollout(database: D1Database, scope: Scope, id: string): Promise<RolloutRow | null> {
  const rows = await rowsOf(database, rollouts, scope, eq(rollouts.id, id));
  return rows[0] ?? null;
}
