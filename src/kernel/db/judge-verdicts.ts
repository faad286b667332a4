/**
 * Verdicts of judges, by everything that decided them: the same question is not paid for twice in a project. The
 * key holds the judge's address and the whole question, so what is found is what the finder would have asked itself.
 */
import { inArray } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import { type JudgeVerdictRow, judgeVerdicts } from "./schema.ts";
import { inProject } from "./scoped.ts";

export type CachedVerdict = JudgeVerdictRow["verdict"];

/** The verdicts that are kept under these keys, at most 64 of them. */
export async function findVerdicts(
  database: D1Database,
  scope: Scope,
  keys: readonly string[],
): Promise<Map<string, CachedVerdict>> {
  const rows = await inProject(database, scope).columns(
    { key: judgeVerdicts.key, verdict: judgeVerdicts.verdict },
    judgeVerdicts,
    inArray(judgeVerdicts.key, [...keys]),
  );
  return new Map(rows.map(({ key, verdict }) => [key, verdict]));
}

/** The first verdict stays. */
export async function keepVerdict(
  database: D1Database,
  scope: Scope,
  row: Pick<JudgeVerdictRow, "key" | "verdict" | "created_at">,
): Promise<void> {
  await inProject(database, scope).insert(judgeVerdicts, row).onConflictDoNothing();
}
