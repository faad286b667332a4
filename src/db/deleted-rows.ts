/**
 * The rows that go with something that is deleted: counted first, then deleted, so that whoever counts before it deletes
 * counts each of them once, however often it is cut short.
 */
import { and, count, eq, inArray, isNull, ne, notExists, type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { alias } from "drizzle-orm/sqlite-core";
import type { Scope } from "../contract/scope.ts";
import { within } from "./page.ts";
import { endpoints, runs, trainerTokens } from "./schema.ts";

/** Rows of a run: its own, the endpoints that came with it and with it alone, its trainer's tokens. */
export async function countRowsOfRun(database: D1Database, scope: Scope, runId: string): Promise<number> {
  const d1 = drizzle(database);
  const counts = await d1.batch([
    d1.select({ n: count() }).from(trainerTokens).where(tokensOf(scope, runId)),
    d1
      .select({ n: count() })
      .from(endpoints)
      .where(endpointOf(database, scope, runId)),
    d1
      .select({ n: count() })
      .from(endpoints)
      .where(judgesOf(database, scope, runId)),
    d1.select({ n: count() }).from(runs).where(runIs(scope, runId)),
  ]);
  return counts.reduce((sum, [row]) => sum + (row?.n ?? 0), 0);
}

/** All of them or none. */
export async function deleteRowsOfRun(database: D1Database, scope: Scope, runId: string): Promise<void> {
  const d1 = drizzle(database);
  await d1.batch([
    d1.delete(trainerTokens).where(tokensOf(scope, runId)),
    d1.delete(endpoints).where(endpointOf(database, scope, runId)),
    d1.delete(endpoints).where(judgesOf(database, scope, runId)),
    d1.delete(runs).where(runIs(scope, runId)),
  ]);
}

function tokensOf(scope: Scope, runId: string): SQL | undefined {
  return and(...within(trainerTokens, scope), eq(trainerTokens.run_id, runId));
}

function runIs(scope: Scope, runId: string): SQL | undefined {
  return and(...within(runs, scope), eq(runs.id, runId));
}

/** Given with a run, and deleted by nobody. */
function inline(scope: Scope): SQL[] {
  return [...within(endpoints, scope), isNull(endpoints.name), isNull(endpoints.deleted_at)];
}

/** The policy's, unless a run that was made of this one goes on naming it. */
function endpointOf(database: D1Database, scope: Scope, runId: string): SQL | undefined {
  const d1 = drizzle(database);
  const own = d1.select({ id: runs.endpoint_id }).from(runs).where(runIs(scope, runId));
  const others = alias(runs, "others");
  const named = d1
    .select({ one: sql`1` })
    .from(others)
    .where(and(...within(others, scope), eq(others.endpoint_id, endpoints.id), ne(others.id, runId)));
  return and(...inline(scope), inArray(endpoints.id, own), notExists(named));
}

/** Those of its judges. Only where there are any are the project's other runs looked through. */
function judgesOf(database: D1Database, scope: Scope, runId: string): SQL | undefined {
  const d1 = drizzle(database);
  const judge = sql`json_extract(value, '$.endpoint_id')`;
  const own = sql`${endpoints.id} in (select ${judge} from ${runs}, json_each(${runs.spec}, '$.judges')
    where ${runIs(scope, runId)})`;
  const others = alias(runs, "others");
  const asked = sql`exists (select 1 from json_each(${others.spec}, '$.judges') where ${judge} = ${endpoints.id})`;
  const named = d1
    .select({ one: sql`1` })
    .from(others)
    .where(and(...within(others, scope), ne(others.id, runId), asked));
  return and(...inline(scope), own, notExists(named));
}
