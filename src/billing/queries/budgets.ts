/** Budgets: the most that may be charged in a month to an organisation, a project, or a key or person. */
import { and, count, eq, exists, isNull, type SQL, sql } from "drizzle-orm";
import { LIMITS } from "../../contract/limits.ts";
import type { Database } from "../../kernel/db/database.ts";
import { type Remembered, rememberIf, violatedTable } from "../../kernel/db/idempotency-keys.ts";
import { type Page, pageOf } from "../../kernel/db/page.ts";
import { organizations } from "../../kernel/db/schema.ts";
import { inOrganization } from "../../kernel/db/scoped.ts";
import { type BudgetRow, budgets } from "../tables.ts";

export type NewBudget = Omit<BudgetRow, "org_id">;

export async function findBudget(database: Database, orgId: string, id: string): Promise<BudgetRow | null> {
  const rows = await inOrganization(database, orgId).select(budgets, eq(budgets.id, id));
  return rows[0] ?? null;
}

/** Ordered by creation time, then id; at most `page.limit` rows. */
export async function listBudgets(database: Database, orgId: string, page: Page): Promise<BudgetRow[]> {
  const owned = inOrganization(database, orgId);
  return await pageOf(budgets, page, (beyond) => owned.select(budgets, beyond));
}

/** `taken`: the Idempotency-Key was used; `target_taken`: the target has a budget; `full`: the maximum is reached. */
export async function insertBudget(
  database: Database,
  orgId: string,
  budget: NewBudget,
  made: Remembered | null,
): Promise<"inserted" | "full" | "taken" | "target_taken"> {
  const owned = inOrganization(database, orgId);
  const live = exists(owned.select(organizations, isNull(organizations.deleted_at)));
  const room = and(live, sql`${owned.columns({ count: count() }, budgets)} < ${LIMITS.budgets}`) ?? live;
  const inserted: SQL = exists(owned.select(budgets, eq(budgets.id, budget.id)));
  try {
    const [rows] = await owned.batch([
      owned.insertIf(room, budgets, budget).returning(),
      ...rememberIf(database, orgId, inserted, made),
    ]);
    return rows.length > 0 ? "inserted" : "full";
  } catch (thrown) {
    const table = violatedTable(thrown);
    if (table === null) throw thrown;
    return table === "budgets" ? "target_taken" : "taken";
  }
}

/** Null if the budget does not exist. */
export async function updateBudget(
  database: Database,
  orgId: string,
  id: string,
  changes: Pick<BudgetRow, "limit_micros" | "updated_at">,
): Promise<BudgetRow | null> {
  const rows = await inOrganization(database, orgId).update(budgets, changes, eq(budgets.id, id)).returning();
  return rows[0] ?? null;
}

export async function deleteBudget(database: Database, orgId: string, id: string): Promise<boolean> {
  const rows = await inOrganization(database, orgId).delete(budgets, eq(budgets.id, id)).returning();
  return rows.length > 0;
}
