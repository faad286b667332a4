/**
 * Judgements, stored by a hash of everything that decided them, so that a project pays for a question once. The key
 * covers the judge's address and the whole question, so a stored judgement answers exactly the question that would be
 * asked.
 */
import { inArray } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { type CachedJudgementRow, cachedJudgements } from "./schema.ts";
import { inProject } from "./scoped.ts";

export type CachedJudgement = CachedJudgementRow["verdict"];

/** The judgements that are stored under these keys, at most 64. */
export async function findJudgements(
  database: Database,
  scope: Scope,
  keys: readonly string[],
): Promise<Map<string, CachedJudgement>> {
  const rows = await inProject(database, scope).columns(
    { key: cachedJudgements.key, verdict: cachedJudgements.verdict },
    cachedJudgements,
    inArray(cachedJudgements.key, [...keys]),
  );
  return new Map(rows.map(({ key, verdict: judgement }) => [key, judgement]));
}

/** The first judgement stays. */
export async function keepJudgement(
  database: Database,
  scope: Scope,
  row: Pick<CachedJudgementRow, "key" | "verdict" | "created_at">,
): Promise<void> {
  await inProject(database, scope).insert(cachedJudgements, row).onConflictDoNothing();
}
