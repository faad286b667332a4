/** The level of a D1 database's schema: the name of its newest migration, as wrangler and the local boot record it. */
import { sql } from "drizzle-orm";
import { messageOf } from "../../contract/errors.ts";
import { unscoped } from "./scoped.ts";

/** The level that this code needs. Written by `npm run generate`. */
export const SCHEMA_LEVEL = "0017_trigger_schedules.sql";

/** Null if no migration was ever applied. */
export async function readSchemaLevel(d1: D1Database): Promise<string | null> {
  const newest = sql`select name from d1_migrations order by id desc limit 1`;
  try {
    const rows = await unscoped(d1, "operator").all<{ name: string }>(newest);
    return rows[0]?.name ?? null;
  } catch (thrown) {
    if (hasNoTable(thrown)) return null;
    throw thrown;
  }
}

function hasNoTable(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return messageOf(thrown).includes("no such table: d1_migrations") || hasNoTable(thrown.cause);
}
