/** Finished rollouts, as their run's object reports them. A row is written once: terminal is final. */
import { and, eq, getTableColumns, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { Scope } from "../core/scope.ts";
import { type RolloutRow, rollouts } from "./schema.ts";

const COLUMNS = Object.values(getTableColumns(rollouts)).map(({ name }) => name);

export type NewRollout = Omit<RolloutRow, "org_id" | "project_id">;

/**
 * Writes all rows or none, in one statement. Rows already there stay as they are. The rows travel as one JSON parameter:
 * D1 refuses a statement with more than 100, which is four rows.
 */
export async function insertRollouts(
  database: D1Database,
  scope: Scope,
  rows: readonly NewRollout[],
): Promise<void> {
  if (rows.length === 0) return;
  const owned = rows.map((row) => ({
    ...row,
    org_id: scope.orgId,
    project_id: scope.projectId,
    metrics: JSON.stringify(row.metrics),
  }));
  const values = COLUMNS.map((name) => sql`json_extract(value, ${sql.raw(`'$.${name}'`)})`);
  await drizzle(database).run(sql`
    insert into ${rollouts} (${sql.join(
      COLUMNS.map((name) => sql.identifier(name)),
      sql`, `,
    )})
    select ${sql.join(values, sql`, `)} from json_each(${JSON.stringify(owned)}) where true
    on conflict do nothing`);
}

export async function getRollout(
  database: D1Database,
  scope: Scope,
  id: string,
): Promise<RolloutRow | null> {
  const rows = await drizzle(database)
    .select()
    .from(rollouts)
    .where(
      and(
        eq(rollouts.org_id, scope.orgId),
        eq(rollouts.project_id, scope.projectId),
        eq(rollouts.id, id),
      ),
    );
  return rows[0] ?? null;
}
