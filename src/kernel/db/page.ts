/** Pages of lists: rows by time of creation, then id. */
import { asc, type Column, desc, type SQL, sql } from "drizzle-orm";
import type { Condition, Rows } from "./scoped.ts";

interface Listed {
  readonly id: Column;
  readonly created_at: Column;
}

/** A page begins after this row, in the order of the list. */
export interface Position {
  readonly id: string;
  readonly created_at: number;
}

export interface Page {
  readonly after: Position | null;
  readonly limit: number;
  readonly order: "asc" | "desc";
}

/**
 * One page of the table's rows; at most `page.limit`. `select` makes the statement, given the condition that excludes
 * the rows of earlier pages.
 */
export function pageOf<Row>(
  table: Listed,
  { after, order, limit }: Page,
  select: (beyond: Condition) => Rows<Row>,
): Rows<Row> {
  const direction = order === "asc" ? asc : desc;
  return select(after === null ? undefined : beyond(table, after, order))
    .orderBy(direction(table.created_at), direction(table.id))
    .limit(limit);
}

function beyond(table: Listed, after: Position, order: Page["order"]): SQL {
  const here = sql`(${table.created_at}, ${table.id})`;
  const there = sql`(${after.created_at}, ${after.id})`;
  return order === "asc" ? sql`${here} > ${there}` : sql`${here} < ${there}`;
}

/** Times are stored in milliseconds and shown in whole seconds. */
export function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000);
}
