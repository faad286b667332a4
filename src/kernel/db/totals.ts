/** Counters of the whole deployment that are stored nowhere else. */
import { sql } from "drizzle-orm";
import type { Database } from "./database.ts";
import { totals } from "./schema.ts";
import { unscoped } from "./scoped.ts";

export async function addTotal(
  database: Database,
  kind: "spans_dropped" | "events_unposted",
  n: number,
): Promise<void> {
  await unscoped(database.main, "operator")
    .insert(totals)
    .values({ kind, name: "", n })
    .onConflictDoUpdate({ target: [totals.kind, totals.name], set: { n: sql`${totals.n} + ${n}` } });
}
