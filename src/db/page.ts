/** What every table of a project shares: rows of one scope, and pages of them by time of creation, then id. */
import { asc, desc, eq, type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import type { Scope } from "../contract/scope.ts";

interface Owned {
  readonly org_id: AnySQLiteColumn;
  readonly project_id: AnySQLiteColumn;
}

interface Listed extends Owned {
  readonly id: AnySQLiteColumn;
  readonly created_at: AnySQLiteColumn;
}

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
