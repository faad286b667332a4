/**
 * The ledger's queries to the database: billing terms, and copies of hourly usage. The authoritative data is in the
 * organisation's object; after a kill, the same rows are written again.
 */
import { asc } from "drizzle-orm";
import type { Database } from "../../kernel/db/database.ts";
import { type OrganizationRow, organizations } from "../../kernel/db/schema.ts";
import { inOrganization } from "../../kernel/db/scoped.ts";
import { type BudgetRow, budgets, type UsageHourRow, usageHours } from "../tables.ts";

/** The organisation's billing settings, also if its deletion has started, and its budgets. */
export async function readTerms(
  database: Database,
  orgId: string,
): Promise<{
  readonly organization: Pick<OrganizationRow, "billing" | "credit_limit_micros"> | null;
  readonly budgets: readonly BudgetRow[];
}> {
  const owned = inOrganization(database, orgId);
  const [found, all] = await owned.batch([
    owned.select(organizations),
    owned.select(budgets).orderBy(asc(budgets.created_at), asc(budgets.id)),
  ]);
  return { organization: found[0] ?? null, budgets: all };
}

/** Writes whole hours over existing rows; at most 50 rows. */
export async function writeUsageHours(
  database: Database,
  orgId: string,
  rows: readonly Omit<UsageHourRow, "org_id">[],
): Promise<void> {
  const owned = inOrganization(database, orgId);
  const { org_id, project_id, hour, payer, environment, model, kind } = usageHours;
  const target = [org_id, project_id, hour, payer, environment, model, kind];
  const [first, ...others] = rows.map((row) => {
    const { counts, lines } = row;
    return owned.insert(usageHours, row).onConflictDoUpdate({ target, set: { counts, lines } });
  });
  if (first !== undefined) await owned.batch([first, ...others]);
}
