/** Closed months of an organisation's ledger: copies of what its books say. */
import { desc, lt } from "drizzle-orm";
import { type LedgerMonthRow, ledgerMonths } from "./ledger-schema.ts";
import { inOrganization } from "./scoped.ts";

/** The latest first; `before`: a month, or null for the latest. */
export async function listMonths(
  database: D1Database,
  orgId: string,
  { before, limit }: { readonly before: string | null; readonly limit: number },
): Promise<LedgerMonthRow[]> {
  const earlier = before === null ? undefined : lt(ledgerMonths.month, before);
  return await inOrganization(database, orgId)
    .select(ledgerMonths, earlier)
    .orderBy(desc(ledgerMonths.month))
    .limit(limit);
}
