/**
 * Judgements, stored by a hash of everything that decided them, so that a project pays for a question once. The key
 * covers the judge's address and the whole question, so a stored judgement answers exactly the question that would be
 * asked.
 */
import { inArray } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import { type JudgeVerdictRow, judgeVerdicts } from "./schema.ts";
import { inProject } from "./scoped.ts";

export type CachedVerdict = JudgeVerdictRow["verdict"];

/** The judgements that are stored under these keys, at most 64. */
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

/** The first judgement stays. */
export async function keepVerdict(
  database: D1Database,
  scope: Scope,
  row: Pick<JudgeVerdictRow, "key" | "verdict" | "created_at">,
): Promise<void> {
  await inProject(database, scope).insert(judgeVerdicts, row).onConflictDoNothing();
}
