/** What every table of a project shares: rows of one scope, and pages of them by time of creation, then id. */
import { and, asc, desc, eq, type InferSelectModel, type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Scope } from "../contract/scope.ts";

interface Owned {
  readonly org_id: AnySQLiteColumn;
  readonly project_id: AnySQLiteColumn;
}
interface Listed extends Owned {
  readonly id: AnySQLiteColumn;
  readonly created_at: AnySQLiteColumn;
}
type Condition = SQL | undefined;

/** Where a page begins: after this row, in the order of the list. */
export interface Position {
  readonly id: string;
  readonly created_at: number;
}

export interface Page {
  readonly after: Position | null;
  readonly limit: number;
  readonly order: "asc" | "desc";
}

/** Every query's first conditions. */
export function within(table: Owned, scope: Scope): SQL[] {
  return [eq(table.org_id, scope.orgId), eq(table.project_id, scope.projectId)];
}

export function ownedBy(scope: Scope): { org_id: string; project_id: string } {
  return { org_id: scope.orgId, project_id: scope.projectId };
}

/** The condition that leaves out what stands on earlier pages; none on the first. */
export function beyond(table: Listed, { after, order }: Page): SQL[] {
  if (after === null) return [];
  const sign = sql.raw(order === "asc" ? ">" : "<");
  return [sql`(${table.created_at}, ${table.id}) ${sign} (${after.created_at}, ${after.id})`];
}

export function byTime(table: Listed, order: Page["order"]): [SQL, SQL] {
  const direction = order === "asc" ? asc : desc;
  return [direction(table.created_at), direction(table.id)];
}

/** Rows of the scope that meet the conditions. */
export async function rowsOf<Table extends SQLiteTable & Owned>(
  database: D1Database,
  table: Table,
  scope: Scope,
  ...conditions: Condition[]
): Promise<InferSelectModel<Table>[]> {
  const rows = drizzle(database)
    .select()
    .from(table as SQLiteTable)
    .where(and(...within(table, scope), ...conditions));
  return (await rows) as InferSelectModel<Table>[];
}

/** One page of such rows, by time of creation, then id; at most `page.limit` of them. */
export async function pageOf<Table extends SQLiteTable & Listed>(
  database: D1Database,
  table: Table,
  scope: Scope,
  page: Page,
  ...conditions: Condition[]
): Promise<InferSelectModel<Table>[]> {
  const rows = drizzle(database)
    .select()
    .from(table as SQLiteTable)
    .where(and(...within(table, scope), ...conditions, ...beyond(table, page)))
    .orderBy(...byTime(table, page.order))
    .limit(page.limit);
  return (await rows) as InferSelectModel<Table>[];
}

/** Times are stored in milliseconds and shown in whole seconds. */
export function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000);
}
