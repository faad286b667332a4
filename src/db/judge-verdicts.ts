/** Verdicts of judges, by everything that decided them: the same question is not paid for twice. */
import { and, inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { Scope } from "../core/scope.ts";
import { within } from "./page.ts";
import { type JudgeVerdictRow, judgeVerdicts } from "./schema.ts";

export type CachedVerdict = JudgeVerdictRow["verdict"];

/** Those of the keys that are there. At most 64 keys. */
export async function findVerdicts(
  database: D1Database,
  scope: Scope,
  keys: readonly string[],
): Promise<Map<string, CachedVerdict>> {
  const rows = await drizzle(database)
    .select({ key: judgeVerdicts.key, verdict: judgeVerdicts.verdict })
    .from(judgeVerdicts)
    .where(and(...within(judgeVerdicts, scope), inArray(judgeVerdicts.key, [...keys])));
  return new Map(rows.map(({ key, verdict }) => [key, verdict]));
}

/** The first verdict stays. */
export async function keepVerdict(
  database: D1Database,
  scope: Scope,
  row: Pick<JudgeVerdictRow, "key" | "verdict" | "created_at">,
): Promise<void> {
  const owned = { ...row, org_id: scope.orgId, project_id: scope.projectId };
  await drizzle(database).insert(judgeVerdicts).values(owned).onConflictDoNothing();
}
